"""Thousands of iterations leave nothing behind."""

import ctypes
import gc
import random
import unittest

import torch
from torch import nn
from torch.nn import functional as F

from plans import random_plan
from scripts import Planner, Run, long


class Allocated(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost").split()]


class Growth(unittest.TestCase):
    @long
    def test_memory(self):
        """What malloc has given, in which torch's tensors are, is the same after 1,000 iterations as after 200."""
        libc = ctypes.CDLL(None)
        if not hasattr(libc, "mallinfo2"):
            self.skipTest("needs glibc 2.33")
        libc.mallinfo2.restype = Allocated
        torch.set_num_threads(1)
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(64, 64))
        o = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        p = Planner(lambda number, iteration: random_plan(iteration, random.Random(3), 0.5, 1024)[0])
        run, found = Run(p), []
        run.join(model, o)
        for i in range(1000):
            x, y = torch.randn(32, 32), torch.randint(0, 64, (32,))
            o.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            o.step()
            loss.item()
            p.iterations.clear()
            if i in (199, 999):
                gc.collect()
                allocated = libc.mallinfo2()
                found.append(allocated.uordblks + allocated.hblkhd)
        self.assertTrue(run.session.plan)
        run.leave()
        self.assertLess(found[1] - found[0], 8 << 10)  # 10 bytes an iteration: no object, no storage


if __name__ == "__main__":
    unittest.main()
