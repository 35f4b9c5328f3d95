"""What of an iteration may be away by saved tensors alone, and which of it is to be, so that a plan's bytes are kept."""

import itertools

from .copies import Direct, Streams
from .iteration import LEAST

AHEAD = {"cpu": 0, "cuda": 4}  # unpacks before the one that needs a storage, at which its copy begins
LEAST_MOVED = {"cpu": LEAST, "cuda": 1 << 20}  # bytes


class Saves:
    """The packs of a recorded cycle."""

    resident = None  # bytes at its begin; None: those of the storages that are known

    def __init__(self, packs, alone, unpacks, needed):
        self.packs, self.alone, self.unpacks, self.needed = packs, alone, unpacks, needed


class Away:
    """A storage that may be away between two ops of an iteration."""

    __slots__ = ("slot", "pack", "unpack", "begin", "end")

    def __init__(self, slot, pack, unpack, begin, end):
        self.slot, self.pack, self.unpack, self.begin, self.end = slot, pack, unpack, begin, end


def slots_of(iteration):
    """Returns the slot of each storage of both cycles that has one."""
    first, second = iteration.made_of[:2]
    found = dict(iteration.slot_of)
    for a, b in zip(first, second):
        for x, y in zip(a.ins + a.outs, b.ins + b.outs):
            for s, other in (x, y), (y, x):
                if s not in found and other in iteration.slot_of:
                    found[s] = iteration.slot_of[other]
    return found


def candidates(iteration, kind, slots):
    """Returns what may be away."""
    saves, begun, found = iteration.saves, iteration.made_of[2], []
    for s, (pack, at) in saves.alone.items():
        t = slots.get(s)
        if t is None or t.persistent or t.fixed or t.bytes < LEAST_MOVED[kind]:
            continue
        unpack = saves.needed.get(s)
        first = len(saves.unpacks) if unpack is None else max(0, unpack - AHEAD[kind])
        end = saves.unpacks[first] - begun if first < len(saves.unpacks) else iteration.length
        if end > at - begun:
            found.append(Away(t, pack, unpack, at - begun, end))
    return found


def size_of(iteration, slots, s):
    t = slots.get(s)
    return iteration.size.get(s, s.bytes) if t is None else t.bytes


def bytes_at(iteration, slots):
    """Returns how many bytes an iteration has at each op, from a step's end to the next."""
    first, second, begun, there = iteration.made_of[:4]
    n = len(second)
    change = [0] * (n + 1)
    scratch = [iteration.groups[g].scratch if g is not None else 0 for g in iteration.group_at]
    for s in dict.fromkeys([*there, *(s for r in first + second for s in r.ins + r.outs)]):
        begin = max(s.born - begun, 0)
        end = n if s.died is None or s.died > begun + n else max(s.died - begun, begin + (s.born >= begun))
        if not s.elsewhere and begin < end:
            change[begin] += size_of(iteration, slots, s)
            change[end] -= size_of(iteration, slots, s)
    return [a + scratch[p - iteration.tail] for p, a in zip(range(n), itertools.accumulate(change))]


def choose(iteration, kind, slots, most):
    """Returns what is to be away so that an iteration has no more than so many bytes; None: it cannot be so. What is away
    for longest goes first, for fewer bytes the same and more: so an iteration never has more where the limit is lower."""
    live, left, chosen = bytes_at(iteration, slots), candidates(iteration, kind, slots), []
    while live and max(live) > most:
        at = live.index(max(live))
        covering = [c for c in left if c.begin <= at < c.end]
        if not covering:
            return None
        c = max(covering, key=lambda c: (c.end - c.begin, c.slot.bytes))
        left.remove(c)
        chosen.append(c)
        for p in range(c.begin, c.end):
            live[p] -= c.slot.bytes
    return chosen


class Moves:
    """What goes to the host in a kind of iteration, and what its packs are."""

    def __init__(self, iteration, kind, slots, chosen):
        self.iteration = iteration
        self.copies = (Streams if kind == "cuda" else Direct)(iteration.slots)
        self.room = {c.slot.number: c.slot.bytes for c in chosen}  # slot that goes -> bytes of its copy
        self.copies.reserve(self.room)
        self.packs = [(shape, dtype) for _, shape, dtype in iteration.saves.packs]
        saved = [s for s, _, _ in iteration.saves.packs]
        self.bytes = [0 if s is None else size_of(iteration, slots, s) for s in saved]
        self.slots = [slots[s].number if s in slots and slots[s].number in self.room else None for s in saved]
        self.of = [slots[s].number if s in slots else None for s in saved]
        self.looks = {}  # number of a pack -> slots that packs alone should hold by then
        self.starts = {}  # number of an unpack -> slots whose copies begin there
        for c in chosen:
            self.looks.setdefault(c.pack, []).append(c.slot.number)
            if AHEAD[kind] and c.unpack is not None:
                self.starts.setdefault(max(0, c.unpack - AHEAD[kind]), []).append(c.slot.number)
        self.kept = {}  # slot -> weak reference to what is, or was, kept of it
        begun, there = iteration.made_of[2:4]
        self.resident = iteration.saves.resident or sum(  # bytes when an iteration begins
            size_of(iteration, slots, s) for s in there if not s.elsewhere and (s.died is None or s.died >= begun))
        self.doubts = 0  # iterations in a row that were other than recorded

    def living(self, n):
        """Returns what is kept of a slot; None: nothing."""
        kept = self.kept.get(n)
        return kept() if kept is not None else None

    def like(self, other, n):
        """Reports whether another kind has the same first n packs."""
        return self.packs[:n] == other.packs[:n]

    def grown(self, found):
        """Returns the bytes of each slot of an iteration that was larger, given those of some packs: of what no pack has,
        they are as many times more as those of the pack that has grown most. Empty: it was as large before."""
        slots = self.iteration.slots
        larger = {self.of[k]: size for k, size in found.items() if self.of[k] is not None
                  and size > slots[self.of[k]].bytes and not slots[self.of[k]].persistent}
        times = max((size / slots[n].bytes for n, size in larger.items()), default=1)
        sizes = {t.number: int(t.bytes * times) for t in slots if times > 1 and not t.persistent}
        return {**sizes, **larger}


def moves(iteration, device, plan_bytes):
    """Returns the moves of saved tensors that keep an iteration within the bytes of its plan; None: there are none."""
    if iteration.saves is None or not plan_bytes:
        return None
    slots = slots_of(iteration)
    chosen = choose(iteration, device.type, slots, plan_bytes)
    return None if chosen is None else Moves(iteration, device.type, slots, chosen)
