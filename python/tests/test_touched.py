"""What torch's allocator has at most in a planned iteration is what the plan promised."""

import random
import unittest
from unittest import mock

import torch
from torch import autograd

import scripts
from plans import peak, random_plan
from scripts import Planner, execute
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


if __name__ == "__main__":
    unittest.main()
