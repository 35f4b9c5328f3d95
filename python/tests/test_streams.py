"""Copies on streams of their own, with streams that run as late, as early, or in as odd an order as their events allow."""

import random
import unittest
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import scripts
from plans import random_plan
from scripts import LONG, Planner, differs, execute
from test_saved import script, within
from tensile import away, player, saved
from tensile.copies import Streams
from tensile.storages import Weak, arguments, identity, results, storage_of, view, written


class Cuda:
    """What Streams calls of torch.cuda. Copies wait in queues until something waits for them, or until chance lets them run.
    The stream where ops run is never behind, but within Behind: there by the newest op."""

    def __init__(self, seed, often):
        self.random, self.often = random.Random(seed), often
        self.streams, self.on, self.registered = [], None, set()
        self.compute = Stream(self)
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
        self.stream = stream or self.cuda.compute
        self.at = self.stream.done + len(self.stream.queue)

    def happen(self):
        if self.stream and self.stream.done < self.at:
            self.stream.run(self.at - self.stream.done)


class Arrival:
    """What an op has written, which comes when the stream where ops run gets there."""

    def __init__(self, tensor):
        self.to = Bytes(view(storage_of(tensor)))
        self.bytes, self.came = self.to.get().clone(), False

    def show(self, on):
        """Has it be there for an op that reads it, or no more."""
        target = None if self.came else self.to.get()
        if target is not None:
            target.copy_(self.bytes) if on else target.fill_(255)

    def come(self):
        self.show(True)
        self.came = True


class Behind(TorchDispatchMode):
    """Has what ops write be there only when something waits for the stream where they run. Where a session looks at ops it
    looks at bytes, too, for which a GPU would wait."""

    def __init__(self, run, cuda):
        super().__init__()
        self.run, self.cuda, self.last = run, cuda, {}

    @classmethod
    def ignore_compile_internals(cls):
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        session = self.run.session
        if session is None or session.course != session._saved:
            self.cuda.compute.synchronize()
            return func(*args, **(kwargs or {}))
        tensors = arguments(args, kwargs)
        coming = [self.last[i] for i in dict.fromkeys(map(identity, tensors)) if i in self.last]
        for arrival in coming:
            arrival.show(True)
        out = func(*args, **(kwargs or {}))
        writes = {identity(t): t for t in written(func, args, kwargs or {})}
        made = {i: t for t in results(out) if (i := identity(t)) not in set(map(identity, tensors))}
        for i, t in {**writes, **made}.items():
            if storage_of(t).nbytes():
                self.last[i] = Arrival(t)
                self.last[i].show(False)
                self.cuda.compute.queue.append(self.last[i].come)
        for arrival in coming:
            if arrival.to.get() is not None and identity(arrival.to.get()) not in writes:
                arrival.show(False)
        return out

    def __exit__(self, *e):
        super().__exit__(*e)
        self.cuda.compute.synchronize()


def behind(script, cuda):
    """Returns a script whose ops are behind."""
    def run(run, **options):
        with Behind(run, cuda):
            yield from script(run, **options)
    return run


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
            if target is None:
                self.cuda.faults.append("a copy to memory that is gone")
                raise AssertionError(self.cuda.faults)  # after which the script trains without a plan
            if source is None:  # others have written there: this copy must be one that nobody needs
                target.fill_(255)
            else:
                target.copy_(source)
        self.cuda.on.queue.append(do)
        self.cuda.chance()


NOTICED = AssertionError, RuntimeError, ArithmeticError, LookupError  # by what is computed of memory that is not there


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
                with self.assertRaises(NOTICED):
                    self.run_all(broken)


@unittest.skipUnless(saved.AVAILABLE, "needs a torch that says which hooks are there")
class Saved(unittest.TestCase):
    """The same where an iteration is played by what autograd saves, and ops are behind."""

    def run_all(self, streams, cuda=Cuda):
        torch.set_num_threads(1)
        want, went = execute(script, iterations=7), 0
        for seed, often in ((1, 0.0), (3, 0.9), (2, 0.5))[:None if LONG else 2]:
            fake = cuda(seed, often)
            with mock.patch.object(away, "Direct", lambda slots: streams(slots, fake)), \
                    mock.patch.dict(away.AHEAD, cpu=2):
                p = Planner(within(0))
                try:
                    got = execute(behind(script, fake), p, iterations=7)
                finally:
                    self.assertEqual(fake.faults, [], f"seed {seed}")
                self.assertEqual(differs(want, got), "", f"seed {seed}")
                self.assertEqual(p.lines, [], f"seed {seed}")
                went += sum(s.done for s in fake.streams)
        self.assertGreater(went, 0)

    def test_bits(self):
        self.run_all(Late)

    def test_each_wait_is_needed(self):
        """Of the buffer for its last reader, of ops for the copy, and of the copy for what writes the buffer."""
        class NoSettle(Late):
            def settle(self, n):
                self.use(n)

        class NoUse(Late):
            def use(self, n):
                self.coming.pop(n, None)

        class NoWriter(Late):
            def _copy(self, stream, after, to, what):
                def wait(event):
                    if event.stream is not self.cuda.compute:
                        Stream.wait_event(stream, event)
                with mock.patch.object(stream, "wait_event", wait):
                    return super()._copy(stream, after, to, what)

        for broken in NoSettle, NoUse, NoWriter:
            with self.subTest(broken=broken.__name__):
                with self.assertRaises(NOTICED):
                    self.run_all(broken)


if __name__ == "__main__":
    unittest.main()
