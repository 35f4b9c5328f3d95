"""Torch's stack of modes: a place below those of the script, work outside of all, and threads, which have stacks of their own."""

import contextlib
import threading

import torch
from torch._C import _get_dispatch_stack_at, _len_torch_dispatch_stack
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

from .storages import arguments, identity, written


@contextlib.contextmanager
def alone():
    """Takes all modes off the stack meanwhile."""
    modes = [_pop_mode() for _ in range(_len_torch_dispatch_stack())]
    try:
        yield modes
    finally:
        for mode in reversed(modes):
            _push_mode(mode)


@contextlib.contextmanager
def own():
    """Has this package's own work run outside of what the script has around it."""
    with alone(), torch._C.DisableTorchFunction(), torch.inference_mode(False):
        yield


# Where enter has put a mode below all others, those below it are of torch itself, as of fake tensors.
below = _len_torch_dispatch_stack


def enter(mode):
    """Puts a mode below those that are there: each of these, when it ends, takes off what is on top."""
    with alone() as above:
        mode.__enter__()
        for name, flags in vars(mode).items() if above else ():
            if name.startswith("old_") and name.endswith("_flags"):
                flags[-1] = False  # there is nothing below it


def entered(mode):
    return any(_get_dispatch_stack_at(i) is mode for i in range(_len_torch_dispatch_stack()))


def leave(mode):
    """Takes a mode off the stack, unless another is above it; reports whether it is off."""
    n = _len_torch_dispatch_stack()
    if n and _get_dispatch_stack_at(n - 1) is mode:
        mode.__exit__(None, None, None)
    return not entered(mode)


@contextlib.contextmanager
def watched(session):
    """Has a thread that begins, or ends, watched. Torch's own flags of modes are those of all threads: they stay."""
    watch = Watch(session)
    _push_mode(watch)
    try:
        yield
    finally:
        if _get_dispatch_stack_at(_len_torch_dispatch_stack() - 1) is watch:
            _pop_mode()


class Watch(TorchDispatchMode):
    """Sees the ops of another thread: those on storages that are known run while nothing moves."""

    supports_higher_order_operators = True

    def __init__(self, session):
        super().__init__()
        self.session = session

    @classmethod
    def ignore_compile_internals(cls):
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        session, kwargs = self.session, kwargs or {}
        known = [] if session.off else [t for t in arguments(args, kwargs) if self._knows(t)]
        if not known:
            return func(*args, **kwargs)
        with session.lock:
            name = threading.current_thread().name
            session.met(name, known, not hasattr(func, "_schema") or any(map(self._knows, written(func, args, kwargs))))
            return func(*args, **kwargs)

    def _knows(self, tensor):
        try:
            return self.session.knows(identity(tensor))
        except NotImplementedError:  # a sparse one
            return False
