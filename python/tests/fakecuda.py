"""A device that calls itself CUDA, on the CPU: streams that are late, an allocator with figures, and a wall."""

import contextlib
import ctypes
from types import SimpleNamespace
from unittest import mock

import torch
from scripts import Run
from tensile import away, hooks, pieces, player, saved, used
from tensile.capture import Recorder
from tensile.events import Times
from tensile.session import Session
from tensile.storages import written
from test_streams import Cuda, Late


class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost").split()]


mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
if mallinfo is not None:
    mallinfo.restype = Info


class Device:
    """A device that calls itself CUDA and has the storages of the CPU."""
    type, index = "cuda", 0

    def __eq__(self, other):
        return other == torch.device("cpu")


class Event:
    """An event with a time; each record is a tick."""
    made, now, waits = 0, 0.0, 0

    def __init__(self, enable_timing):
        assert enable_timing
        Event.made += 1

    def record(self):
        Event.now += 0.001
        self.at, self.waited = Event.now, False

    def synchronize(self):
        Event.waits, self.waited = Event.waits + 1, True

    def elapsed_time(self, end):
        assert end.waited, "it is asked for before it has happened"
        return end.at - self.at


class OnCuda(Run):
    def join(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        if self.planner is not None:
            self.session = Session([SimpleNamespace(device=Device())], optimizer, self.planner)
            self.session.parameters = list(model.parameters())
            self.session.room = saved.Room(self.session)
            self.session.enter(hooks.install(self.session))


@contextlib.contextmanager
def patched(stats, reset, synchronize=lambda: None, empty_cache=lambda: None, streams=None):
    """Has what Tensile calls of torch.cuda be this, and figures of the allocator those of two functions."""
    Event.made, Event.now, Event.waits = 0, 0.0, 0
    streams = streams or Cuda(1, 0.5)
    with contextlib.ExitStack() as patches:
        for owner, name, new in (
                (torch._C, "_cuda_memoryStats", stats), (torch._C, "_cuda_resetPeakMemoryStats", reset),
                (torch.cuda, "Event", Event), (torch.cuda, "current_device", lambda: 0),
                (torch.cuda, "default_generators", (torch.Generator(),)), (torch.cuda, "synchronize", synchronize),
                (torch.cuda, "empty_cache", empty_cache), (torch.cuda, "set_per_process_memory_fraction", lambda _: None),
                (torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=1 << 30)),
                (Times, "pool", []), (player, "Streams", lambda slots: Late(slots, streams)),
                (away, "Streams", lambda slots: Late(slots, streams))):
            patches.enter_context(mock.patch.object(owner, name, new, create=True))
        yield


class Memory:
    """The memory of the device: what malloc has given since it began, and in iterations without a plan a wall."""

    def __init__(self, wall):
        self.wall, self.base = wall, 0
        self.base = self.live()
        self.peak = self.kept = 0  # the most since it was set back, and what the allocator has not given back
        self.most = 0
        self.refused = self.emptied = 0

    def live(self):
        info = mallinfo()
        return info.uordblks + info.hblkhd - self.base

    def look(self):
        now = self.live()
        self.peak, self.kept, self.most = max(self.peak, now), max(self.kept, now), max(self.most, now)
        return now

    def stats(self, device):
        now = self.look()
        pool = {"current": now, "peak": self.peak, "allocated": 0, "freed": 0}
        return {"num_alloc_retries": 0, "num_ooms": self.refused, "allocated_bytes": {"all": pool},
                "reserved_bytes": {"all": dict(pool, current=self.kept)}}

    def reset(self, device):
        self.peak = self.live()

    def empty_cache(self):
        self.kept, self.emptied = self.live(), self.emptied + 1

    def refuse(self):
        self.refused += 1
        raise torch.OutOfMemoryError("no room")

    @contextlib.contextmanager
    def begins(self):
        """An op that is recorded, and would have more than there is, fails, and so does what brings a storage back."""
        timed, bring, back = Recorder.timed, saved.Kept.bring, used.Used.back

        def run(recorder, r, func, args, kwargs):
            out = timed(recorder, r, func, args, kwargs)
            if self.live() > self.wall and not written(func, args, kwargs):
                del out
                recorder.running = True
                self.refuse()
            self.look()
            return out

        def brings(kept, t):
            if self.live() + kept.size > self.wall:
                self.refuse()
            bring(kept, t)
            self.look()

        def goes_back(these, i):
            if i in these.gone and self.live() + these.gone[i].bytes > self.wall:
                self.refuse()
            back(these, i)
            self.look()
        with patched(self.stats, self.reset, empty_cache=self.empty_cache), mock.patch.dict(away.LEAST_MOVED, cuda=1024), \
                mock.patch.dict(pieces.LEAST, cuda=16 << 10), mock.patch.object(Recorder, "timed", run), \
                mock.patch.object(saved.Kept, "bring", brings), mock.patch.object(used.Used, "back", goes_back):
            yield self
