"""What an iteration does, seen op by op.

A Recorder runs the ops of a script and notes which storages each reads and makes, and when storages go. When it
probes, it also compares what an op was given before and after (schemas do not tell all writes), looks whether it draws
random numbers, runs it a second time on aliases of its arguments to see whether the bits are the same, and measures
what it allocates beside its outputs. What changes between two ops is written by something that is not seen.
"""

import copy
import sys

import torch

from .events import Events, Times, highest
from .storages import (Unsupported, Weak, arguments, checksum, generators, identity, leaves, lies, random_state,
                       resizable, restored, results, same_state, saved, set_random_state, storage_of, view, written)


class Seen:
    """A storage that an op was seen to touch."""

    __slots__ = ("id", "weak", "bytes", "born", "died", "elsewhere", "stays", "made", "unseen", "sum")

    def __init__(self, storage, born, made, elsewhere):
        self.id, self.weak, self.bytes = storage._cdata, Weak(storage), storage.nbytes()
        self.born, self.died = born, None  # numbers of ops; before the op died it was gone
        self.made = made  # by an op, not from outside
        self.elsewhere = elsewhere  # on another device than the script's, such as the host: no plan counts or moves it
        self.stays = elsewhere  # or it cannot be resized, or is to stay where it is
        self.unseen = False  # something that is no op may write it
        self.sum = None  # checksum at the begin of a probed cycle, or after the last op that touched it there


class Record:
    """One op of the script: the storages of the tensors among its arguments and results, and what was found."""

    __slots__ = ("func", "ins", "outs", "shapes", "fresh", "writes", "random", "once", "empty", "overwrites",
                 "scratch", "ns", "phase", "looks", "grad", "types", "cut",
                 "probed")

    def took(self, ns):
        self.ns = ns

    def view(self):
        """Reports whether it touches no bytes, and does not look whether they are there."""
        return not self.looks and self.aliases()

    def aliases(self):
        return bool(self.outs) and not self.fresh and not self.writes and set(self.outs) <= set(self.ins)


_numbers = (bool, int, float, complex)


def types(func, args):
    """Returns the types of an op's arguments, from which playback knows where tensors are; None: they do not tell."""
    if any(isinstance(a, (list, tuple)) and (not a or not isinstance(a[0], _numbers)) for a in args):
        return None
    named = func._schema.arguments[len(args):]
    return None if any("Tensor" in str(a.type) for a in named) else tuple(map(type, args))


# All that ops of these namespaces do is in their tensors and generators. What others do, such as drawing random numbers
# of their own, cannot be undone: they never run twice.
_KNOWN = ("aten.", "prims.", "prim.")
_SEEDED = torch.Tag.nondeterministic_seeded


class TooLarge(torch.OutOfMemoryError):
    """An op works on more bytes than the limit: no plan can keep it."""


LENT = 64  # storages beside those that live, at which the ones that are gone are forgotten


class Recorder:
    def __init__(self, device, figures=None):
        self.device = device  # of the storages that are planned
        self.figures = figures  # of CUDA's allocator
        self.times = Times(device)
        self.lent = {}  # id -> Weak, of storages that something else reads or writes by their address
        self.most = LENT  # of these, at which those that are gone are forgotten
        self.known = {}  # id -> Seen, of those that live
        self.bytes = 0  # of these, as they were when they were first seen
        self.most_bytes = 0  # that an op may work on; 0: any
        self.room = None  # makes room for so many bytes, and reports whether it could; None: there is no limit
        self.awaited = {}  # and of those of ops that have played, until they are seen
        self.young = {}  # those of the last two cycles, which are polled before each op
        self.at = 0
        self.records = []
        self.begun = 0
        self.there = []  # that lived when the cycle began
        self.unseen = []  # storages that something unseen has written in the probed cycle
        self.running = False  # an op of the script's, whose exceptions are the script's too
        self.ran = None  # a tuple with its result, while what it has done is looked at

    def cycle(self):
        """Ends a cycle and begins the next one; returns the number of its first op, its records, and what lived before."""
        self.times.read()
        self.poll(self.known)
        records, begun, there = self.records, self.begun, self.there
        for s in self.awaited.values():
            s.died = self.at
        self.awaited = {}
        self.records, self.there = [], list(self.known.values())
        self.young = {i: s for i, s in self.known.items() if s.born >= begun}
        self.begun = self.at
        return begun, records, there

    def compare(self, among):
        """Finds which storages something that is not seen has written since an op touched them; returns these."""
        found = []
        for s in among:
            storage = s.weak.get() if s.weak and s.sum is not None and not s.unseen else None
            if storage is not None and storage.nbytes() == s.bytes and checksum(storage) != s.sum:
                s.unseen = s.stays = True
                found.append(s)
        self.unseen += found
        return found

    def sum(self, among):
        """Notes what is in storages, for compare."""
        for s in among:
            storage = s.weak.get() if s.weak and s.bytes and not (s.unseen or s.elsewhere) else None
            s.sum = checksum(storage) if storage is not None and storage.nbytes() == s.bytes else None

    def follow(self, player):
        """Begins a cycle whose first ops have played: they did what they did when they were recorded."""
        self._skip()
        iteration = player.iteration
        first, second, begun = iteration.made_of[:3]
        played, began = (first, begun - len(first)) if iteration.alone else (second, begun)
        played = played[:iteration.tail + player.pos]
        self.at += 1  # of those before
        self.begun, self.there = self.at, list(self.known.values())
        now, ends = {}, began + len(played)
        left = {s: player.left.get(iteration.slot_of[o].number, 0) for a, b in zip(first[:iteration.tail], second)
                for s, o in zip(a.ins + a.outs, b.ins + b.outs) if o in iteration.slot_of}

        def seen(s):
            t = iteration.slot_of.get(s)
            i = t is not None and player.bound[t.number] or left.get(s, 0)
            known = self.known.get(i)
            if s not in now and known is not None and t is not None and t.persistent:
                now[s] = known
            elif s not in now:
                now[s] = o = copy.copy(s)
                o.id, o.weak, o.sum, o.unseen = i, None, None, False
                o.born = self.begun + max(s.born - began, -1)
                o.died = self.begun + s.died - began if s.died is not None and s.died <= ends else None
                o.bytes = player.size[t.number] if t is not None else s.bytes
                if i and o.died is None:
                    self.awaited[i] = o
            return now[s]

        self.records = []
        for r in played:
            r = copy.copy(r)
            r.ins, r.outs = [seen(s) for s in r.ins], [seen(s) for s in r.outs]
            r.fresh, r.writes = {seen(s) for s in r.fresh}, {seen(s) for s in r.writes}
            self.records.append(r)
        self.at += len(played)

    def _skip(self):
        """Ends a cycle that is of no interest."""
        self.times.forget()
        self.poll(self.known)
        self.young, self.awaited = {}, {}

    def resume(self, gradients):
        """Begins a cycle after ops that were not recorded; what they have left are gradients, of what can be seen."""
        self._skip()
        for g in gradients:
            if g.layout == torch.strided:
                self.see(g, False)
        self.at += 1  # of those
        self.records, self.begun, self.there = [], self.at, list(self.known.values())

    def lend(self, i, storage):
        """Has a storage, by its id, stay where it is from now on, whether an op has touched it yet or not."""
        s = self.known.get(i)
        if s is not None:
            s.stays = s.unseen = True
        if len(self.lent) >= self.most:
            for k in [k for k, w in self.lent.items() if w.expired()]:
                del self.lent[k]
            self.most = 2 * len(self.lent) + LENT
        self.lent[i] = Weak(storage)

    def lends(self, storage):
        """Reports whether something that is no op may read a storage at its address."""
        weak = self.lent.get(storage._cdata)
        return weak is not None and not weak.expired()

    def poll(self, among):
        gone = [s for s in among.values() if s.weak.expired()]
        for s in gone:
            s.died, s.weak = self.at, None
            if self.known.pop(s.id, None) is not None and not s.elsewhere:
                self.bytes -= s.bytes
            self.young.pop(s.id, None)

    def see(self, tensor, made):
        i = identity(tensor)
        s = self.known.get(i)
        if s is None:
            storage = storage_of(tensor)
            s = self.awaited.pop(i, None)
            if s is not None and s.bytes == storage.nbytes():
                s.weak = Weak(storage)
            else:
                s = Seen(storage, self.at, made, not lies(storage, self.device))
            if i in self.lent and not self.lent[i].expired():
                s.stays = s.unseen = True
            self.known[i] = self.young[i] = s
            self.bytes += 0 if s.elsewhere else s.bytes
        return s

    def run(self, func, args, kwargs, phase, probe, cut=None):
        """Runs an op, or a piece of one that is cut, and records it."""
        self.poll(self.young)
        r = Record()
        r.func, r.phase, r.grad, r.cut = func, phase, torch.is_grad_enabled(), cut
        r.probed = probe
        tensors = arguments(args, kwargs)
        try:
            r.ins = [self.see(t, False) for t in tensors]
        except NotImplementedError:
            raise Unsupported(f"{func} has a tensor without a storage, such as a sparse one") from None
        r.writes = {self.see(t, False) for t in written(func, args, kwargs)}
        r.types = types(func, args)
        r.random = r.once = r.empty = r.overwrites = r.looks = False
        r.scratch = r.ns = 0
        if probe:
            self.compare(dict.fromkeys(r.ins))
            out = self.probe(r, func, args, kwargs)
            self.sum(dict.fromkeys(r.ins + r.outs))
        else:
            out = self.timed(r, func, args, kwargs)
            self.outputs(r, out)
        if self.most_bytes and not r.aliases():
            self._fits(r)
        self.records.append(r)
        self.at += 1
        return out

    def _fits(self, r):
        """Ends the script whose op can be in no plan within the limit."""
        size = sum(s.bytes for s in dict.fromkeys(r.ins + r.outs) if not s.elsewhere)
        if size > self.most_bytes:
            raise TooLarge(f"{r.func} works on {size} bytes, and the limit is {self.most_bytes} ({caller()}): raise "
                           "--memory, or take a smaller batch")

    def timed(self, r, func, args, kwargs):
        begun = self.times.begin()
        self.running = True
        out = func(*args, **kwargs)
        self.running, self.ran = False, (out,)
        self.times.end(begun, r.took)
        return out

    def outputs(self, r, out):
        tensors = results(out)
        try:
            old = {identity(t) for t in tensors} & self.known.keys()
            for t in tensors:
                if identity(t) not in old:
                    self.awaited.pop(identity(t), None)  # that is gone
            r.outs = [self.see(t, True) for t in tensors]
        except NotImplementedError:
            raise Unsupported(f"{r.func} makes a tensor without a storage, such as a sparse one") from None
        r.fresh = {s for s in r.outs if s.id not in old}
        r.shapes = [t.shape for t in tensors]
        if str(r.func).startswith("profiler."):
            for s in r.fresh:
                s.stays = True  # its bytes are a C++ object
        for s in r.writes:
            storage = s.weak.get()
            if storage is None or storage.nbytes() != s.bytes:  # the tensor has another storage now, or it grew
                s.stays = True

    def probe(self, r, func, args, kwargs):
        def key(tensor):
            return storage_of(tensor)

        storages = {s: s.weak.get() for s in dict.fromkeys(r.ins) if not s.elsewhere}
        before = self.copied(storages)
        own = generators(args, kwargs)
        try:
            random = random_state(self.device.type, own)
        except RuntimeError:
            random = None  # of a generator that does not tell its state
        again = saved(args, key), saved(kwargs, key)
        events = (self.figures or Events()).start()
        try:
            out = self.timed(r, func, args, kwargs)
        finally:
            sizes = events.stop()
        drawn = random_state(self.device.type, own) if random else None
        r.random = bool(own) or _SEEDED in getattr(func, "tags", ()) or not same_state(random, drawn)
        self.outputs(r, out)
        most, _ = highest(sizes)
        made = {s for s in r.fresh if not s.elsewhere}
        r.scratch = max(0, most - sum(s.bytes for s in made))
        for s in before:
            if s.stays or storages[s].nbytes() != s.bytes:
                r.once = True
            elif not _holds(storages[s], before[s]):
                r.writes.add(s)
        if len(storages) < len(set(r.ins)):  # nobody tells when what is elsewhere is written
            r.once, r.looks = True, r.aliases() and bool(storages)
            return out
        if random is None or not str(func).startswith(_KNOWN):
            r.once, r.looks = True, r.aliases()
            return out
        if r.aliases():
            r.looks = looks(func, again)
            r.once = r.looks
            return out
        if r.once or not (made or r.writes) or not self._fits_twice(r, made, before):
            r.once = True
            return out
        try:
            self.twice(r, func, again, before, storages, out, random, drawn)
        except torch.OutOfMemoryError:
            r.once = True
        return out

    def copied(self, storages):
        """Returns what is in the operands of an op: their bytes, or checksums of these where bytes would not fit."""
        sizes = {s: s.bytes for s in storages if s.bytes}
        if self.room is None or self.room(2 * sum(sizes.values())):  # the op makes something, too
            try:
                return {s: view(storages[s]).clone() for s in sizes}
            except torch.OutOfMemoryError:
                pass
        return {s: checksum(storages[s]) for s in sizes}

    def _fits_twice(self, r, made, before):
        """Reports whether an op can run again beside what it has made and what was there before."""
        return not any(type(b) is int for b in before.values()) and (self.room is None or self.room(
            r.scratch + sum(s.bytes for s in (*before, *r.writes, *made))))

    def twice(self, r, func, again, before, storages, out, random, drawn):
        """Runs an op that has run once more, from what was there before, and compares bits."""
        after = {s: view(storages[s]).clone() for s in r.writes if s.bytes}
        mine = results(out)

        def run(start):
            for s in after:
                view(storages[s]).copy_(start(before[s]))
            set_random_state(random)
            args, kwargs = restored(again[0], lambda s: s), restored(again[1], lambda s: s)
            theirs = results(func(*args, **kwargs))
            return len(theirs) == len(mine) and all(
                _same(a, b) for a, b, s in zip(mine, theirs, r.outs) if s in r.fresh and not s.elsewhere) and all(
                torch.equal(view(storages[s]), after[s]) for s in after)

        try:
            r.once = not run(lambda b: b)
            if r.once and r.fresh and not r.writes and "empty" in str(func):
                r.empty = True
            last = self.records[-1] if self.records else None
            if not r.once and last and (last.empty or last.overwrites) and r.writes == last_made(self.records):
                r.overwrites = run(torch.bitwise_not)
        finally:
            for s in after:
                view(storages[s]).copy_(after[s])
            set_random_state(drawn)


def _holds(storage, before):
    """Reports whether a storage has the bytes, or the checksum, that it had before."""
    return checksum(storage) == before if type(before) is int else torch.equal(view(storage), before)


def caller():
    """Returns the line of the script that runs: the innermost of its main module, or else outside of torch."""
    frame, found = sys._getframe(1), None
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name == "__main__" or found is None and name.split(".")[0] not in ("torch", "tensile"):
            found = frame
            if name == "__main__":
                break
        frame = frame.f_back
    return "no line" if found is None else f"{found.f_code.co_filename}, line {found.f_lineno}"


def looks(func, again):
    """Reports whether a view fails on a storage whose memory is away: some look at its size."""
    away = []

    def dummy(storage):
        away.append(torch.empty(storage.nbytes(), dtype=torch.uint8, device=storage.device))
        return storage_of(away[-1])

    args, kwargs = restored(again[0], dummy), restored(again[1], dummy)
    for t in away:
        storage_of(t).resize_(0)
    try:
        func(*args, **kwargs)
    except RuntimeError:
        return True
    return False


def last_made(records):
    """Returns what the last op has made, or overwritten after the op before had made it."""
    last = records[-1]
    return last.fresh if last.empty else last.writes


def _same(a, b):
    x, y = storage_of(a), storage_of(b)
    if x.nbytes() != y.nbytes() or a.shape != b.shape or a.stride() != b.stride() or a.dtype != b.dtype:
        return False
    return x.nbytes() == 0 or torch.equal(view(x), view(y))


def digest(records):
    """Returns what two cycles have in common if they do the same to storages of any sizes: ops, and storages by first
    appearance."""
    numbers = {}

    def of(seen):
        return tuple(numbers.setdefault(s, len(numbers)) for s in seen)

    return tuple((r.func, of(r.ins), of(r.outs)) for r in records)


def first_difference(before, records):
    """Returns the first op in which two cycles differ, in words."""
    numbers = {}, {}
    for i, (a, b) in enumerate(zip(before, records)):
        if a.func is not b.func:
            return f"op {i} is {b.func}, was {a.func}"
        x, y = ([n.setdefault(s, len(n)) for s in r.ins + r.outs] for r, n in zip((a, b), numbers))
        if x != y:
            return f"op {i}, {b.func}, has other operands"
    return f"{len(records)} ops, were {len(before)}"


def mark_fixed(storages):
    """Notes which storages cannot be resized."""
    for s in storages:
        storage = s.weak.get() if s.weak and not s.stays else None
        if storage is not None and not resizable(storage):
            s.stays = True
