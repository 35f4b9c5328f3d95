"""What is measured where a GPU trains, with stubs of torch.cuda on the CPU: nothing waits, and the script's figures stay."""

import contextlib
import io
import unittest
from unittest import mock

import torch
from plans import shelved
from fakecuda import Event, OnCuda, patched
from scripts import Planner, differs, execute
from tensile.session import CLOCKED


class Allocator:
    """The allocator's figures: what the test says it has, and what it had at most since it was set back."""

    def __init__(self):
        self.current = self.peak = 1000
        self.retries = self.asked = 0

    def has(self, current):
        self.current, self.peak = current, max(current, self.peak)

    def stats(self, device):
        assert device == 0
        self.asked += 1
        pool = {"current": self.current, "peak": self.peak, "allocated": 0, "freed": 0}
        return {"num_alloc_retries": self.retries, "num_ooms": 0, "allocated_bytes": {"all": dict(pool)},
                "reserved_bytes": {"all": dict(pool, peak=2 * self.peak)}}

    def reset(self, device):
        assert device == 0
        self.peak = self.current


def script(run, each=None, iterations=12):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    run.join(model, optimizer)
    for i in range(iterations):
        optimizer.zero_grad(set_to_none=True)
        loss = model(torch.randn(16, 24)).pow(2).mean()
        loss.backward()
        if each:
            each(i)
        optimizer.step()
        yield loss.item()


class Told(Planner):
    """Notes what of an iteration is sent."""

    def __init__(self):
        super().__init__(lambda _, it: shelved(it))
        self.told = []

    def iteration(self, session, graph, plan, wall):
        super().iteration(session, graph, plan, wall)
        self.told.append((plan, session.touched, session.reserved, session.retries))
        if session.steps is not None:
            self.steps, session.steps = session.steps[1], None


class Figures(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.allocator = Allocator()
        fake = patched(self.allocator.stats, self.allocator.reset, self.wall)
        fake.__enter__()
        self.addCleanup(fake.__exit__, None, None, None)
        self.walls = 0

    def wall(self):
        self.walls += 1

    def trains(self, each=None, **options):
        want, p, said = execute(script, **options), Told(), io.StringIO()
        with contextlib.redirect_stderr(said), mock.patch("scripts.Run", OnCuda):
            self.assertEqual(differs(want, execute(script, p, each=each, **options)), "")
        self.assertEqual(p.errors, [])
        self.assertEqual([bool(plan) for plan, *_ in p.told[:4]], [False] * 3 + [True])
        return p, said.getvalue().splitlines()

    def test_times(self):
        """Ops are timed by events of the stream, which are used again, and waited for after a recorded iteration or a
        measured one alone."""
        waits = []
        p, _ = self.trains(lambda i: waits.append(Event.waits), iterations=CLOCKED + 8)
        self.assertEqual(self.walls, 1)  # where the plan was applied
        ops = p.graphs[0].length
        self.assertEqual(waits[2] - waits[1], ops)  # of iteration 1: in iteration 0 momentum begins
        self.assertEqual(len(set(waits[4:CLOCKED + 3])), 1)
        self.assertGreater(waits[-1], waits[4])
        self.assertLessEqual(Event.made, 3 * ops)
        self.assertTrue(all(g.ns > 0 for g in p.graphs[0].groups if g.at))
        self.assertEqual(len(p.steps), len(p.graphs[0].groups))
        self.assertGreater(sum(p.steps), 0)

    def test_peaks(self):
        """Each iteration has its own peak, and the script the highest since it has set them back; the figures are asked
        for once in an iteration."""
        seen, asked = [], []

        def each(i):
            self.allocator.has(1000 + 100 * (20 - i))
            self.allocator.has(1000)
            if i == 8:
                torch._C._cuda_resetPeakMemoryStats(0)  # as torch.cuda.reset_peak_memory_stats does
            asked.append(self.allocator.asked)
            seen.append(torch._C._cuda_memoryStats(0)["allocated_bytes"]["all"]["peak"])
        p, _ = self.trains(each)
        self.assertEqual(seen, [3000] * 8 + [1000] + [1000 + 100 * (20 - 9)] * 3)
        self.assertEqual([told[1:3] for told in p.told[3:8]], [(m, 2 * m) for m in range(2700, 2200, -100)])
        self.assertEqual({b - a for a, b in zip(asked[5:], asked[6:])}, {2})  # one of them is the script's own

    def test_allocations_that_failed(self):
        """They are told with their iteration, and people once; nothing that failed before the plan counts."""
        def each(i):
            self.allocator.retries += {1: 5, 6: 2, 8: 1}.get(i, 0)
        p, said = self.trains(each)
        self.assertEqual([told[3] for told in p.told], [0] * 6 + [2, 0, 1, 0, 0, 0])
        said = [line for line in said if "failed" in line]
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], "^tensile: iteration 7: 2 allocations failed at the limit")


if __name__ == "__main__":
    unittest.main()
