"""torch_rivals.py: what PyTorch itself has against memory, on ResNet-50 of batch 64: save_on_cpu, checkpoint, and compile with an activation
budget: milliseconds of a step and the most memory."""

import statistics
import sys
import time

import torch_kit

torch, device = torch_kit.torch_here()
from torch.utils.checkpoint import checkpoint  # noqa: E402: the part is skipped where there is no torch

STEPS = 3 if torch_kit.FAKE else 15


def step(way):
    model, batch = torch_kit.network(torch, device, "resnet50", small=torch_kit.FAKE)
    x, y = (t.to(device) for t in batch())
    optimizer = torch.optim.Adam(model.parameters())
    layers = list(model)
    quarter = len(layers) // 4 + 1
    parts = [torch.nn.Sequential(*layers[i:i + quarter]) for i in range(0, len(layers), quarter)]
    forward = model
    if way == "compile, budget 0.5":
        from torch._functorch import config
        config.activation_memory_budget = 0.5
        forward = torch.compile(model, **torch_kit.COMPILE)
    elif way == "checkpoint":
        def forward(x):
            for part in parts:
                x = checkpoint(part, x, use_reentrant=False)
            return x
    elif way == "save_on_cpu":
        def forward(x):
            with torch.autograd.graph.save_on_cpu(pin_memory=device == "cuda"):
                return model(x)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    took = []
    for _ in range(STEPS):
        torch_kit.synchronize(torch, device)
        begun = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(forward(x), y).backward()
        optimizer.step()
        torch_kit.synchronize(torch, device)
        took.append(time.perf_counter() - begun)
    return f"{1000 * statistics.median(took[STEPS // 5:]):.1f} ms" + torch_kit.memory(torch, device)


ways = "alone", "save_on_cpu", "checkpoint", "compile, budget 0.5"
sys.exit(1 if torch_kit.each(torch, device, ways, step) else 0)
