"""Storages of tensors: who they are, whether they live, their bytes.

A storage is known by the address of its StorageImpl. A Weak keeps that address from being given to another storage,
and keeps no memory.
"""

import gc
import sys

import torch

Tensor = torch.Tensor
Untyped = torch.UntypedStorage


class Unsupported(Exception):
    """The script does something that cannot be recorded; the text says what."""


storage_of = Tensor.untyped_storage


def _identity(tensor):
    return storage_of(tensor)._cdata


identity = getattr(torch._C, "_storage_id", _identity)



class Weak:
    """A reference that does not keep the storage alive."""

    __slots__ = ("pointer",)

    def __init__(self, storage):
        self.pointer = storage._weak_ref()

    def get(self):
        """Returns the storage, or None if it is gone."""
        return Untyped._new_with_weak_ptr(self.pointer)

    def expired(self):
        return Untyped._expired(self.pointer)

    def __del__(self, free=Untyped._free_weak_ref):
        free(self.pointer)


def lent_storages(parameters):
    """Returns a Weak of each storage, by its id, that something may read or write of which no op tells: what is no tensor of
    Python holds it, such as a capsule of DLPack or a graph of autograd; or it is a parameter's, and what the collector of
    Python does not see, such as an array of numpy, holds a tensor of it."""
    alive = {}  # id -> tensor: all of Python's
    for t in gc.get_objects():
        if issubclass(type(t), Tensor):
            alive[id(t)] = t
            if t._base is not None:  # which the view holds
                alive[id(t._base)] = t._base
    tensors = {}  # id of a storage -> its tensors
    for t in alive.values():
        try:
            if t.layout == torch.strided:
                tensors.setdefault(identity(t), []).append(t)
        except (NotImplementedError, RuntimeError):  # of a wrapper, which has none
            continue
    trained = {identity(p) for p in parameters if isinstance(p, Tensor) and p.layout == torch.strided}
    hidden = _hidden([t for i in trained for t in tensors.get(i, ())
                      if not t.requires_grad or len(tensors[i]) > 1 and not t.is_leaf])
    return {i: Weak(storage_of(ts[0])) for i, ts in tensors.items()
            if torch._C._storage_Use_Count(i) > len(ts) + 1 or any(id(t) in hidden for t in ts)}


def _hidden(tensors):
    """Returns the ids of tensors to which there are more references than from objects that the collector and the frames
    of running functions show."""
    tensors = [*tensors, set()]  # the last is held by this list alone
    frame, shown = sys._getframe(1), []
    while frame is not None:
        if frame.f_locals is not frame.f_globals:
            shown.append(frame.f_locals)  # copies, until Python 3.13, which the collector shows beside the variables
        frame = frame.f_back
    seen = {id(t): 0 for t in tensors}
    variables = [x for names in shown for x in names.values() if id(x) in seen]
    for x in variables:
        seen[id(x)] += 1
    for holder in gc.get_referrers(*tensors):
        for x in gc.get_referents(holder):
            if id(x) in seen:
                seen[id(x)] += 1
    del x
    unseen = {id(t): sys.getrefcount(t) - seen[id(t)] for t in tensors}
    return {i for i, n in unseen.items() if n > unseen[id(tensors[-1])]}


def leaves(value, into):
    """Appends the tensors in the arguments or results of an op, in order."""
    for a in value:
        if isinstance(a, Tensor):
            into.append(a)
        elif type(a) is list or type(a) is tuple:
            leaves(a, into)
    return into


_written = {}  # op -> places and names of the arguments that its schema says it writes


def written(func, args, kwargs):
    places = _written.get(func)
    if places is None:
        places = [(i, a.name) for i, a in enumerate(func._schema.arguments) if a.alias_info and a.alias_info.is_write]
        _written[func] = places
    values = [args[i] if i < len(args) else kwargs.get(name) for i, name in places]
    return leaves(values, [])


def arguments(args, kwargs):
    into = leaves(args, [])
    if kwargs:
        leaves(kwargs.values(), into)
    return into


def results(out):
    if isinstance(out, Tensor):
        return [out]
    if isinstance(out, (list, tuple)):
        return leaves(out, [])
    return []


def view(storage):
    """Returns the bytes of a storage as a tensor; writing them moves no version counter of autograd."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


_WORDS = {"cpu": 1 << 15, "cuda": 1 << 20}  # that are summed at a time
_weights = {}  # device -> odd numbers, by which another value of one word always changes a sum


def checksum(storage):
    """Returns a number that other bytes in a storage most likely change."""
    words = view(storage)
    n, most = words.numel() // 8 * 8, _WORDS[storage.device.type]
    rest, words = words[n:], words[:n].view(torch.int64)
    weights = _weights.get(storage.device)
    if weights is None:
        odd = torch.arange(1, 2 * most, 2, device=storage.device)
        weights = _weights[storage.device] = odd * 0x1E3779B97F4A7C15
    total = hash(tuple(rest.tolist()))
    for part in words.split(most):
        total = hash((total, (part * weights[:part.numel()]).sum().item()))
    return total


def lies(storage, device):
    """Reports whether a storage lies on a device, and has the memory that it says it has: those of meta tensors, of
    wrapped tensors (DTensor) and of some zeros have none."""
    try:
        return storage.device == device and (storage.nbytes() == 0 or torch._C.StorageBase.data_ptr(storage) != 0)
    except RuntimeError:
        return False


def resizable(storage):
    return storage.resizable() and not storage.is_shared()  # resize_ would end the process if it is shared


def emptied(storage):
    """Takes a storage's memory away, and reports whether that can be done."""
    if not resizable(storage):
        return False
    try:
        storage.resize_(0)
        return True
    except RuntimeError:
        return False


def generators(args, kwargs):
    """Returns the generators among the arguments of an op."""
    return [a for a in (*args, *(kwargs or {}).values()) if isinstance(a, torch.Generator)]


def random_state(device="cpu", own=()):
    """Returns the default generators of a device and those in own, each with its state."""
    default = [torch.default_generator]
    if device == "cuda":
        default.append(torch.cuda.default_generators[torch.cuda.current_device()])
    return [(g, g.get_state()) for g in (*default, *own)]


def set_random_state(state):
    for g, s in state:
        g.set_state(s)


def same_state(a, b):
    return all(torch.equal(x, y) for (_, x), (_, y) in zip(a, b))


class Ref:
    """A tensor among saved arguments: how it lies in its storage, which is not kept."""

    __slots__ = ("key", "dtype", "size", "stride", "offset", "device")

    def __init__(self, key, tensor):
        self.key, self.dtype, self.device = key, tensor.dtype, tensor.device
        self.size, self.stride, self.offset = tensor.size(), tensor.stride(), tensor.storage_offset()

    def on(self, storage):
        return torch.empty(0, dtype=self.dtype, device=self.device).set_(storage, self.offset, self.size, self.stride)


def saved(value, key):
    """Returns arguments with a Ref in place of each tensor; key names the storage of one."""
    if isinstance(value, Tensor):
        return Ref(key(value), value)
    if type(value) is list or type(value) is tuple:
        return type(value)(saved(v, key) for v in value)
    if type(value) is dict:
        return {k: saved(v, key) for k, v in value.items()}
    return value


def restored(value, storage):
    """Returns arguments with tensors in the places of Refs; storage gives the storage for a Ref's key."""
    if type(value) is Ref:
        return value.on(storage(value.key))
    if type(value) is list or type(value) is tuple:
        return type(value)(restored(v, storage) for v in value)
    if type(value) is dict:
        return {k: restored(v, storage) for k, v in value.items()}
    return value
