"""Trains a small convolutional GAN with Lightning: two optimizers that take turns, by manual optimization."""

import lightning
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

NOISE = 32


def generator():
    return nn.Sequential(
        nn.ConvTranspose2d(NOISE, 64, 4), nn.BatchNorm2d(64), nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1), nn.Tanh())


def discriminator():
    return nn.Sequential(
        nn.Conv2d(1, 16, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(64 * 4 * 4, 1))


class GAN(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator, self.discriminator = generator(), discriminator()

    def configure_optimizers(self):
        return [torch.optim.Adam(part.parameters(), lr=2e-4, betas=(0.5, 0.999), foreach=False)
                for part in (self.discriminator, self.generator)]

    def training_step(self, batch, index):
        images, = batch
        of_discriminator, of_generator = self.optimizers()
        real, fake = torch.ones(len(images), 1), torch.zeros(len(images), 1)
        made = self.generator(torch.randn(len(images), NOISE, 1, 1))

        self.toggle_optimizer(of_discriminator)
        loss_d = (F.binary_cross_entropy_with_logits(self.discriminator(images), real)
                  + F.binary_cross_entropy_with_logits(self.discriminator(made.detach()), fake)) / 2
        self.manual_backward(loss_d)
        of_discriminator.step()
        of_discriminator.zero_grad()
        self.untoggle_optimizer(of_discriminator)

        self.toggle_optimizer(of_generator)
        loss_g = F.binary_cross_entropy_with_logits(self.discriminator(made), real)
        self.manual_backward(loss_g)
        of_generator.step()
        of_generator.zero_grad()
        self.untoggle_optimizer(of_generator)

        self.log_dict({"discriminator": loss_d, "generator": loss_g})
        print(f"step {index} epoch {self.current_epoch} discriminator {loss_d.item()} generator {loss_g.item()}")


def rings(size):
    """Pictures of rings of random radius."""
    grid = torch.linspace(-1, 1, 32)
    distance = (grid[:, None] ** 2 + grid[None, :] ** 2).sqrt()
    radius = torch.rand(size, 1, 1, 1, generator=torch.Generator().manual_seed(1)) * 0.6 + 0.2
    return TensorDataset(1 - 2 * ((distance - radius).abs() > 0.15).float())


def main():
    lightning.seed_everything(0)
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(GAN(), DataLoader(rings(320), batch_size=16, shuffle=True))


if __name__ == "__main__":
    main()
