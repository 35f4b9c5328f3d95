"""Trains a small network for many iterations and prints every tenth part of them what the process has: iterations, resident
bytes, bytes that malloc has given, bytes in tensors, Python objects. ITERATIONS; under tensile join --memory 170KiB."""

import ctypes
import gc
import os
import sys

import tensile
import torch
from torch import nn
from torch.nn import functional as F

count = int(sys.argv[1])
torch.manual_seed(1)
torch.set_num_threads(1)
layers = [nn.Linear(32, 64)]
for _ in range(4):
    layers += [nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(64, 64)]
model = nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
tensile.join(model, optimizer)


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Allocated(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost").split()]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Allocated


def tensors():
    all_ = {t.storage().data_ptr(): t.storage().nbytes() for t in gc.get_objects() if isinstance(t, torch.Tensor)}
    return sum(all_.values())


for i in range(count):
    x, y = torch.randn(32, 32), torch.randint(0, 64, (32,))
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    loss.item()
    if (i + 1) % (count // 10) == 0:
        tensile.home()
        gc.collect()
        allocated = libc.mallinfo2()
        print(i + 1, resident(), allocated.uordblks + allocated.hblkhd, tensors(), len(gc.get_objects()), flush=True)
