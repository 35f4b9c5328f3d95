"""Ops that work through lists of tensors element by element, in pieces: the same op on parts of its lists, in their order.

Such an op of an optimizer (_foreach_*, _fused_adam_ and the like) has all that a model trains as its operands, which are
then the least memory of any plan. What it computes of an element depends on no other one, so its pieces make the same bits.
"""

import torch

from .storages import Tensor, arguments, identity, results

PIECES = 16  # about as many are made of an op; an element is never cut
LEAST = {"cpu": 16 << 10, "cuda": 16 << 20}  # bytes of a piece, below which it gains nothing

_KNOWN = {f"aten::_fused_{name}_" for name in ("adam", "adamw", "sgd", "adagrad")}
_KNOWN.add("aten::_amp_foreach_non_finite_check_and_unscale_")  # each piece adds to what those before have found
_lists = {}  # op -> for each of its arguments whether it is a list that is cut; None: the op is not cut


def lists(func):
    if func not in _lists:
        schema = func._schema
        name, cut = getattr(schema, "name", ""), None
        if name in _KNOWN or name.startswith("aten::_foreach_"):
            kinds = [str(a.type) for a in schema.arguments]
            returns = [str(r.type) for r in schema.returns]
            # a tensor of scalars has one of each element
            if returns in ([], ["List[Tensor]"]) and not any(
                    a.name == "scalars" and k == "Tensor" or a.name == "out" for a, k in zip(schema.arguments, kinds)):
                cut = tuple(k in ("List[Tensor]", "List[number]") for k in kinds)
        _lists[func] = cut
    return _lists[func]


class Cut:
    """How an op is cut: how many elements each piece has, which arguments are lists, and, of each argument that has
    tensors, in the order of these, whether it is a list."""

    __slots__ = ("func", "counts", "lists", "tensors")

    def __init__(self, func, counts, cut, tensors):
        self.func, self.counts, self.lists, self.tensors = func, counts, cut, tensors

    def fits(self, func, args):
        """Reports whether an op of the script can be cut like this."""
        n = sum(self.counts)
        return func is self.func and all(not cut or len(a) in (0, n) for a, cut in zip(args, self.lists))

    def parts(self, args):
        """Yields the arguments of each piece."""
        at = 0
        for n in self.counts:
            yield tuple(a[at:at + n] if cut else a for a, cut in zip(args, self.lists))
            at += n

    def whole(self, pieces):
        """Returns what belongs to the tensors of the whole op, in their order, given what belongs to those of each piece."""
        at, found = [0] * len(pieces), []
        for cut in self.tensors:
            for k, n in enumerate(self.counts):
                if cut or k == 0:
                    found += pieces[k][at[k]:at[k] + (n if cut else 1)]
                at[k] += n if cut else 1
        return found


def cut(func, args, kwargs, device):
    """Returns how an op is cut, by the bytes of its elements alone; None: it is not."""
    known = lists(func)
    if known is None:
        return None
    taken = [a for a, is_list in zip(args, known) if is_list and len(a)]
    tensors = [a for a in taken if isinstance(a[0], Tensor)]
    n = len(tensors[0]) if tensors else 0
    if any(len(a) != n for a in taken) or not all(
            isinstance(t, Tensor) and t.layout == torch.strided for a in tensors for t in a):
        return None
    if device.type == "cuda" and not _alike(taken, n):
        return None
    last = {}  # id of a storage -> the last element that has it: elements that share one are not parted
    for a in tensors:
        for i, t in enumerate(a):
            last[identity(t)] = max(i, last.get(identity(t), 0))
    sizes = [sum(a[i].numel() * a[i].element_size() for a in tensors) for i in range(n)]
    most = max(sum(sizes) // PIECES, LEAST.get(device.type, 0))
    counts, begun, size, reach = [], 0, 0, -1
    for i in range(n):
        if reach < i and size and size + sizes[i] > most:
            counts.append(i - begun)
            begun, size = i, 0
        size += sizes[i]
        reach = max(reach, *(last[identity(a[i])] for a in tensors))
    if not counts:
        return None
    counts.append(n - begun)
    order = [is_list for a, is_list in zip(args, known) if is_list and len(a) and isinstance(a[0], Tensor)
             or isinstance(a, Tensor)]
    return Cut(func, tuple(counts), known, (*order, *(False for _ in arguments((), kwargs))))


def _alike(taken, n):
    """Reports whether elements are of one kind, so that each piece takes the way through torch's kernels that the whole takes:
    that is another if a single element cannot take the fast one."""
    def kind(a, first):
        if not isinstance(a, Tensor):
            return type(a)
        return a.dtype, a.device, _dense(a), (a.shape, a.stride()) == (first.shape, first.stride())

    first = next(a for a in taken if isinstance(a[0], Tensor))
    return len({tuple(kind(a[i], first[i]) for a in taken) for i in range(n)}) == 1


def _dense(tensor):
    """Reports whether the elements of a tensor lie side by side, each by itself."""
    step = 1
    for stride, size in sorted((st, n) for n, st in zip(tensor.shape, tensor.stride()) if n > 1):
        if stride != step:
            return False
        step *= size
    return True


def joined(outs):
    """Returns what the whole op returns, from what its pieces have returned."""
    return None if outs[0] is None else [t for out in outs for t in results(out)]
