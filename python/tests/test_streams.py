"""Copies on streams of their own, with streams that run as late, as early, or in as odd an order as their events allow."""

import random
import unittest
from unittest import mock

import torch

import scripts
from plans import random_plan
from scripts import LONG, Planner, differs, execute
from test_saved import within
from tensile import away, player, saved
from tensile.copies import Streams
from tensile.storages import Weak, storage_of


class Cuda:
    """What Streams calls of torch.cuda. Copies of other streams than the first wait in queues until something waits for
    them, or until chance lets them run; the first stream, where ops run, is never behind."""

    def __init__(self, seed, often):
        self.random, self.often = random.Random(seed), often
        self.streams, self.on, self.registered = [], None, set()
        self.faults = []

    def Stream(self):
        self.streams.append(Stream(self))
        return self.streams[-1]

    def Event(self):
        return Event(self)

    def current_stream(self):
        return self

    def stream(self, stream):
        return On(self, stream)

    def cudart(self):
        return self

    def cudaHostRegister(self, pointer, size, flags):
        self.registered.add(pointer)
        return 0

    def cudaHostUnregister(self, pointer):
        self.registered.remove(pointer)

    def wait_event(self, event):
        event.happen()

    def chance(self):
        while self.random.random() < self.often:
            s = self.random.choice(self.streams)
            s.run(min(len(s.queue), 1))


class On:
    def __init__(self, cuda, stream):
        self.cuda, self.stream = cuda, stream

    def __enter__(self):
        self.cuda.on = self.stream

    def __exit__(self, *_):
        self.cuda.on = None


class Stream:
    def __init__(self, cuda):
        self.cuda, self.queue, self.done = cuda, [], 0

    def wait_event(self, event):
        self.queue.append(event.happen)

    def run(self, count):
        for _ in range(count):
            do = self.queue.pop(0)
            self.done += 1
            do()

    def synchronize(self):
        self.run(len(self.queue))


class Event:
    def __init__(self, cuda):
        self.cuda, self.stream = cuda, None

    def record(self, stream=None):
        self.stream = stream
        self.at = stream.done + len(stream.queue) if stream else 0

    def happen(self):
        if self.stream and self.stream.done < self.at:
            self.stream.run(self.at - self.stream.done)


class Late(Streams):
    """Streams whose copies run when Cuda says so."""

    def _copy(self, stream, after, to, what):
        return super()._copy(stream, after, Deferred(self.cuda, to), what)


class Bytes:
    """Bytes of a storage that this does not keep alive, as a copy on a GPU does not."""

    def __init__(self, tensor):
        self.storage = Weak(storage_of(tensor))
        self.begin, self.end = tensor.storage_offset(), tensor.storage_offset() + tensor.numel()

    def get(self):
        """Returns the bytes, or None where the memory was taken away or given to another."""
        storage = self.storage.get()
        if storage is None or storage.nbytes() < self.end:
            return None
        return torch.empty(0, dtype=torch.uint8).set_(storage)[self.begin:self.end]


class Deferred:
    def __init__(self, cuda, to):
        self.cuda, self.to = cuda, Bytes(to)

    def copy_(self, what, non_blocking):
        assert non_blocking
        to, of = self.to, Bytes(what)

        def do():
            target, source = to.get(), of.get()
            if target is None or source is None:
                self.cuda.faults.append("a copy of memory that is gone")
                raise AssertionError(self.cuda.faults)  # after which the script trains without a plan
            target.copy_(source)
        self.cuda.on.queue.append(do)
        self.cuda.chance()


class Copies(unittest.TestCase):
    def run_all(self, streams):
        torch.set_num_threads(1)
        want = execute(scripts.plain, iterations=7)
        for seed, often in (1, 0.0), (2, 0.5), (3, 0.9):
            cuda = Cuda(seed, often)
            with mock.patch.object(player, "Direct", lambda slots: streams(slots, cuda)):
                p = Planner(lambda number, it: random_plan(it, random.Random(seed), 0.5)[0])
                try:
                    got = execute(scripts.plain, p, iterations=7)
                finally:
                    self.assertEqual(cuda.faults, [], f"seed {seed}")
                self.assertEqual(differs(want, got), "", f"seed {seed}")

    def test_bits(self):
        self.run_all(Late)

    def test_each_wait_is_needed(self):
        """Without the wait before memory is taken away, or before it is used, it is noticed."""
        class NoDrop(Late):
            def settle(self, n):
                self.use(n)

        class NoUse(Late):
            def use(self, n):
                self.coming.pop(n, None)

        for broken in NoDrop, NoUse:
            with self.subTest(broken=broken.__name__):
                with self.assertRaises((AssertionError, RuntimeError, ArithmeticError)):  # by what it computes then
                    self.run_all(broken)


@unittest.skipUnless(saved.AVAILABLE, "needs a torch that says which hooks are there")
class Saved(unittest.TestCase):
    """The same where an iteration is played by what autograd saves."""

    def run_all(self, streams):
        torch.set_num_threads(1)
        want, went = execute(scripts.plain, iterations=7, network="encoder"), 0
        for seed, often in ((1, 0.0), (2, 0.5), (3, 0.9))[:None if LONG else 1]:
            cuda = Cuda(seed, often)
            with mock.patch.object(away, "Direct", lambda slots: streams(slots, cuda)), \
                    mock.patch.dict(away.AHEAD, cpu=2):
                p = Planner(within(0))
                try:
                    got = execute(scripts.plain, p, iterations=7, network="encoder")
                finally:
                    self.assertEqual(cuda.faults, [], f"seed {seed}")
                self.assertEqual(differs(want, got), "", f"seed {seed}")
                self.assertEqual(p.lines, [], f"seed {seed}")
                went += sum(s.done for s in cuda.streams)
        self.assertGreater(went, 0)

    def test_bits(self):
        self.run_all(Late)

    def test_each_wait_is_needed(self):
        class NoSettle(Late):
            def settle(self, n):
                self.use(n)

        class NoUse(Late):
            def use(self, n):
                self.coming.pop(n, None)

        for broken in NoSettle, NoUse:
            with self.subTest(broken=broken.__name__):
                with self.assertRaises((AssertionError, RuntimeError, ArithmeticError)):
                    self.run_all(broken)


if __name__ == "__main__":
    unittest.main()
