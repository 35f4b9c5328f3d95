"""Copies of storages on the host, and the ways there and back.

Direct copies on the CPU: a copy has ended when out or fetch returns. Streams is for CUDA:

    compute stream   ... op | out: record | ... op | drop: wait | resize_(0) | resize_ | fetch: record | op | wait | op
    stream out               |  wait, copy, record ^
    stream in                                                             |  wait, copy, record      ^

A block of the caching allocator belongs to the compute stream. So memory is given back there once the copy out of it
has ended, and a copy into it begins once the compute stream has come to where it was given.
"""

import mmap
import sys
import time

import torch

from .storages import view

ALIGN = 512  # bytes, of a copy within the pool of the host


def say(text):
    print("tensile: " + text, file=sys.stderr, flush=True)


def on_host(count):
    """Returns bytes on the host that are not torch's, and that no process shares which is forked meanwhile."""
    return torch.frombuffer(mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype=torch.uint8)


class Direct:
    """Copies that have ended when they return, each in memory of its own from its first use on."""

    at_once = True  # a copy has ended when out or fetch returns
    coming = frozenset()  # slots whose copies to the device may not have ended

    def __init__(self, slots):
        self.slots = slots
        self.copies = [None] * len(slots)
        self.waited = 0  # nanoseconds, since this was last set to 0

    def reserve(self, numbers):
        """Gets room for copies of these slots, the only ones that are copied out until it is called again."""
        self.copies = [None] * len(self.slots)

    def bytes(self):
        return sum(c.numel() for c in self.copies if c is not None)

    def out(self, n, storage):
        begun = time.perf_counter_ns()
        size = storage.nbytes()
        if self.copies[n] is None or self.copies[n].numel() < size:
            self.copies[n] = on_host(max(size, self.slots[n].bytes))
        self.copies[n][:size].copy_(view(storage))
        self.waited += time.perf_counter_ns() - begun

    def fetch(self, n, storage):
        begun = time.perf_counter_ns()
        view(storage).copy_(self.copies[n][:storage.nbytes()])
        self.waited += time.perf_counter_ns() - begun

    def settle(self, n):
        """Called before a slot is overwritten on the device, or its memory is taken away."""

    def use(self, n):
        """Called before a slot that is coming is used on the device, or its storage is let go."""


class One:
    """The copy of one storage that goes where no plan says so. It has ended when out or fetch returns, on CUDA as well."""

    def out(self, n, storage):
        self.copy = on_host(storage.nbytes())
        self.copy.copy_(view(storage))

    def fetch(self, n, storage):
        view(storage).copy_(self.copy)
        del self.copy

    def settle(self, n):
        pass


class Streams:
    """Copies on two streams of their own, to and from one pinned piece of memory."""

    at_once = False

    def __init__(self, slots, cuda=torch.cuda):
        self.pinned = False
        self.slots, self.cuda = slots, cuda
        self.outs, self.ins = cuda.Stream(), cuda.Stream()
        self.sent, self.fetched = {}, {}  # slot -> event at the end of its last copy
        self.coming = {}  # slot -> its storage, which must not be freed before the copy into it has ended
        self.places, self.pool = {}, None
        self.waited = 0

    def reserve(self, numbers):
        self.outs.synchronize()
        self.ins.synchronize()
        self._free()
        size = 0
        for n in sorted(numbers):
            self.places[n] = size
            size += -(-self.slots[n].bytes // ALIGN) * ALIGN
        if not size:
            return
        self.pool = on_host(size)
        # torch's own pinned memory comes in powers of two
        error = self.cuda.cudart().cudaHostRegister(self.pool.data_ptr(), size, 0)
        self.pinned = int(error) == 0
        if not self.pinned:
            say(f"{size} bytes of the host could not be pinned (CUDA error {int(error)}; see ulimit -l): slow copies")

    def _free(self):
        if self.pinned:
            self.cuda.cudart().cudaHostUnregister(self.pool.data_ptr())
        self.places, self.pool, self.pinned = {}, None, False
        self.sent.clear()
        self.fetched.clear()

    def __del__(self):
        if self.pinned:
            self.reserve(())

    def bytes(self):
        return 0 if self.pool is None else self.pool.numel()

    def _copy(self, stream, after, to, what):
        """Copies on a stream after an event of another one, and after what the compute stream has been given by now."""
        now = self.cuda.Event()
        now.record()
        stream.wait_event(now)
        if after is not None:
            stream.wait_event(after)
        with self.cuda.stream(stream):
            to.copy_(what, non_blocking=True)
        end = self.cuda.Event()
        end.record(stream)
        return end

    def _host(self, n, storage):
        at = self.places[n]
        return self.pool[at:at + storage.nbytes()]

    def out(self, n, storage):
        self.use(n)
        self.sent[n] = self._copy(self.outs, self.fetched.get(n), self._host(n, storage), view(storage))

    def fetch(self, n, storage):
        self.coming[n] = storage
        self.fetched[n] = self._copy(self.ins, self.sent.get(n), view(storage), self._host(n, storage))

    def settle(self, n):
        self.use(n)
        if n in self.sent:
            self.cuda.current_stream().wait_event(self.sent[n])

    def use(self, n):
        if n in self.coming:
            self.cuda.current_stream().wait_event(self.fetched[n])
            del self.coming[n]


def rates(cuda=torch.cuda, size=64 << 20, times=3):
    """Returns the bytes a second of pinned copies out of and to the device: the fastest of some."""
    device = torch.empty(size, dtype=torch.uint8, device="cuda")
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    found = []
    for to, what in (host, device), (device, host):
        best = None
        for _ in range(times):
            begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            begin.record()
            to.copy_(what, non_blocking=True)
            end.record()
            end.synchronize()
            ms = begin.elapsed_time(end)
            best = ms if best is None else min(best, ms)
        found.append(int(size / best * 1000))
    return found
