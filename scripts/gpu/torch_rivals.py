"""torch_rivals.py: what PyTorch itself has against memory, on ResNet-50 of batch 64: save_on_cpu, checkpoint, and compile with an activation
budget: milliseconds of a step and the most memory."""

import statistics
import sys
import time

try:
    import torch
    import torchvision
except ImportError as e:
    print(e)
    sys.exit(77)
if not torch.cuda.is_available():
    print("this torch sees no GPU")
    sys.exit(77)
from torch.utils.checkpoint import checkpoint_sequential

x, y = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")


def step(way):
    model = torchvision.models.resnet50().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    layers = torch.nn.Sequential(*list(model.children())[:-1], torch.nn.Flatten(), model.fc)
    if way == "compile, budget 0.5":
        import torch._functorch.config
        torch._functorch.config.activation_memory_budget = 0.5
        model = torch.compile(model)

    def forward():
        if way == "checkpoint":
            return checkpoint_sequential(layers, 4, x, use_reentrant=False)
        if way == "save_on_cpu":
            with torch.autograd.graph.save_on_cpu(pin_memory=True):
                return model(x)
        return model(x)
    torch.cuda.reset_peak_memory_stats()
    took = []
    for _ in range(3 + 12):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(forward(), y).backward()
        optimizer.step()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - begun)
    return f"{1000 * statistics.median(took[3:]):.1f} ms, {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB"


failed = 0
for way in "alone", "save_on_cpu", "checkpoint", "compile, budget 0.5":
    try:
        print(f"@ {way}: " + step(way), flush=True)
    except Exception as e:  # the others are wanted all the same
        failed += 1
        print(f"@ {way}: {type(e).__name__}: {str(e)[:90]}", flush=True)
    torch.cuda.empty_cache()
sys.exit(1 if failed else 0)
