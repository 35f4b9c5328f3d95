"""Iterations whose ops cannot be seen, as those of compiled code: an op of the recording is all that runs between two of the
tensors that autograd saves or takes back.

Such an op makes what is saved at its begin, and needs what is taken back there. All else that the allocator has meanwhile is
its scratch. So a plan of it moves nothing but what autograd saves, and is played by that alone.
"""

import gc
import time

import torch

from .capture import Record
from .events import Events, marking
from .storages import Tensor, identity, lies, storage_of


def all_bytes(device, more):
    """Returns the bytes of all storages on a device that tensors of Python have."""
    sizes = {}
    for t in (*gc.get_objects(), *more):
        if issubclass(type(t), Tensor):
            try:
                if t.layout == torch.strided and lies(storage_of(t), device):
                    sizes[identity(t)] = storage_of(t).nbytes()
            except Exception:  # a wrapper has none, and what a compiler traces may be anything
                continue
    return sum(sizes.values())


class Segments:
    """Records iterations, each from the end of a step to the next."""

    def __init__(self, session):
        self.session, self.recorder = session, session.recorder
        self.events = None
        self.warm = False  # the cycle before was measured as well: torch tells the end of what it has told the begin of

    def begin(self):
        """Begins a cycle at the end of a step."""
        s = self.session
        self.ins, self.outs, self.peaks, self.lost = [], [], [], []
        self.lasting = {identity(p) for p in s.parameters}
        self.begun = time.perf_counter_ns()
        if s.figures is not None:
            s.figures.take()
            self.resident = 0
        else:
            self.resident = s.room.away + all_bytes(s.device, [
                p.grad for p in s.parameters if p.grad is not None])
            self.lost.append(s.room.lost)
            self.events = Events().start()

    def stop(self):
        """Ends the measuring of a cycle; its records have their scratch then."""
        records = self.recorder.records
        if self.session.figures is None:
            if self.events is None:
                return False
            now = most = self.resident
            for size in self.events.stop() + [None]:
                if size is None:
                    self.peaks.append(most)
                    k = len(self.peaks)
                    now -= self.lost[k] - self.lost[k - 1] if k < len(self.lost) else 0
                    most = now
                else:
                    now += size
                    most = max(most, now)
            known, self.events = self.events.known, None
        else:
            known = True
        warm, self.warm = self.warm, known
        if not warm or not known or len(self.peaks) < len(records):
            return False
        self._scratch(records)
        return True

    def _scratch(self, records):
        """Has each op use what there was beside what is saved."""
        begun, alive = self.recorder.begun, [0] * (len(records) + 1)
        for s in {s for r in records for s in r.outs}:
            alive[s.born - begun] += s.bytes
            if s.died is not None:
                alive[s.died - begun] -= s.bytes
        now = 0
        for r, change, peak in zip(records, alive, self.peaks):
            now += change
            r.scratch = max(0, peak - now)

    def cut(self):
        """An op ends: something is saved or taken back."""
        s, recorder = self.session, self.recorder
        r = Record()
        r.ins, r.outs, self.ins, self.outs = self.ins, self.outs, [], []
        r.func = f"what runs in the {s.phase} phase"
        r.shapes, r.fresh, r.writes = [()] * len(r.outs), set(r.outs), set()
        r.random = r.empty = r.overwrites = r.looks = False
        r.once = r.probed = r.grad = True
        r.scratch, r.phase, r.types, r.cut = 0, s.phase, None, None
        now = time.perf_counter_ns()
        r.ns, self.begun = now - self.begun, now
        recorder.records.append(r)
        recorder.at += 1
        recorder.poll(recorder.young)
        if s.figures is not None:
            self.peaks.append(s.figures.take()["allocated_bytes"]["all"]["peak"] + s.room.away)
        elif self.events is not None:
            self.lost.append(s.room.lost)
            with marking():
                pass

    def saved(self, t):
        """Returns the storage of a saved tensor; None: it outlives the iteration, or has none."""
        recorder = self.recorder
        try:
            if identity(t) in self.lasting:
                return None
            new = identity(t) not in recorder.known
            s = recorder.see(t, True)
        except NotImplementedError:  # a sparse one
            return None
        if s.born < recorder.begun or s.elsewhere:
            return None
        if new:
            self.outs.append(s)
        return s

    def needs(self, s):
        """What runs next needs a storage."""
        if s not in self.ins and s not in self.outs and s.born >= self.recorder.begun:
            self.ins.append(s)
