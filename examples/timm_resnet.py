"""Trains a small ResNet of timm, with its factories of optimizers and schedules, as timm's own training script does."""

import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from torch.utils.data import DataLoader, TensorDataset

CLASSES, EPOCHS = 8, 3


def stripes(size, pixels):
    """Pictures of stripes; the class is their direction."""
    draws = torch.Generator().manual_seed(1)
    labels = torch.randint(CLASSES, (size,), generator=draws)
    y, x = torch.meshgrid(torch.arange(pixels), torch.arange(pixels), indexing="ij")
    angle = labels[:, None, None] * torch.pi / CLASSES
    wave = torch.sin((x * angle.cos() + y * angle.sin()) / 2)
    noise = torch.randn(size, 3, pixels, pixels, generator=draws)
    return TensorDataset(wave[:, None] + noise * 0.5, labels)


def main():
    torch.manual_seed(0)
    model = timm.create_model("resnet10t", pretrained=False, num_classes=CLASSES, drop_path_rate=0.1)
    optimizer = create_optimizer_v2(model, opt="sgd", lr=0.05, momentum=0.9, weight_decay=1e-4)
    loader = DataLoader(stripes(96, 64), batch_size=8, shuffle=True)
    schedule, _ = create_scheduler_v2(optimizer, sched="cosine", num_epochs=EPOCHS, warmup_epochs=1, warmup_lr=0.01,
                                      step_on_epochs=False, updates_per_epoch=len(loader))
    criterion = LabelSmoothingCrossEntropy(0.1)

    step = 0
    model.train()
    for _ in range(EPOCHS):
        for images, labels in loader:
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            step += 1
            schedule.step_update(step)
            print(f"step {step} loss {loss.item()}")


if __name__ == "__main__":
    main()
