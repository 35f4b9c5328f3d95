"""Trains an unchanged PyTorch script inside a memory plan, to the same bits.

    import tensile
    tensile.join(model, optimizer)

Without the sidecar that `tensile join -- python train.py` starts, join does nothing and says so once. Without torch
it imports, too.
"""

import atexit
import os
import sys
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["join", "home", "leave", "figures"]

_OLDEST = 2, 6  # PyTorch that it works with
UNMET = 75  # the status of a script that cannot keep its limit

_session = None
_left = False  # it has left, for good
_waiting = None  # what is wrapped until something joins


def join(model: "torch.nn.Module", optimizer: "torch.optim.Optimizer") -> None:
    """Makes the rest of the script's training a planned job; call it once, after the model is on its device."""
    if _too_old():
        return
    from . import link
    from .session import say

    if _session is not None:
        say("joined already: the steps of the optimizer that joined first end iterations; join once, with the model "
            "that takes most memory")
        return
    if _left:
        say("a script that has left does not join again: it trains without a plan")
        return
    why = _odd(model, optimizer) or _unsupported(model)
    sock = link.from_environment()
    if sock is None:
        return
    device = "cpu" if why else next(iter(model.parameters())).device.type
    if device == "cuda":
        _expandable()
    start([] if why else list(model.parameters()), optimizer, link.Link(sock, device), why)


def start(parameters, optimizer, planner, why=None):
    """Begins a session whose plans come from a planner, as Session describes it; why: it is passive from the beginning, for
    that reason."""
    from . import hooks
    from .session import Session

    global _session
    if _waiting is not None:
        _waiting.undo()
    _session = Session(parameters, optimizer, planner)
    _at_the_end(_session)
    if why:
        _session.stop(why)
        return
    if hasattr(planner, "begin"):
        planner.begin(_session)
    _session.find_lent()
    if not _session.off:
        _session.enter(hooks.install(_session))


def _too_old():
    """Reports whether PyTorch is older than this package works with, and says so."""
    import torch

    if tuple(map(int, torch.__version__.split(".")[:2])) >= _OLDEST:
        return False
    print(f"tensile: PyTorch {torch.__version__} is older than {'.'.join(map(str, _OLDEST))}: it trains without a plan",
          file=sys.stderr, flush=True)
    return True


def wait_for_training():
    """Has the first optimizer whose model is trained in this process join, unless the script has said join before: when a module
    of its parameters is called that is to be trained, or else when it makes a step."""
    if _too_old():
        return
    import torch

    # all that join imports: if that fails, it fails here, and not in the script's step
    from . import hooks, link, session

    global _waiting
    _waiting, process = hooks.Hooks(), os.getpid()
    made = []  # weak references to optimizers, in their order
    joined = []  # the optimizer that has joined before its step

    def begins(optimizer):
        _waiting.undo()
        made.clear()
        if optimizer is not None and _session is None and not _left and os.getpid() == process:
            try:
                join(_model_of(optimizer), optimizer)
            except Exception as e:
                session.say(f"{session.fault(e)}; it trains without a plan")

    def trains(module):
        """Returns the first optimizer of a module's parameters."""
        mine = {id(p): p for p in module.parameters()}
        if any(isinstance(p, torch.nn.parameter.UninitializedTensorMixin) for p in mine.values()):
            return None  # which get their sizes by this very call
        return next((o for o in (r() for r in made)
                     if o is not None and any(id(p) in mine for g in o.param_groups for p in g["params"])), None)

    def called(old):
        def run(module, *args, **kwargs):
            if made and torch.is_grad_enabled() and (optimizer := trains(module)) is not None:
                joined.append(optimizer)
                begins(optimizer)
            return old(module, *args, **kwargs)
        return run

    def compiled(old):
        def run(callback):
            if not callback:
                return old(callback)
            # what is compiled must not see what is wrapped here
            optimizer = next((o for o in (r() for r in made) if o is not None), None)
            if torch.is_grad_enabled() and optimizer is not None:
                joined.append(optimizer)
            begins(*joined or (None,))
            return hooks.eval_frame()._maybe_set_eval_frame(callback)
        return run

    def init(old):
        def run(optimizer, *args, **kwargs):
            old(optimizer, *args, **kwargs)
            made.append(weakref.ref(optimizer))
            _waiting.wrap(torch.nn.Module, "__call__", called)
            _waiting.wrap(hooks.eval_frame(), "_maybe_set_eval_frame", compiled)
        return run

    def stepped(optimizer, args, kwargs):
        handle.remove()
        if not joined:
            begins(optimizer)
        elif _session is not None and not _session.off:
            _session.hooks.first(optimizer)

    _waiting.wrap(torch.optim.Optimizer, "__init__", init)
    handle = sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(stepped)


def _model_of(optimizer):
    """Returns the largest module that has all parameters of an optimizer; without one, a module of these alone."""
    import gc

    import torch

    trained = {id(p): p for g in optimizer.param_groups for p in g["params"]}
    found, most = None, -1
    for m in [m for m in gc.get_objects() if issubclass(type(m), torch.nn.Module) and "_modules" in vars(m)]:
        size = sum(1 for _ in m.modules())
        if size > most and trained.keys() <= {id(p) for p in m.parameters()}:
            found, most = m, size
    if found is None:
        found = torch.nn.Module()
        found.trained = torch.nn.ParameterList(p for p in trained.values() if isinstance(p, torch.nn.Parameter))
    return found


def _at_the_end(session):
    """Has the planner told how the script ends."""
    from .capture import TooLarge
    from .session import say

    planner = session.planner
    if not hasattr(planner, "end"):
        return
    failed = []
    old = sys.excepthook

    def hook(kind, value, trace):
        failed.append(f"{kind.__name__}: {value}")
        if issubclass(kind, TooLarge):
            say(str(value))
            raise SystemExit(UNMET)
        old(kind, value, trace)

    sys.excepthook = hook
    atexit.register(lambda: None if session.child else planner.end(session, failed[0] if failed else None))


def figures() -> "dict[str, float] | None":
    """Returns what a logger may want: plan_bytes, limit_bytes (0: there is none), and step_seconds of the newest step; None
    where no plan is in force."""
    s = _session
    if s is None or s.off or not s.plan:
        return None
    return {"plan_bytes": s.player.bytes, "limit_bytes": s.limit, "step_seconds": s.wall / 1e9}


def home() -> None:
    """Brings everything back that is away, for what reads a tensor's memory without an op of torch."""
    if _session is not None:
        _session.home()


def leave() -> None:
    """Ends planning: everything is back, and torch is as it was. What the script has from now on nobody sees, so that
    its claim is that of a script without a plan until it ends."""
    global _session, _left
    if _session is None:
        return
    session, _session, _left = _session, None, True
    session.leave()


def _expandable():
    """Has segments of torch's allocator grow, so that freed blocks of any sizes share one range; torch 2.1 and later.
    To set one option resets all others, so what the user has set stays as it is."""
    import torch

    if not any(os.environ.get(name) for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")):
        change = getattr(torch._C, "_accelerator_setAllocatorSettings", None)  # or its name before torch 2.9
        change = change or getattr(torch.cuda.memory, "_set_allocator_settings", None)
        if change is not None:
            change("expandable_segments:True")


def _odd(model, optimizer):
    """Returns why these are not a model and an optimizer of it, and what to give instead; None: they are."""
    import torch

    if isinstance(model, torch.optim.Optimizer) and isinstance(optimizer, torch.nn.Module):
        return "join has the optimizer first: say tensile.join(model, optimizer)"
    if not isinstance(model, torch.nn.Module):
        return f"join has a {type(model).__name__} as its model: give it a torch.nn.Module"
    if not all(hasattr(optimizer, name) for name in ("step", "param_groups", "state", "state_dict")):
        return (f"join has a {type(optimizer).__name__} as its optimizer: give it the torch.optim.Optimizer whose step "
                "ends an iteration")
    parameters = {id(p) for p in model.parameters()}
    if not parameters:
        return f"the model, a {type(model).__name__}, has no parameters: join the one that the optimizer trains"
    if any(isinstance(p, torch.nn.parameter.UninitializedTensorMixin) for p in model.parameters()):
        return "the model has parameters without a size yet: run it once on a batch before tensile.join"
    if not any(id(p) in parameters for g in optimizer.param_groups for p in g["params"]):
        return ("the optimizer trains none of the model's parameters: make it of model.parameters() of the model that "
                "joins")
    return None


def _unsupported(model):
    import torch

    from .storages import lies, storage_of

    kinds = [type(m).__name__ for m in model.modules()]
    if "DistributedDataParallel" in kinds or "FullyShardedDataParallel" in kinds:
        return "training over several processes (DDP, FSDP) is not supported"
    devices = sorted({str(p.device) for p in model.parameters()})
    if len(devices) > 1 or devices[0].split(":")[0] not in ("cpu", "cuda"):
        return (f"the model's parameters are on {', '.join(devices)}: join a model that is on one device, a CPU or a "
                "CUDA GPU, after it was moved there")
    if any(p.layout == torch.strided and not lies(storage_of(p), p.device) for p in model.parameters()):
        return "the model has parameters without memory of their own (DTensor, fake tensors): join one of plain tensors"
    if devices[0] != "cpu" and devices[0] != f"cuda:{torch.cuda.current_device()}":
        return (f"the model is on {devices[0]}, and cuda:{torch.cuda.current_device()} is the current device: say "
                "torch.cuda.set_device before tensile.join")
    return None
