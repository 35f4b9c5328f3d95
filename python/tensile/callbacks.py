"""Callbacks that log the figures of Tensile beside those of a framework: transformers' Trainer, and Lightning.

    Trainer(..., callbacks=[tensile.callbacks.TrainerCallback()])
    lightning.Trainer(..., callbacks=[tensile.callbacks.LightningCallback()])

Nothing is logged while no plan is in force. A framework is imported when its callback is first asked for.
"""

import sys

from . import figures

__all__ = ["TrainerCallback", "LightningCallback"]


def _named():
    return {"tensile/" + name: value for name, value in (figures() or {}).items()}


def _trainer():
    from transformers import TrainerCallback as Base

    class TrainerCallback(Base):
        """Adds the figures to the logs of the Trainer."""

        def on_train_begin(self, args, state, control, **kwargs):
            handler = sys._getframe(1).f_locals.get("self")  # the Trainer has it call those that report first
            handler.callbacks = [self, *(c for c in handler.callbacks if c is not self)]

        def on_log(self, args, state, control, logs=None, **kwargs):
            logs.update(_named())
            state.log_history[-1].update(_named())

    return TrainerCallback


def _lightning():
    from lightning.pytorch import Callback

    class LightningCallback(Callback):
        """Gives the figures to the loggers of Lightning; LightningModule.log would make tensors, by ops of the iteration."""

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            if (batch_idx + 1) % trainer.log_every_n_steps == 0 and figures():
                for logger in trainer.loggers:
                    logger.log_metrics(_named(), step=trainer.global_step)

    return LightningCallback


def __getattr__(name):
    make = {"TrainerCallback": _trainer, "LightningCallback": _lightning}.get(name)
    if make is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = make()
    return made
