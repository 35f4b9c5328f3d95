"""What a script has trained, for tensile run --compare: TENSILE_OBSERVE names the file of JSON that it is written into at the end.

losses: the number at which each backward pass begins, as float.hex(), None for several; steps_ns: when each step of an
optimizer ended; optimizers: in the order of their first steps, with the SHA-256 of the bytes of each parameter and of
each tensor of their state, as they are when the optimizer goes or the script ends.
"""

import atexit
import collections
import ctypes
import hashlib
import json
import os
import sys
import time
import weakref

import torch

VARIABLE = "TENSILE_OBSERVE"
address = torch.Tensor.data_ptr  # as it is before a session hooks it, so that nothing counts as lent


class Observer:
    def __init__(self, path):
        self.path, self.process = path, os.getpid()
        self.losses, self.steps, self.optimizers = [], [], []
        self.known = weakref.WeakKeyDictionary()  # optimizer -> what is told of it, its attributes, names of its parameters
        self.gone = []  # these of optimizers that are gone
        backward = torch.autograd.backward

        def observed(*args, **kwargs):
            self.began(args[0] if args else kwargs.get("tensors"))
            return backward(*args, **kwargs)

        torch.autograd.backward = observed
        sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(self.stepped)
        atexit.register(self.write)

    def began(self, tensors):
        from . import modes

        self.digest()
        loss = None
        if isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
            try:
                with modes.own():
                    loss = float.hex(tensors.detach().to(torch.float64).item())
            except Exception:
                pass  # a tensor without memory of its own, which the script may use all the same
        self.losses.append(loss)

    def stepped(self, optimizer, args, kwargs):
        self.steps.append(time.perf_counter_ns())
        trained = self.known.get(optimizer)
        if trained is None:
            what = {"optimizer": type(optimizer).__name__, "steps": 0, "tensors": {}, "unread": []}
            self.known[optimizer] = trained = what, vars(optimizer), names(optimizer)
            self.optimizers.append(what)
            # An optimizer may go in the middle of anything: its attributes stay until its tensors can be read.
            weakref.finalize(optimizer, self.gone.append, trained).atexit = False
        trained[0]["steps"] += 1

    def digest(self):
        """Digests what optimizers have trained that are gone, with all of it at home."""
        if self.gone:
            sys.modules["tensile"].home()
        while self.gone:
            trained = self.gone.pop(0)
            try:
                digest(*trained)
            except Exception as e:  # an optimizer of another form, which the script may use all the same
                trained[0]["unread"].append(f"all ({type(e).__name__})")

    def write(self):
        if os.getpid() != self.process:
            return
        self.gone += self.known.values()
        self.digest()
        with open(self.path, "w") as f:
            json.dump({"losses": self.losses, "steps_ns": self.steps, "optimizers": self.optimizers}, f)


def names(optimizer):
    """Returns the names of the parameters in the largest module that has all of them, by identity."""
    try:
        model = sys.modules["tensile"]._model_of(optimizer)
        return {id(p): name for name, p in model.named_parameters()}
    except Exception:
        return {}


def digest(what, optimizer, names):
    """Digests what an optimizer has trained, given as the dictionary of its attributes."""
    from . import modes

    with modes.own():
        number = 0
        for group in optimizer["param_groups"]:
            for p in group["params"]:
                name = names.get(id(p), f"parameter {number}")
                number += 1
                state = optimizer["state"].get(p, {})
                for what_of, value in [(name, p), *((f"{name}, {key}", state[key]) for key in sorted(state, key=str))]:
                    try:
                        digested = hashlib.sha256()
                        add(digested, value)
                        what["tensors"][what_of] = digested.hexdigest()
                    except Exception:  # such as a tensor without memory of its own
                        what["unread"].append(what_of)


def add(digested, value):
    """Adds the bytes of a value to those that are digested; raises TypeError where they are not known."""
    if isinstance(value, torch.Tensor):
        t = value.detach().cpu().resolve_conj().resolve_neg()
        if t.layout == torch.sparse_coo:
            add(digested, [t.coalesce().indices(), t.coalesce().values()])
        else:
            t = t.contiguous()
            digested.update(f"{t.dtype} {tuple(t.shape)} ".encode())
            digested.update(ctypes.string_at(address(t), t.numel() * t.element_size()))
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            add(digested, [str(key), value[key]])
    elif isinstance(value, (list, tuple, collections.deque)):
        digested.update(f"{len(value)} ".encode())
        for v in value:
            add(digested, v)
    elif value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        digested.update((repr(value) + " ").encode())
    else:
        raise TypeError(type(value))


def begin():
    """Observes this process, if it is the one that is to be observed: the first that has torch."""
    path = os.environ.pop(VARIABLE, None)
    if path is not None:
        Observer(path)
