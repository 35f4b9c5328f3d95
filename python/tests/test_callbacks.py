"""The figures of a plan in the logs of transformers' Trainer and of Lightning."""

import csv
import glob
import importlib.util
import os
import sys
import tempfile
import unittest

import torch
from scripts import LONG, Planner
from test_bits import at_random

import tensile.callbacks
from tensile import hooks
from tensile.session import Session

NAMES = {"tensile/plan_bytes", "tensile/limit_bytes", "tensile/step_seconds"}


def needs(*names):
    missing = [n for n in names if importlib.util.find_spec(n) is None]
    return unittest.skipUnless(LONG and not missing, f"needs Python's {', '.join(missing)}" if missing else
                               "long: make test-all runs it")


def planned(number, iteration):
    """Makes a plan within a limit, for as many bytes as its number."""
    plan = at_random(2, 0.6)(number, iteration)
    plan.update(limit_bytes=1 << 40, plan_bytes=12345)
    return plan


class Callbacks(unittest.TestCase):
    def joins(self):
        """Has the first optimizer that makes a step join a planner."""
        torch.set_num_threads(1)

        def start(optimizer, args, kwargs):
            handle.remove()
            tensile._session = s = Session([p for g in optimizer.param_groups for p in g["params"]], optimizer,
                                           Planner(planned))
            s.enter(hooks.install(s))

        handle = sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(start)
        self.addCleanup(handle.remove)
        self.addCleanup(setattr, tensile, "_left", False)
        self.addCleanup(tensile.leave)

    def check(self, rows):
        """Wants the figures in some rows of a log, the first of which come before there is a plan."""
        found = [NAMES & {name for name, value in row.items() if value not in ("", None)} for row in rows]
        self.assertFalse(found[0])
        self.assertGreaterEqual(found.count(NAMES), 4)
        for row in rows:
            if row.get("tensile/plan_bytes"):
                self.assertEqual(float(row["tensile/plan_bytes"]), 12345)
                self.assertEqual(float(row["tensile/limit_bytes"]), 1 << 40)
                self.assertGreater(float(row["tensile/step_seconds"]), 0)

    @needs("transformers", "accelerate", "tensorboard")
    def test_trainer(self):
        """TensorBoard gets them, and so does the history."""
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

        self.joins()
        tokens = torch.arange(8 * 12 * 4).remainder(50).reshape(-1, 8)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TENSORBOARD_LOGGING_DIR"] = folder
            self.addCleanup(os.environ.pop, "TENSORBOARD_LOGGING_DIR")
            trainer = Trainer(
                GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=8, n_embd=16, n_layer=1, n_head=2)),
                TrainingArguments(folder, max_steps=12, logging_steps=1, per_device_train_batch_size=4, use_cpu=True,
                                  report_to="tensorboard", disable_tqdm=True, save_strategy="no", optim="adamw_torch"),
                train_dataset=[{"input_ids": t, "labels": t} for t in tokens],
                callbacks=[tensile.callbacks.TrainerCallback()])
            trainer.train()
            self.check([row for row in trainer.state.log_history if "loss" in row])
            log, = glob.glob(folder + "/**/events*", recursive=True)
            events = EventAccumulator(log)
            events.Reload()
            self.assertEqual({tag.replace("train/", "") for tag in events.Tags()["scalars"] if "tensile" in tag}, NAMES)

    @needs("lightning")
    def test_lightning(self):
        """A logger of files gets them."""
        import lightning

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))

            def training_step(self, batch, index):
                return self.layers(batch).square().mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1, momentum=0.9)

        self.joins()
        with tempfile.TemporaryDirectory() as folder:
            trainer = lightning.Trainer(
                max_epochs=1, accelerator="cpu", logger=lightning.pytorch.loggers.CSVLogger(folder), log_every_n_steps=1,
                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                callbacks=[tensile.callbacks.LightningCallback()])
            trainer.fit(Module(), torch.utils.data.DataLoader(torch.randn(14 * 4, 16), batch_size=4))
            log, = glob.glob(folder + "/**/metrics.csv", recursive=True)
            with open(log, newline="") as f:
                self.check([{}, *csv.DictReader(f)])

    def test_without(self):
        """No framework is imported before its callback is asked for."""
        self.assertIsNone(tensile.figures())
        with self.assertRaises(AttributeError):
            tensile.callbacks.Other


if __name__ == "__main__":
    unittest.main()
