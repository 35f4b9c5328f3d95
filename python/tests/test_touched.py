"""What torch's allocator has at most in a planned iteration is what the plan promised."""

import random
import unittest
from unittest import mock

import torch
from torch import autograd

import scripts
import tensile.iteration
from plans import peak, random_plan
from scripts import Planner, differs, execute
from tensile import capture, events

MARK = "the step of the test"


def twice(recorder, r, func, *rest, old=capture.Recorder.twice):
    """It leaves bytes of its workspace as they were: whether it repeats them is chance, and one plan is for two recordings."""
    if "mkldnn_rnn" in str(func):
        r.once = True
    else:
        old(recorder, r, func, *rest)


class Touched(unittest.TestCase):
    def check(self, network, optimizer, often):
        promised = {}

        def make(number, iteration):
            plan = random_plan(iteration, random.Random(5), often, 1024)[0]
            promised.setdefault("bytes", peak(iteration, plan))
            promised.setdefault("plan", plan)
            return dict(promised["plan"])

        first = Planner(make)
        options = dict(network=network, optimizer=optimizer, iterations=9)
        def between(run, i):
            with autograd.profiler.record_function(MARK):
                pass

        execute(scripts.plain, first, between=between, **options)  # the mark is an op of the graph
        own = [t for _, plan, t in first.iterations if plan]
        # the events tell all only of memory given after they began: once more, within them from the start on
        autograd._enable_profiler_legacy(autograd.ProfilerConfig(*events._config))
        try:
            second = Planner(make)
            execute(scripts.plain, second, between=between, **options)
        finally:
            lists = autograd._disable_profiler_legacy()
        self.assertEqual(second.errors, [])
        self.assertEqual([bool(plan) for _, plan, _ in second.iterations], [False] * 3 + [True] * 6)
        now, most, peaks = 0, 0, []
        for e in lists[0] if len(lists) == 1 else max(lists, key=len):
            if e.kind() == "memory_alloc":
                now += e.cpu_memory_usage()
                most = max(most, now)
            elif e.kind() == "push" and e.name() == MARK:
                peaks.append(most)
                most = now
        return promised["bytes"], max(peaks[4:]), peaks[2], max(own[1:])

    def test_networks(self):
        pairs = ("cnn", "adam"), ("encoder", "momentum"), ("lstm", "foreach")
        for network, optimizer in pairs if scripts.LONG else pairs[:1]:
            with self.subTest(network=network, optimizer=optimizer), mock.patch.object(capture.Recorder, "twice", twice):
                promised, touched, plain, own = self.check(network, optimizer, 0.6)
                self.assertLessEqual(touched, promised * 1.01 + (64 << 10))
                self.assertLess(touched, plain)
                self.assertLessEqual(own, promised * 1.01 + (64 << 10))

    def test_begins_within_backward(self):
        """An iteration that begins within a backward pass is measured too, and what the forward pass has left there moves
        before it is needed, as the plan says."""
        def script(run, iterations=9):
            torch.manual_seed(0)
            model = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(64, 64), torch.nn.Tanh())])
            optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, foreach=False)
            run.join(model, optimizer)
            for _ in range(iterations):
                loss = model(torch.randn(128, 64)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                yield loss.item()

        def within(iteration, *rest):
            return next(p for p, r in enumerate(iteration.made_of[0]) if "tanh_backward" in str(r.func)) + 1

        def make(number, iteration):
            """Moves what comes from the iteration before away at once, and back when it is needed."""
            slots = iteration.planned()
            first = sum(not g.at for g in iteration.groups)
            use = {s: next(i for i, g in enumerate(iteration.groups) if g.at and t in g.reads)
                   for s, t in enumerate(slots) if t in [m for g in iteration.groups[:first] for m in g.makes]}
            later = {s: i for s, i in use.items() if i > first + 2}
            do = {first: [{"do": what, "storage": s} for s in later for what in ("out", "drop")]}
            for s, i in later.items():
                do.setdefault(i, []).append({"do": "in", "storage": s})
            plan = {"limit_bytes": 0, "entry": [s for s, t in enumerate(slots) if t.persistent],
                    "boundaries": [{"before": i, "do": do[i]} for i in sorted(do)]}
            moved.append(sum(slots[s].bytes for s in later))
            promised.append(peak(iteration, plan))
            return plan

        moved, promised = [], []
        want = execute(script)
        with mock.patch.object(tensile.iteration.Iteration, "_boundary", within):
            p = Planner(make)
            self.assertEqual(differs(want, execute(script, p)), "")
        records = p.graphs[0].records
        self.assertEqual([records[-1].phase, records[0].phase], ["backward", "backward"])
        touched = [t for _, plan, t in p.iterations if plan]
        self.assertEqual(len(touched), 6)
        self.assertGreater(moved[0], 100_000)
        self.assertAlmostEqual(touched[-1], promised[0], delta=64)


if __name__ == "__main__":
    unittest.main()
