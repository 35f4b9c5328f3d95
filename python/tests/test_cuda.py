"""What only a GPU can show."""

import random
import unittest

import torch

import scripts
from plans import random_plan
from scripts import Planner, differs, execute
from tensile.copies import rates


@unittest.skipUnless(torch.cuda.is_available(), "needs a torch with CUDA and a GPU")
class Cuda(unittest.TestCase):
    def test_bits(self):
        """Random plans, with copies on their own streams, end with the bits of the script alone."""
        def script(run, iterations=12):
            model = scripts.cnn().cuda()
            o = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            run.join(model, o)
            for _ in range(iterations):
                x = torch.randn(8, 3, 12, 12, device="cuda")
                o.zero_grad(set_to_none=True)
                loss = model(x).pow(2).mean()
                loss.backward()
                o.step()
                yield loss.item()
        torch.use_deterministic_algorithms(True)
        want = execute(script)
        for seed in range(4):
            p = Planner(lambda number, it: random_plan(it, random.Random(seed), 0.5)[0])
            self.assertEqual(differs(want, execute(script, p)), "", f"seed {seed}")
            self.assertTrue(p.iterations[-1][1])

    def test_rates(self):
        self.assertTrue(all(r > 1 << 20 for r in rates()))


if __name__ == "__main__":
    unittest.main()
