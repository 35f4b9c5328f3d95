"""Trains a ResNet-18 of torchvision as torchvision's reference script does: a moving average of the weights each second
step, an evaluation and a checkpoint after each epoch."""

import os
import tempfile

import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader
from torchvision.transforms import v2

CLASSES, EPOCHS, EMA_STEPS = 10, 3, 2


class ExponentialMovingAverage(torch.optim.swa_utils.AveragedModel):
    def __init__(self, model, decay):
        def average(mean, value, count):
            return decay * mean + (1 - decay) * value
        super().__init__(model, avg_fn=average, use_buffers=True)


def train_one_epoch(model, average, criterion, optimizer, loader, epoch):
    model.train()
    for i, (images, labels) in enumerate(loader):
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if i % EMA_STEPS == 0:
            average.update_parameters(model)
        print(f"step {i} epoch {epoch} loss {loss.item()}")


def evaluate(model, criterion, loader, name):
    model.eval()
    total, right, count = 0.0, 0, 0
    with torch.inference_mode():
        for images, labels in loader:
            output = model(images)
            total += criterion(output, labels).item() * len(labels)
            right += (output.argmax(1) == labels).sum().item()
            count += len(labels)
    print(f"step end {name} loss {total / count} accuracy {right / count}")


def main():
    torch.manual_seed(0)
    transform = v2.Compose([v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True),
                            v2.Normalize((0.5,) * 3, (0.5,) * 3)])
    train, test = (torchvision.datasets.FakeData(size, (3, 64, 64), CLASSES, transform, random_offset=offset)
                   for size, offset in ((96, 0), (16, 96)))
    loader = DataLoader(train, batch_size=8, shuffle=True)
    test_loader = DataLoader(test, batch_size=8)
    model = torchvision.models.resnet18(weights=None, num_classes=CLASSES)
    average = ExponentialMovingAverage(model, decay=0.9)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(EPOCHS):
            train_one_epoch(model, average, criterion, optimizer, loader, epoch)
            schedule.step()
            evaluate(model, criterion, test_loader, "model")
            evaluate(average, criterion, test_loader, "average")
            torch.save({"model": model.state_dict(), "average": average.state_dict(),
                        "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "epoch": epoch},
                       os.path.join(folder, "checkpoint.pth"))


if __name__ == "__main__":
    main()
