"""Random numbers from other sources than the default generator."""

import random
import unittest

import numpy
import torch
from torch import nn
from torch.nn import functional as F

import scripts
from plans import random_plan
from scripts import Planner, differs, execute


def batches(run, g, iterations=8):
    """Batches and masks, in several forms, from a generator of the script's own."""
    g.manual_seed(5)
    model = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 4))
    o = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    run.join(model, o)
    for _ in range(iterations):
        x, y = torch.randn(8, 16, generator=g), torch.randint(0, 4, (8,), generator=g)
        o.zero_grad(set_to_none=True)
        a = model[0](x)
        a = a * torch.bernoulli(torch.full_like(a, 0.8), generator=g)
        a = a + torch.empty_like(a).normal_(generator=g)
        a = a * (torch.rand(a.shape, generator=g) < 0.9)
        loss = F.cross_entropy(model[1](F.dropout(a, 0.1)), y)
        loss.backward()
        o.step()
        yield loss.item()


def loader(run, g, workers, batch, epochs):
    g.manual_seed(5)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))
    o = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    run.join(model, o)
    data = torch.utils.data.DataLoader(scripts.Numbers(), batch, shuffle=True, num_workers=workers, generator=g)
    for _ in range(epochs):
        for x, y in data:
            o.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            o.step()
            yield loss.item()


library = torch.library.Library("tensile_tests", "DEF")
library.define("noise(Tensor a) -> Tensor")


def noise(a):
    return a + torch.from_numpy(numpy.random.rand(*a.shape).astype("float32")) + random.random()


library.impl("noise", noise, "CPU")


def others(run, iterations=8):
    """Random numbers of Python and numpy: for batches, and in an op that is not torch's."""
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4))
    o = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    run.join(model, o)
    for _ in range(iterations):
        x = torch.from_numpy(numpy.random.rand(8, 16).astype("float32")) * random.random()
        y = torch.tensor([random.randrange(4) for _ in range(8)])
        o.zero_grad(set_to_none=True)
        with torch.no_grad():
            n = torch.ops.tensile_tests.noise(x)
        loss = F.cross_entropy(model[1](torch.relu_(model[0](n * 2))), y)
        loss.backward()
        o.step()
        yield loss.item()


class Random(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def run_all(self, script, seeds, states, planned=1, **options):
        """Runs a script alone, joined and under random plans; returns how often plans repeat ops that draw."""
        def once(planner):
            random.seed(3)
            numpy.random.seed(3)
            result = execute(script, planner, **options)
            return result[0], result[1] + states()

        want, repeats = once(None), 0
        for seed in [None, *seeds]:
            p = Planner(seed and (lambda number, it: random_plan(it, random.Random(seed), 0.6)[0]))
            self.assertEqual(differs(want, once(p)), "", f"seed {seed}")
            self.assertEqual(p.errors, [])
            for plan in p.plans:
                self.assertGreaterEqual(sum(1 for _, number, _ in p.iterations if number), planned)
                repeats += sum(p.graphs[plan["graph"] - 1].groups[a["op"]].random
                               for b in plan["boundaries"] for a in b["do"] if a["do"] == "again")
        return repeats

    def test_own_generator(self):
        g = torch.Generator()
        self.assertGreater(self.run_all(batches, range(1, 6), lambda: [g.get_state()], 4, g=g), 3)

    @scripts.long
    def test_loader(self):
        """Epochs of several iterations, and of one, which is then recorded with the shuffling in it."""
        g = torch.Generator()
        for workers, batch, epochs in (0, 8, 3), (0, 40, 8), (2, 40, 7):
            with self.subTest(workers=workers, batch=batch):
                self.run_all(loader, [1], lambda: [g.get_state()], g=g, workers=workers, batch=batch, epochs=epochs)

    def test_other_libraries(self):
        """Their states cannot be restored by us: an op that is not torch's runs once."""
        self.run_all(others, [1, 2], lambda: [random.getstate(), torch.from_numpy(numpy.random.get_state()[1].astype("int64")),
                                              numpy.random.get_state()[2]], 4)


if __name__ == "__main__":
    unittest.main()
