"""What a script has trained, for tensile run --compare: TENSILE_OBSERVE names the file of JSON that it is written into at the end.

losses: the number at which each backward pass begins, as float.hex(), None for several; steps_ns: when each step of an
optimizer ended; optimizers: in the order of their first steps, with the SHA-256 of the bytes of each parameter and of
each tensor of their state, as they are when the optimizer goes or the script ends.
"""

import atexit
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
        self.known = weakref.WeakKeyDictionary()  # optimizer -> what digests it once
        backward = torch.autograd.backward

        def observed(*args, **kwargs):
            self.began(args[0] if args else kwargs.get("tensors"))
            return backward(*args, **kwargs)

        torch.autograd.backward = observed
        sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(self.stepped)
        atexit.register(self.write)

    def began(self, tensors):
        from . import modes

        loss = None
        if isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
            with modes.own():
                loss = float.hex(tensors.detach().to(torch.float64).item())
        self.losses.append(loss)

    def stepped(self, optimizer, args, kwargs):
        self.steps.append(time.perf_counter_ns())
        entry = self.known.get(optimizer)
        if entry is None:
            what = {"optimizer": type(optimizer).__name__, "steps": 0, "tensors": {}}
            self.optimizers.append(what)
            # The dictionary outlives the optimizer until its tensors are digested.
            end = weakref.finalize(optimizer, digest, what, vars(optimizer), names(optimizer))
            end.atexit = False  # write does that
            self.known[optimizer] = entry = (what, end)
        entry[0]["steps"] += 1

    def write(self):
        if os.getpid() != self.process:
            return
        sys.modules["tensile"].home()
        for _, end in list(self.known.values()):
            end()
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
                what["tensors"][name] = sha256(p)
                for key, value in sorted(optimizer["state"].get(p, {}).items(), key=lambda item: str(item[0])):
                    what["tensors"][f"{name}, {key}"] = sha256(value)


def sha256(value):
    if not isinstance(value, torch.Tensor):
        return repr(value)
    try:
        t = value.detach().cpu().contiguous()
        return hashlib.sha256(ctypes.string_at(address(t), t.numel() * t.element_size())).hexdigest()
    except Exception as e:  # a tensor without memory of its own
        return f"not readable ({type(e).__name__})"


def begin():
    """Observes this process, if it is the one that is to be observed: the first that has torch."""
    path = os.environ.pop(VARIABLE, None)
    if path is not None:
        Observer(path)
