"""The first iterations within a limit where a GPU trains, on one that is made up: figures of its allocator, and a wall."""

import contextlib
import unittest
from unittest import mock

import fakecuda
import test_first
import test_saved
import torch
from fakecuda import Memory, OnCuda
from scripts import differs, execute
from test_first import Limited, deep, peaks


@unittest.skipUnless(fakecuda.mallinfo, "needs a C library that says what it has given")
class Device(test_saved.Base):
    def trains(self, wall, limit, want, script=deep, make=None, **options):
        """Trains within a wall, to the bits of the script alone; returns the planner and the memory."""
        p = Limited(limit, make=make)
        with self.watched(), Memory(wall).begins() as memory, mock.patch("scripts.Run", OnCuda):
            self.assertEqual(differs(want, execute(script, p, **options)), "", p.lines)
        self.assertEqual((p.errors, p.lines), ([], []))
        return p, memory

    def test_a_third(self):
        """What needs three times its limit trains from its first iteration on, and by the plan that comes then."""
        alone, want = peaks(deep, iterations=5, depth=24)
        wall = max(alone) // 3
        p, memory = self.trains(wall, wall, want, make=test_saved.within(0), iterations=5, depth=24)
        self.assertGreater(self.moved, 0)
        self.assertLess(memory.most, wall + (64 << 10))
        self.assertEqual([bool(plan) for _, plan, _ in p.iterations], [False] * 3 + [True] * 2)

    def test_refused(self):
        """Where the allocator has less than the limit, an op that fails runs again, and what is asked for comes back, once
        something has gone."""
        alone, want = peaks(deep, iterations=2)
        wall = max(alone) // 2
        _, memory = self.trains(wall, 1 << 30, want, iterations=2)
        self.assertGreater(memory.refused, 0)
        self.assertEqual(memory.emptied, memory.refused)
        self.assertGreater(self.moved, 0)


if __name__ == "__main__":
    unittest.main()
