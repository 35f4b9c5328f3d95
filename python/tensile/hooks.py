"""Where a session meets torch: ends of steps, backward passes, and accesses that are no ops."""

import functools
import sys
import threading
import types

import torch
import torch.utils.data
import torch.utils.dlpack

from . import modes, saved
from .storages import Untyped


# Modules and functions that take addresses to compare them, or to read what is there, at once, and keep none.
READERS = ("safetensors.", "huggingface_hub.serialization.", "transformers.modeling_utils.",
           "transformers.pytorch_utils.", "accelerate.utils.modeling.id_tensor_storage")


def reads(frame):
    """Reports whether it is a reader that asks for an address in a frame, by a storage with a type or without one."""
    while frame is not None and frame.f_globals.get("__name__") == "torch.storage":
        frame = frame.f_back
    return frame is not None and f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}".startswith(READERS)


@functools.cache
def be_skipped():
    """Has Dynamo leave this package alone: else it compiles hooks that run within a compiled function."""
    from torch._dynamo import trace_rules
    trace_rules.add("tensile")


def eval_frame():
    """Returns the module by which torch runs what is compiled. Torch imports it with the first optimizer or the first op that a
    mode sees."""
    from torch._dynamo import eval_frame
    return eval_frame


class Hooks:
    """Wraps functions of torch until undo."""

    def __init__(self):
        self.undoing = []
        self.wrapped = set()

    def wrap(self, owner, name, make):
        old = getattr(owner, name, None)
        if old is None or (owner, name) in self.wrapped:
            return
        self.wrapped.add((owner, name))
        own = name in vars(owner)
        new = make(old)
        setattr(owner, name, new if isinstance(new, property) else functools.wraps(old)(new))
        self.undoing.append(lambda: setattr(owner, name, old) if own else delattr(owner, name))

    def undo(self):
        while self.undoing:
            self.undoing.pop()()
        self.wrapped.clear()


def install(session):
    """Hooks a session into torch and its optimizer."""
    hooks = Hooks()
    mark = torch._disable_dynamo(lambda: session.mark())  # where the script compiles its optimizer's step
    restores = {}  # of the optimizers whose steps end iterations, by their ids

    def follow(optimizer):
        step = optimizer.step
        inner = getattr(step, "__func__", step)

        @functools.wraps(inner)
        def stepped(self, *args, **kwargs):
            if self is not optimizer:  # a copy
                return inner(self, *args, **kwargs)
            if id(self) not in restores:  # another has taken its place
                return step(*args, **kwargs)
            session.phase, session.stepping = "optimize", True
            try:
                out = step(*args, **kwargs)
            finally:
                session.phase, session.stepping = "forward", False
            if id(self) not in restores:  # another has, in this step
                return out
            if session.optimizer is not self:
                before, session.optimizer = session.optimizer, self
                restore = restores.pop(id(before), None)  # it is nothing to us any more: its state may go
                if restore is not None:
                    hooks.undoing.remove(restore)
                    restore()
            mark()
            return out

        own = vars(optimizer).get("step")
        optimizer.step = types.MethodType(stepped, optimizer)  # schedules ask for its __self__ and __func__

        def restore():
            if getattr(vars(optimizer).get("step"), "__func__", None) is not stepped:
                restores.pop(id(optimizer), None)  # a schedule has wrapped it since, and it does nothing of its own now
            elif own is None:
                del optimizer.step
            else:
                optimizer.step = own

        restores[id(optimizer)] = restore
        hooks.undoing.append(restore)
        hooks.wrap(type(optimizer), "state_dict", at_home)

    def made(old, follow=follow):
        def init(self, *args, **kwargs):
            old(self, *args, **kwargs)
            if session.trained_by(self):
                follow(self)
        return init

    def first(optimizer):
        """The first step of all ends, of an optimizer that may be another than the one whose model was called."""
        if optimizer is not session.optimizer:
            if not session.trained_by(optimizer):
                return
            restore = restores.pop(id(session.optimizer), None)
            if restore is not None:
                hooks.undoing.remove(restore)
                restore()
            session.optimizer = optimizer
            follow(optimizer)
        elif session.stepping:  # it has joined before its step, which ends by itself
            return
        mark()

    watched = []  # of optimizers, while the script is passive

    def watch(optimizer):
        def stepped(self, args, kwargs):
            if session.optimizer is not self:  # it takes its place
                session.optimizer = self
                for before in watched:
                    if before is not mine:
                        before.remove()
            session.mark()

        mine = optimizer.register_step_post_hook(stepped)
        watched.append(mine)
        hooks.undoing.append(mine.remove)

    def rests():
        hooks.undo()
        watch(session.optimizer)
        hooks.wrap(torch.optim.Optimizer, "__init__", lambda old: made(old, watch))

    def split(old):
        def init(self, *args, **kwargs):
            old(self, *args, **kwargs)
            if not session.off and session.trains(self):
                session.stop("training over several processes (DDP, FSDP) is not supported")
        return init

    def compiled(old):
        def run(callback):
            if callback:  # not the end of one, and not one that is not to be compiled
                session.compiled()
            return old(callback)
        return run

    def threaded(old):
        def run(thread):
            with modes.watched(session):
                return old(thread)
        return run

    def backward(old):
        def run(*args, **kwargs):
            session.phase = "backward"
            session.began_at(args[0] if args else kwargs.get("tensors"))
            try:
                return old(*args, **kwargs)
            finally:
                session.phase = "forward"
        return run

    def told(old):
        def run(self):
            value = old(self)
            session.told(self, value)
            return value
        return run

    def at_home(old, writes=False):
        def run(*args, **kwargs):
            session.home(args[0] if args else None, writes)
            session.reading += 1  # addresses that torch asks for meanwhile it keeps to itself
            try:
                return old(*args, **kwargs)
            finally:
                session.reading -= 1
        return run

    def lent(old):
        def run(memory, *args, **kwargs):
            if reads(sys._getframe(1)):
                session.read()
            else:
                session.lend(memory, old.__name__)
            return old(memory, *args, **kwargs)
        return run

    def scaled(old):
        def step(scaler, optimizer, *args, **kwargs):
            before = session.iterations
            out = old(scaler, optimizer, *args, **kwargs)
            if optimizer is session.optimizer and session.iterations == before:  # left out, as gradients are infinite
                session.mark()
            return out
        return step

    def graphed(old):
        def run(*args, **kwargs):
            if not session.off:
                session.stop("the script uses a CUDA graph, in which addresses are fixed")
            return old(*args, **kwargs)
        return run

    def disabled(old):
        def run(*args, **kwargs):
            session.look_at_saved(False)  # torch refuses to while there are hooks
            return old(*args, **kwargs)
        return run

    def enabled(old):
        def run():
            old()
            session.look_at_saved()
        return run

    def profiled(on):
        def make(old):
            def run(*args, **kwargs):
                session.profiled(on)
                return old(*args, **kwargs)
            return run
        return make

    def loading(old):
        def run(*args, **kwargs):
            return session.load(old, args, kwargs) if session.seen() else old(*args, **kwargs)
        return run

    def beside(old):
        def run(*args, **kwargs):
            return session.beside(old, args, kwargs) if session.seen() else old(*args, **kwargs)
        return run

    if session.figures is not None:
        for name in "_cuda_memoryStats", "_accelerator_getDeviceStats":
            hooks.wrap(torch._C, name, session.figures.told)
        for name in "_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats":
            hooks.wrap(torch._C, name, session.figures.set_back)
    hooks.wrap(torch.amp.GradScaler, "step", scaled)
    for name in "capture_begin", "replay":
        hooks.wrap(torch.cuda.CUDAGraph, name, graphed)
    for name in "_prepare_profiler", "_enable_profiler":
        hooks.wrap(torch.autograd.profiler, name, profiled(True))
    hooks.wrap(torch.autograd.profiler, "_disable_profiler", profiled(False))
    hooks.wrap(torch.autograd, "backward", backward)
    if saved.AVAILABLE:
        hooks.wrap(torch.autograd.function.BackwardCFunction, "saved_tensors", saved.saved_tensors)
        hooks.wrap(torch._C._autograd.SavedTensor, "register_hooks", saved.register_hooks)
    hooks.wrap(torch._C._autograd, "_saved_tensors_hooks_disable", disabled)
    hooks.wrap(torch._C._autograd, "_saved_tensors_hooks_enable", enabled)
    hooks.wrap(torch.nn.parallel.DistributedDataParallel, "__init__", split)
    hooks.wrap(threading.Thread, "_bootstrap_inner", threaded)
    be_skipped()
    hooks.wrap(eval_frame(), "_maybe_set_eval_frame", compiled)
    for name in "item", "__float__":
        hooks.wrap(torch.Tensor, name, told)
    hooks.wrap(torch.utils.data.DataLoader, "__iter__", beside)
    hooks.wrap(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", loading)
    for owner, names in ((torch, ("save",)), (torch.nn.Module, ("state_dict",)), (torch._tensor_str, ("_str",)),
                         (torch.Tensor, ("tolist", "__deepcopy__", "__reduce_ex__", "share_memory_"))):
        for name in names:
            hooks.wrap(owner, name, at_home)
    for name in "numpy", "__array__":
        hooks.wrap(torch.Tensor, name, functools.partial(at_home, writes=True))
    for owner, name in ((torch.Tensor, "data_ptr"), (Untyped, "data_ptr"), (torch.Tensor, "__dlpack__"),
                        (torch.utils.dlpack, "to_dlpack"), (torch, "to_dlpack")):
        hooks.wrap(owner, name, lent)
    follow(session.optimizer)
    hooks.wrap(torch.optim.Optimizer, "__init__", made)
    hooks.rest, hooks.first = rests, first
    return hooks
