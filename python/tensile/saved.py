"""Playback by saved tensors: a plan that moves nothing but what autograd saves needs no look at ops.

Torch gives each tensor that an op saves for the backward pass to pack, and takes it back from unpack. A pack keeps the
tensor itself. If its storage is one that the plan takes away, it is copied to the host once nothing but packs holds it,
and its memory is given back; the unpack that needs it brings it back. From then on nobody can have read or written it
in between, whatever the script does: an iteration other than the recorded one costs memory or time, and never bits.

    forward    op: pack 0 | op: pack 1 | op: pack 2, and only packs hold what 0 has: out, drop | ...
    backward   ... | op: unpack 2 | op: unpack 1 | op: unpack 0: in

A recording notes at which pack each storage is held by packs alone, and before which op it is needed again. Torch
compares no versions of what hooks have saved, so unpack does.
"""

import sys
import threading
import weakref

import torch
from torch._C import _autograd

from . import modes
from .away import Saves
from .storages import emptied, identity, lies, storage_of

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

    __slots__ = ("tensor", "version", "kept", "names", "theirs", "__weakref__")

    def __init__(self, t):
        self.tensor = d = kept_as(t)
        self.version = version_of(t, d)
        self.kept = None
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
    """A storage that the plan takes away, while packs have it."""

    __slots__ = ("moves", "number", "packs", "size", "away", "__weakref__")

    def __init__(self, moves, number, size):
        self.moves, self.number, self.size = moves, number, size
        self.packs = []  # weak references
        self.away = False

    def storage(self):
        """Returns the storage if packs alone hold it, else None."""
        tensors = self.tensors()
        return only(tensors) if tensors else None

    def tensors(self):
        return [p.tensor for p in (r() for r in self.packs) if p is not None and p.kept is not None]


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
                p.kept = self._note(t, p)
            else:
                self.whole = False
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
                self._needed(p.kept)
            except Exception as e:
                self.whole = False
                self.session.broken(e)
        return p.unpacked()

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
            kept = self.current[i] = Kept(m, n, size)
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
                storage = kept.storage()
                if storage is None or storage.nbytes() != kept.size or self.session.recorder.lends(storage):
                    if kept.tensors():
                        self.late.append(kept)
                    continue
                self.current.pop(storage._cdata, None)
                m.copies.out(kept.number, storage)
                self.leaving.append(kept)
                del storage
                if m.copies.at_once:
                    self._settle()

    def _settle(self):
        """Gives back the memory of what was copied."""
        leaving, self.leaving = self.leaving, []
        for kept in leaving:
            storage = kept.storage()
            if storage is not None:
                kept.moves.copies.settle(kept.number)
                kept.away = True  # before it is, should a signal come in between
                kept.away = emptied(storage)

    def unpack(self, p):
        if p.theirs is not None:
            return p.theirs(p.tensor)
        kept = p.kept
        if type(kept) is Kept:
            if kept.away:
                self._bring(kept, p.tensor)
            elif kept in self.leaving:
                self.leaving.remove(kept)  # it may be written now
            kept.moves.copies.use(kept.number)
        m = self.moves
        if m is not None and m.starts:
            for n in m.starts.get(self.u, ()):
                self._start(m, n)
            self.u += 1
        return p.unpacked()

    def _bring(self, kept, t):
        with self.session.lock, modes.own():  # several threads may ask for it
            if not kept.away:
                return
            storage = storage_of(t)
            if storage.nbytes() != kept.size:
                storage.resize_(kept.size)
            kept.moves.copies.fetch(kept.number, storage)
            kept.away = False

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
