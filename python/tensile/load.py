"""The next batch of a data loader, as one op of an iteration.

What a loader does in the script's process differs from batch to batch: an epoch begins, the worker that is asked was
faster or slower than the others. So its ops are no part of the iteration; its batch comes out of one op.
"""

from collections.abc import Mapping

from .storages import Tensor


class Box:
    """A batch that is not looked into where tensors of results are looked for."""

    __slots__ = ("batch",)

    def __init__(self, batch):
        self.batch = batch


class _Schema:
    arguments = ()


class _Load:
    _schema, tags = _Schema, ()

    def __str__(self):
        return "load"

    def __call__(self, session, run, args, kwargs):
        batch = session.beside(run, args, kwargs)
        return Box(batch), _tensors(batch, [])


load = _Load()


def _tensors(value, into):
    """Appends the tensors of a batch, in order: those in its lists, tuples and mappings."""
    if isinstance(value, Tensor):
        into.append(value)
    elif isinstance(value, (list, tuple)):
        for v in value:
            _tensors(v, into)
    elif isinstance(value, Mapping):
        for v in value.values():
            _tensors(v, into)
    return into
