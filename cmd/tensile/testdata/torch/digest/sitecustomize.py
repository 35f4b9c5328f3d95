"""Has a script print, at its end, a digest of what its optimizers have trained and keep, and which of them has joined."""

import atexit
import hashlib
import importlib.util
import sys

optimizers, modules = {}, {}  # by id, of all that has made a step, and of what that trains


def stepped(optimizer, args, kwargs):
    if id(optimizer) not in optimizers:
        import gc

        import torch
        optimizers[id(optimizer)] = optimizer
        mine = {id(p) for g in optimizer.param_groups for p in g["params"]}
        for m in gc.get_objects():
            if issubclass(type(m), torch.nn.Module) and "_modules" in vars(m):
                if any(id(p) in mine for p in m.parameters()):
                    modules[id(m)] = m


def tensors(value):
    """Yields the tensors of an optimizer's state."""
    if isinstance(value, dict):
        for v in value.values():
            yield from tensors(v)
    elif hasattr(value, "detach"):
        yield value


def digest(tensor):
    t = tensor.detach().contiguous()
    return hashlib.sha256(f"{t.dtype} {tuple(t.shape)} ".encode() + t.numpy().tobytes()).hexdigest()


def end():
    found = {digest(t) for m in modules.values() for t in (*m.parameters(), *m.buffers())}
    found |= {digest(t) for o in optimizers.values() for t in tensors(dict(o.state))}
    print("digest", hashlib.sha256("".join(sorted(found)).encode()).hexdigest(), len(found), len(optimizers))
    session = getattr(sys.modules.get("tensile"), "_session", None)
    if session is not None:
        print("joined", type(session.optimizer).__name__, list(optimizers).index(id(session.optimizer)),
              len(session.parameters), flush=True)


class Steps:
    """Finds the module of optimizers as Python does, and has it tell of steps."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch.optim.optimizer":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            module.register_optimizer_step_post_hook(stepped)
            atexit.register(end)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Steps())
