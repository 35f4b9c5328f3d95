"""ResNet-50 in plain torch. As a program: what joining costs, with ResNet-50 at 96 pixels, batch 16, on the CPU, its iterations plain and
joined in turns. Prints CPU seconds and wall seconds of each pair, and the load. PAIRS. Under tensile join without --memory."""

import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
        self.short = None
        if stride > 1 or channels != out:
            self.short = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu_(self.layers(x) + (x if self.short is None else self.short(x)))


def resnet50(width=64, stages=(3, 4, 6, 3)):
    """ResNet-50, or one with other channels and blocks."""
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = width
    for stride, blocks in zip((1, 2, 2, 2), stages):
        for i in range(blocks):
            layers.append(Block(channels, width, stride if i == 0 else 1))
            channels = 4 * width
        width *= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def iteration(model, optimizer):
    x, y = torch.randn(16, 3, 96, 96), torch.randint(0, 1000, (16,))
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def timed(model, optimizer):
    cpu, wall = time.process_time(), time.perf_counter()
    iteration(model, optimizer)
    return time.process_time() - cpu, time.perf_counter() - wall


def main(pairs):
    import tensile

    torch.manual_seed(1)
    torch.set_num_threads(1)
    alone, joined = resnet50(), resnet50()
    first, second = torch.optim.Adam(alone.parameters()), torch.optim.Adam(joined.parameters())
    iteration(alone, first)
    tensile.join(joined, second)
    session = tensile._session
    while not session.plan:
        iteration(joined, second)
    print("pair, CPU seconds alone and joined, wall seconds alone and joined, load")
    for i in range(pairs):
        session.__exit__(None, None, None)  # the mode is off
        a = timed(alone, first)
        session.__enter__()
        b = timed(joined, second)
        print(i + 1, *("%.3f" % t for t in (a[0], b[0], a[1], b[1])), "%.2f" % os.getloadavg()[0], flush=True)
    if session.player.pos != session.player.ops - session.player.iteration.tail:
        sys.exit("the joined iterations were not played")


if __name__ == "__main__":
    main(int(sys.argv[1]))
