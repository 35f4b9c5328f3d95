"""What steps of the optimizer use while there is a limit and no plan: where the bytes in use come near the limit, what was
used longest ago goes to the host, and comes back before an op that uses it.

So what the optimizer keeps is made and used a piece at a time. What no op outside of a step has used since may go outside
of one, too. What autograd saves goes otherwise (saved.Room).
"""

import torch

from . import modes
from .away import LEAST_MOVED
from .copies import One
from .storages import Weak, arguments, emptied, lies, resizable, results, storage_of, written

MARGIN = 8  # part of the limit that is left free for what an op uses beside its operands and results


class Gone:
    """A storage that is on the host."""

    __slots__ = ("weak", "bytes", "copy", "seen")

    def __init__(self, weak, storage, seen):
        self.weak, self.bytes, self.copy = weak, storage.nbytes(), One()
        self.seen = seen  # what the recorder knows of it, if it does


class Used:
    """Keeps steps of torch's own optimizers within the limit: that these work by ops alone is known."""

    def __init__(self, session):
        self.session = session
        self.here = {}  # id of a storage that was last used in a step -> Weak, the one that was used longest ago first
        self.gone = {}  # id -> Gone
        self.away = 0  # bytes of these, as far as the recorder counts them yet
        self.now = ()  # ids of what the op that runs uses

    def steps(self):
        """Reports whether a step runs, or comes, of an optimizer that works by ops alone."""
        return type(self.session.optimizer).__module__.startswith("torch.optim.")

    def ready(self, func, args, kwargs):
        """An op is about to run: brings back what it uses, and in a step makes room for that and for its results."""
        session, storages = self.session, self._storages(arguments(args, kwargs))
        self.now = set(storages)
        with session.lock, modes.own():
            coming = [i for i in storages if i in self.gone]
            if session.stepping and session.unplanned() and self.steps():
                size = sum(self.gone[i].bytes for i in coming)
                if not written(func, args, kwargs):
                    size += sum(s.nbytes() for s in storages.values())
                self.go(session.room.live() + size + session.limit // MARGIN - session.limit)
            for i in coming:
                self.back(i)
        self._note(storages)

    def made(self, out):
        """An op has run, and has returned something."""
        if self.session.stepping:
            self._note(self._storages(results(out)))

    def _storages(self, tensors):
        return {s._cdata: s for t in tensors if t.layout == torch.strided
                and lies(s := storage_of(t), self.session.device)}

    def _note(self, storages):
        for i, s in storages.items():
            weak = self.here.pop(i, None)
            if self.session.stepping and s.nbytes() >= LEAST_MOVED[self.session.device.type]:
                self.here[i] = weak or Weak(s)

    def go(self, size):
        """Has so many bytes go, if they can; returns how many have gone."""
        gone = 0
        for i, weak in list(self.here.items()) if size > 0 else ():
            if gone >= size:
                break
            storage = weak.get()
            if storage is None:
                del self.here[i]
            elif i not in self.now and storage.nbytes() and resizable(storage) and not self.session.recorder.lends(storage):
                known = self.session.recorder.known.get(i)
                if known is None or not known.stays:
                    gone += self._go(i, weak, storage, known)
        return gone

    def _go(self, i, weak, storage, known):
        gone = Gone(weak, storage, known)
        gone.copy.out(0, storage)
        if not emptied(storage):
            return 0
        del self.here[i]
        self.gone[i] = gone
        self.away += gone.bytes
        return gone.bytes

    def back(self, i):
        """Brings a storage back, by its id, if it is away."""
        gone = self.gone.get(i)
        storage = gone.weak.get() if gone is not None else None
        if storage is None:
            return
        storage.resize_(gone.bytes)
        gone.copy.fetch(0, storage)
        del self.gone[i]
        self.away -= gone.bytes
        self.here[i] = gone.weak

    def beside(self, lasting):
        """Returns how many bytes more there are than of what lasts, by ids: what is here beside that, without what is away of
        that."""
        beside = (weak.get() for i, weak in self.here.items() if i not in lasting)
        return sum(s.nbytes() for s in beside if s is not None) - sum(
            gone.bytes for i, gone in self.gone.items() if i in lasting)

    def home(self):
        """Brings all back."""
        for i in list(self.gone):
            self.back(i)
        self.forget()
        self.here.clear()

    def forget(self):
        """Lets copies go of what the script has let go, once the recorder does not count it any more."""
        for i, gone in list(self.gone.items()):
            if gone.weak.expired() and (gone.seen is None or gone.seen.weak is None):
                del self.gone[i]
                self.away -= gone.bytes
