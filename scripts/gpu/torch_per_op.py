"""torch_per_op.py: microseconds that an op takes on the host: eager, and under a mode that does nothing."""

import sys
import time

try:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError as e:
    print(e)
    sys.exit(77)
if not torch.cuda.is_available():
    print("this torch sees no GPU")
    sys.exit(77)


class Empty(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def adds(n=10000):
    x = torch.ones(1, device="cuda")
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(n):
        x.add_(1)
    torch.cuda.synchronize()
    return 1e6 * (time.perf_counter() - begun) / n


adds()
print(f"@ eager {adds():.2f} us an op")
with Empty():
    adds()
    print(f"@ empty mode {adds():.2f} us an op")
