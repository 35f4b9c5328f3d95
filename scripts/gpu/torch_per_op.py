"""torch_per_op.py TENSILE: microseconds that an op takes on the host: eager, under a mode that does nothing, and in an iteration of ops
that hardly work: alone, joined without a limit, and planned in 80 %."""

import os
import sys
import time

import torch_bridge
import torch_kit

ADDS = 500


def script():
    """Activations that a plan can move, and ADDS ops on one number."""
    torch, device = torch_kit.torch_here()
    torch_kit.deterministic(torch)
    nn = torch.nn
    width = 64 if torch_kit.FAKE else 1024
    model = nn.Sequential(*(m for _ in range(8) for m in (nn.Linear(width, width), nn.Tanh()))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, one = torch.randn(4 * width, width, device=device), torch.ones(1, device=device)

    def iteration(_):
        optimizer.zero_grad()
        with torch.no_grad():
            for _ in range(ADDS):
                one.add_(1)
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()
    torch_kit.train(torch, device, model, optimizer, iteration, 20)


def main():
    if sys.argv[1] == "script":
        return script()
    torch, device = torch_kit.torch_here()
    from torch.utils._python_dispatch import TorchDispatchMode

    class Empty(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def adds(n=1000 if torch_kit.FAKE else 10000):
        x = torch.ones(1, device=device)
        torch_kit.synchronize(torch, device)
        begun = time.perf_counter()
        for _ in range(n):
            x.add_(1)
        torch_kit.synchronize(torch, device)
        return 1e6 * (time.perf_counter() - begun) / n
    adds()
    torch_kit.row(f"eager {adds():.2f} us an op")
    with Empty():
        adds()
        torch_kit.row(f"empty mode {adds():.2f} us an op")
    runs = torch_bridge.Runs(sys.argv[1], 30 if device == "cuda" else 600)
    rows = runs.compare(f"{ADDS} adds", [os.path.abspath(__file__), "script"], ("alone", "none", "80%"))
    for way in "none", "80%":
        if "ms" in rows[way] and "ms" in rows["alone"]:
            torch_kit.row(f"{way}: {1000 * (rows[way]['ms'] - rows['alone']['ms']) / ADDS:.2f} us an op more than alone, if all is theirs")
    torch_bridge.finish(runs.rows)


if __name__ == "__main__":
    main()
