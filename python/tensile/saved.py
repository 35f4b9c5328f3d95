"""Playback by saved tensors: a plan that moves nothing but what autograd saves needs no look at ops.

Torch gives each tensor that an op saves for the backward pass to pack, and takes it back from unpack. A pack keeps the
tensor itself. If its storage is one that the plan takes away, it is copied to the host once nothing but packs holds it,
and its memory is given back; the unpack that needs it brings it back. From then on nobody can have read or written it
in between, whatever the script does: an iteration other than the recorded one costs memory or time, and never bits.

    forward    op: pack 0 | op: pack 1 | op: pack 2, and only packs hold what 0 has: out, drop | ...
    backward   ... | op: unpack 2 | op: unpack 1 | op: unpack 0: in

Before there is a plan, what packs alone hold goes in the same way, the oldest first, where a limit is near.

A recording notes at which pack each storage is held by packs alone, and before which op it is needed again. Torch
compares no versions of what hooks have saved, so unpack does.
"""

import contextlib
import sys
import threading
import weakref

import torch
from torch._C import _autograd

from . import modes
from .away import LEAST_MOVED, Saves
from .copies import One
from .events import moving
from .storages import Weak, emptied, identity, lies, resizable, storage_of
from .used import Used

# Whether torch says which hooks are there, and who holds a storage. Torch 2.6 does not: ops are looked at there.
AVAILABLE = hasattr(_autograd, "_top_saved_tensors_default_hooks") and hasattr(torch._C, "_storage_Use_Count")

DOUBTS = 3  # iterations in a row that were other than the recorded one, after which ops are looked at instead

_uses = getattr(torch._C, "_storage_Use_Count", None)


def _references(tensor):
    """Returns how many references of Python there are to a tensor's storage, one of them here."""
    storage = storage_of(tensor)
    return sys.getrefcount(storage)


_ALONE = _references(torch.empty(1))


def only(tensors):
    """Returns the storage of some tensors if nothing else holds it, neither in C++ nor in Python; else None."""
    storage = storage_of(tensors[0])
    if _uses(storage._cdata) == len(tensors) + 1 and sys.getrefcount(storage) == _ALONE:
        return storage
    return None


class Pack:
    """A saved tensor, whose storage may be away."""

    __slots__ = ("tensor", "version", "seen", "kept", "names", "theirs", "__weakref__")

    def __init__(self, t):
        self.tensor = d = kept_as(t)
        self.version = version_of(t, d)
        self.seen = None  # the storage, where that is recorded
        self.kept = None  # and what is kept of it, where it may go
        self.names = t.__dict__ if d is not t and t.__dict__ else None  # what the script has put on it
        self.theirs = None  # the script's own way to unpack, where it has registered one

    def unpacked(self):
        if self.version is not None and version(self.tensor) != self.version:
            raise modified(self.tensor, self.version)
        if _reading.packs is not None:
            _reading.packs.append(self)
        return self.tensor

    def whole(self, unpacked):
        """Returns what a function of the script's own has saved: torch has made another tensor of it."""
        if self.tensor.requires_grad:
            return self.tensor
        if self.names is not None:
            unpacked.__dict__.update(self.names)
        return unpacked


class _Reading(threading.local):
    packs = None  # that were unpacked while a function of the script's own asks for what it has saved


_reading = _Reading()


def saved_tensors(old):
    """Returns the property of a function's context by which a tensor comes back as what it was, with what is on it."""
    def get(ctx):
        before, _reading.packs = _reading.packs, []
        try:
            values = old.__get__(ctx)
            packs = _reading.packs
        finally:
            _reading.packs = before
        if len(packs) != sum(v is not None for v in values):  # hooks of the script's own have it
            return values
        packs.reverse()
        return tuple(None if v is None else packs.pop().whole(v) for v in values)
    return property(get)


def register_hooks(old):
    """Returns a function that registers hooks of the script's own for one saved tensor, which come above ours."""
    def run(one, pack, unpack):
        p = one.data
        if type(p) is not Pack or p.theirs is not None:
            return old(one, pack, unpack)
        t = one.unpack_hook(p)
        p.kept, p.theirs = None, unpack
        with torch.no_grad():
            p.tensor = pack(t)
    return run


class Kept:
    """A storage that may go to the host, while packs have it."""

    __slots__ = ("copies", "number", "packs", "size", "away", "__weakref__")

    def __init__(self, copies, number, size):
        self.copies, self.number, self.size = copies, number, size
        self.packs = []  # weak references
        self.away = False

    def storage(self):
        """Returns the storage if packs alone hold it, else None."""
        tensors = self.tensors()
        return only(tensors) if tensors else None

    def tensors(self):
        return [p.tensor for p in (r() for r in self.packs) if p is not None and p.theirs is None]

    def goes(self, recorder):
        """Begins its copy to the host, if it may go now: packs alone hold it, and nothing knows its address."""
        storage = self.storage()
        if storage is None or storage.nbytes() != self.size or recorder.lends(storage) or not resizable(storage):
            return False
        self.copies.out(self.number, storage)
        return True

    def empty(self):
        """Gives back the memory of what was copied."""
        storage = self.storage()
        if storage is not None:
            self.copies.settle(self.number)
            self.away = True  # before it is, should a signal come in between
            self.away = emptied(storage)

    def bring(self, t):
        """Brings it back from the host, where one of its tensors is."""
        storage = storage_of(t)
        if storage.nbytes() != self.size:
            storage.resize_(self.size)
        self.copies.fetch(self.number, storage)
        self.away = False


def kept_as(t):
    """Returns the tensor that a pack keeps: an alias, as the graph would hold what an op has made in a circle, for good. Of a
    parameter itself, which no op has made, and whose memory the script may change for another."""
    try:
        return t if t.is_leaf and t.requires_grad else t.detach()
    except Exception:  # of a class whose tensors have no such op
        return t


def version(t):
    try:
        return t._version
    except Exception:  # of an inference tensor, which has none, or of a class that allows no such question
        return 0


def version_of(t, kept):
    """Returns the version that what is kept of a tensor has to have when it is taken back. None: it does not count those of the
    tensor, as what a class of the script makes of it, or torch 2.11 while a compiled function runs."""
    v = version(t)
    return v if version(kept) == v else None


def modified(t, was):
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{t.type()} {list(t.shape)}] is at version {version(t)}; expected version {was} instead.")


def enter(hooks):
    """Puts a pair of hooks below those of the script: torch calls the topmost alone. None takes ours away."""
    if not AVAILABLE:
        return
    above = []
    while (top := _autograd._top_saved_tensors_default_hooks(True)) is not None:
        _autograd._pop_saved_tensors_default_hooks()
        if not isinstance(getattr(top[0], "__self__", None), (Notes, Saver)):
            above.append(top)
    if hooks is not None and _autograd._saved_tensors_hooks_is_enabled():
        _autograd._push_saved_tensors_default_hooks(hooks.pack, hooks.unpack)
    for pair in reversed(above):
        _autograd._push_saved_tensors_default_hooks(*pair)


class Notes:
    """What a recorder sees of the packs of a cycle."""

    def __init__(self, session):
        self.session, self.recorder = session, session.recorder
        self.begin()

    def begin(self):
        self.whole = AVAILABLE  # the cycle is seen from its begin on
        self.packs = []  # per pack: storage, or None if it has none here, shape and dtype
        self.held = {}  # storage -> its packs, until it was seen to be held by packs alone
        self.alone = {}  # storage -> number of the pack, and of the op, before which that was seen
        self.unpacks = []  # number of the op before each
        self.needed = {}  # storage -> number of its first unpack

    def take(self):
        """Returns what was noted of a cycle, None if not all of it was, and begins the next."""
        taken = Saves(self.packs, self.alone, self.unpacks, self.needed) if self.whole else None
        if taken is not None and self.session.segments is not None:
            taken.resident = self.session.segments.resident
        self.begin()
        return taken

    def pack(self, t):
        session = self.session
        inside, session.inside = session.inside, True
        p = Pack(t)
        try:
            if session.recording():
                p.seen = self._note(t, p)
            else:
                self.whole = False
            if session.limit and session.unplanned():
                session.room.take(t, p)
        except Exception as e:
            self.whole = False
            session.broken(e)
        finally:
            session.inside = inside
        return p

    def _note(self, t, p):
        """Notes a pack; returns its storage, or None if it has none here."""
        segments = self.session.segments
        if segments is not None:
            segments.cut()
            s = segments.saved(t)
        else:
            try:
                s = self.recorder.see(t, False)
            except (NotImplementedError, RuntimeError):  # a sparse one, or one of a transform
                s = None
        self._look()
        self.packs.append((s, t.shape, t.dtype))
        if s is not None and s not in self.alone and s not in self.needed and p.tensor is not t:
            self.held.setdefault(s, Kept(None, None, 0)).packs.append(weakref.ref(p))
        return s

    def _look(self):
        for s, kept in list(self.held.items()):
            if kept.storage() is not None:
                self.alone[s] = len(self.packs), self.recorder.at
                del self.held[s]
                if self.session.segments is not None:
                    self.session.segments.needs(s)  # it is not away before

    def unpack(self, p):
        if p.theirs is not None:
            return p.theirs(p.tensor)
        if self.session.recording():
            try:
                self._needed(p.seen)
            except Exception as e:
                self.whole = False
                self.session.broken(e)
        if p.kept is None:
            return p.unpacked()
        self.session.room.bring(p)
        return kept_as(p.unpacked())  # by an alias, for as long as which it does not go: else torch takes the tensor itself

    def _needed(self, s):
        segments = self.session.segments
        if segments is not None:
            segments.cut()
            if s is not None:
                segments.needs(s)
        if s is not None and s not in self.needed:
            self.needed[s] = len(self.unpacks)
            self.held.pop(s, None)
        self.unpacks.append(self.recorder.at)


MARGIN = 8  # part of the limit that is left free for what ops make, if that is more than
TIMES = 4  # as many times the largest storage that was saved: the backward pass of one op is some ops


class Goes(Kept):
    """What goes by no plan."""

    __slots__ = ("room",)

    def __init__(self, room, size):
        super().__init__(One(), 0, size)
        self.room = room

    def __del__(self):
        self.room.let_go(self)


class Room:
    """Keeps iterations that have no plan within the limit, as far as what autograd saves can: where bytes come near it, what
    packs alone hold goes to the host, the oldest first."""

    def __init__(self, session):
        self.session, self.recorder = session, session.recorder
        self.here = weakref.WeakValueDictionary()  # id of a storage -> what is kept of it, the oldest first
        self.gone = weakref.WeakSet()
        self.away = self.saved = 0  # bytes of these, and of those
        self.lost = 0  # bytes that were let go while they were away
        self.largest = 0  # bytes of a storage
        self.lasting = {}  # id of a storage of what is trained as the iteration begins -> bytes, and what keeps others from its id
        self.unmet = {id(p): p for p in session.parameters}  # that no op has touched yet
        self.used = Used(session)

    def begin(self):
        """An iteration begins."""
        if self.session.limit:
            storages = map(storage_of, self.session.lasting())
            gone = self.used.gone
            self.lasting = {s._cdata: ((gone[s._cdata].bytes if s._cdata in gone else s.nbytes()), Weak(s))
                            for s in storages}

    def let_go(self, kept):
        if kept.away:
            self.away -= kept.size
            self.lost += kept.size
        else:
            self.saved -= kept.size

    def live(self):
        """Returns how many bytes there are; on a CPU by what is recorded, or else by what is trained and was saved."""
        s = self.session
        if s.figures is not None:
            stats = s.figures.stats(s.figures.device)
            if stats["reserved_bytes"]["all"]["current"] > s.limit:
                torch.cuda.empty_cache()
            return stats["allocated_bytes"]["all"]["current"]
        self.used.forget()
        if s.course != s._record:
            return sum(size for size, _ in self.lasting.values()) + self.saved + self.used.beside(self.lasting)
        known = self.recorder.known
        for i in [i for i, p in self.unmet.items() if p.layout != torch.strided or identity(p) in known]:
            del self.unmet[i]
        return self.recorder.bytes + sum(storage_of(p).nbytes() for p in self.unmet.values()) - self.away - self.used.away

    def take(self, t, p):
        """Takes a pack, and makes room for what the next op makes."""
        if p.tensor is not t and t.layout == torch.strided:
            self._keep(p)
        self.make(0)

    def _keep(self, p):
        storage = storage_of(p.tensor)
        i, size = storage._cdata, storage.nbytes()
        device = self.session.device
        if size < LEAST_MOVED[device.type] or i in self.lasting or not lies(storage, device):
            return
        kept = self.here.get(i)
        if kept is None:
            kept = self.here[i] = Goes(self, size)
            self.saved += size
            self.largest = max(self.largest, size)
        p.kept = kept
        kept.packs.append(weakref.ref(p))

    def fits(self, size):
        """Makes room for so many bytes that an op takes beside what it makes; reports whether they fit."""
        return self.make(size + self.largest - self._margin())

    def _margin(self):
        return max(self.session.limit // MARGIN, TIMES * self.largest)

    def make(self, size):
        """Has what may go give back its memory until so many bytes more fit, and some beside; reports whether they do."""
        with self.session.lock, modes.own():
            over = self.live() + size + self._margin() - self.session.limit
            for i, kept in list(self.here.items()) if over > 0 else ():
                over -= self._go(i, kept)
                if over <= 0:
                    break
            if self.used.steps():
                over -= self.used.go(over)
        return over <= 0

    def clear(self):
        """Has all go that may, as the allocator has found no memory; reports whether anything has gone."""
        with self.session.lock, modes.own():
            gone = sum([self._go(i, kept) for i, kept in list(self.here.items())])
            if self.used.steps():
                gone += self.used.go(sys.maxsize)
            if gone and self.session.figures is not None:
                torch.cuda.empty_cache()
        return gone > 0

    def _go(self, i, kept):
        """Has a storage go, if it can; returns how many bytes that gave back."""
        with self._aside():
            if not kept.goes(self.recorder):
                return 0
            kept.empty()
        if not kept.away:
            return 0
        del self.here[i]
        self.gone.add(kept)
        self.away += kept.size
        self.saved -= kept.size
        return kept.size

    def bring(self, p):
        """Brings back what a pack has, and makes room for that."""
        kept, s = p.kept, self.session
        if s.limit and s.unplanned():
            self.make(kept.size if kept.away else 0)
        if kept.away:
            with s.lock, modes.own():
                if kept.away:
                    self._bring(kept, p.tensor)

    def _bring(self, kept, t):
        with self._aside():
            try:
                kept.bring(t)
            except torch.OutOfMemoryError:
                if not self.clear():
                    raise
                kept.bring(t)
        self.gone.discard(kept)
        self.away -= kept.size
        self.here[identity(t)] = kept
        self.saved += kept.size

    def home(self):
        """Brings all back, before a plan moves storages by what ops touch."""
        self.used.home()
        for kept in list(self.gone):
            self._bring(kept, kept.tensors()[0])

    @contextlib.contextmanager
    def _aside(self):
        """Hides moves from what is measured of the script."""
        s = self.session
        if s.segments is None:
            yield
            return
        with moving():
            yield
        if s.figures is not None:
            s.figures.take()


class Saver:
    """Plays moves back, an iteration at a time."""

    def __init__(self, session):
        self.session = session
        self.begin(None)

    def begin(self, m):
        """Begins an iteration, by moves, or none."""
        self.moves = m
        self.k = self.u = 0  # packs and unpacks so far
        self.current = {}  # id of a storage -> what is kept of it, until it goes
        self.late = []  # kept, that something else held when it should not
        self.leaving = []  # copies of these have begun
        self.why = None  # how the iteration differs
        self.grown = {}  # number of a pack -> bytes, if those are more than recorded

    def pack(self, t):
        k, m = self.k, self.moves
        self.k = k + 1
        p = Pack(t)
        if m is None:
            return p
        try:
            if k >= len(m.packs) or (t.shape, t.dtype) != m.packs[k]:
                m = self._other(k, t)
                if m is None:
                    return p
            if self.leaving or self.late or k in m.looks:
                self._look(k, m)
            n = m.slots[k]
            if n is not None and p.tensor is not t and t.layout == torch.strided:
                self._keep(m, n, p)
        except Exception as e:
            self.moves = None
            self.session.broken(e)
        return p

    def _other(self, k, t):
        """A pack is another than the recorded one: its storage may have other bytes, or this is another kind of iteration."""
        m = self.moves
        if k < len(m.packs) and t.dtype == m.packs[k][1] and t.dim() == len(m.packs[k][0]):
            size = storage_of(t).nbytes() if m.bytes[k] and t.layout == torch.strided else 0
            if size > m.bytes[k]:
                self.grown[k] = size
            return m
        for p in self.session.kinds:
            q = p.moves
            if q is not None and k < len(q.packs) and q.like(m, k) and (t.shape, t.dtype) == q.packs[k]:
                self._becomes(p)
                return q
        self.why = (f"saved tensor {k} is of shape {tuple(t.shape)}" + (
            f", was {tuple(m.packs[k][0])}" if k < len(m.packs) else f", were {len(m.packs)}"))
        self._settle()
        self.moves = None
        return None

    def _keep(self, m, n, p):
        """Keeps a tensor whose storage is to go. If an earlier storage of the slot is still away, as where a graph outlives
        its iteration, its copy is not overwritten."""
        i = identity(p.tensor)
        kept = self.current.get(i)
        if kept is None or kept.number != n:
            storage = storage_of(p.tensor)
            size = storage.nbytes()
            if m.living(n) is not None or size > m.room[n] or not lies(storage, self.session.device):
                return
            kept = self.current[i] = Kept(m.copies, n, size)
            m.kept[n] = weakref.ref(kept)
        p.kept = kept
        kept.packs.append(weakref.ref(p))

    def _look(self, k, m):
        """Has what packs alone hold go to the host."""
        due = self.late
        self.late = []
        for n in m.looks.get(k, ()):
            kept = m.living(n)
            if kept is not None and not kept.away:
                due.append(kept)
        with modes.own():
            self._settle()
            for kept in due:
                if not kept.goes(self.session.recorder):
                    if kept.tensors():
                        self.late.append(kept)
                    continue
                self.current.pop(identity(kept.tensors()[0]), None)
                self.leaving.append(kept)
                if m.copies.at_once:
                    self._settle()

    def _settle(self):
        """Gives back the memory of what was copied."""
        leaving, self.leaving = self.leaving, []
        for kept in leaving:
            kept.empty()

    def unpack(self, p):
        if p.theirs is not None:
            return p.theirs(p.tensor)
        kept = p.kept
        if type(kept) is Kept:
            if kept.away:
                self._bring(kept, p.tensor)
            elif kept in self.leaving:
                self.leaving.remove(kept)  # it may be written now
            kept.copies.use(kept.number)
        m = self.moves
        if m is not None and m.starts:
            for n in m.starts.get(self.u, ()):
                self._start(m, n)
            self.u += 1
        # by an alias, as in Notes: a node that has unpacked one tensor may pack others before it reads it
        return p.unpacked() if kept is None else kept_as(p.unpacked())

    def _bring(self, kept, t):
        with self.session.lock, modes.own():  # several threads may ask for it
            if kept.away:
                kept.bring(t)

    def _start(self, m, n):
        kept = m.living(n)
        tensors = kept.tensors() if kept is not None else ()
        if tensors and kept.away:
            try:
                self._bring(kept, tensors[0])
            except RuntimeError:  # there is no room yet: the unpack that needs it brings it, or says so
                pass

    def end(self):
        """Ends an iteration; returns why it was another than recorded, or None."""
        m, self.current, self.late = self.moves, {}, []
        self._settle()
        for n in list(m.copies.coming) if m is not None else ():
            m.copies.use(n)
        if m is not None and self.k != len(m.packs):
            same = next((p for p in self.session.kinds if p.moves is not None and len(p.moves.packs) == self.k
                         and p.moves.like(m, self.k)), None)
            if same is None:
                self.why = f"{self.k} saved tensors, were {len(m.packs)}"
            else:
                self._becomes(same)
        return self.why

    def _becomes(self, player):
        """The iteration turns out to be of another kind."""
        self.moves, self.session.player, self.grown = player.moves, player, {}
        self.session.peaks.forget()
