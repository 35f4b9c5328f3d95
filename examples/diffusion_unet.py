"""Trains a small U-Net of diffusers to take noise off pictures (DDPM), with a moving average of its weights."""

import torch
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.training_utils import EMAModel
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

STEPS = 30


def rings(size):
    """Pictures of rings of random radius."""
    grid = torch.linspace(-1, 1, 32)
    distance = (grid[:, None] ** 2 + grid[None, :] ** 2).sqrt()
    radius = torch.rand(size, 1, 1, 1, generator=torch.Generator().manual_seed(1)) * 0.6 + 0.2
    return TensorDataset(1 - 2 * ((distance - radius).abs() > 0.15).float())


def main():
    torch.manual_seed(0)
    model = UNet2DModel(
        sample_size=32, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(32, 64, 64),
        down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D", "UpBlock2D"), norm_num_groups=8)
    average = EMAModel(model.parameters(), decay=0.99)
    noising = DDPMScheduler(num_train_timesteps=1000)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(rings(STEPS * 4), batch_size=4, shuffle=True)

    model.train()
    for step, (images,) in enumerate(loader):
        noise = torch.randn_like(images)
        times = torch.randint(noising.config.num_train_timesteps, (len(images),))
        loss = F.mse_loss(model(noising.add_noise(images, noise, times), times).sample, noise)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average.step(model.parameters())
        print(f"step {step} loss {loss.item()}")
    print(f"average of the first parameter: {average.shadow_params[0].mean().item()}")


if __name__ == "__main__":
    main()
