"""Storages on another device than the script's, as a batch is where a GPU trains: no plan counts or moves them.

One device stands for two: a storage of certain sizes counts as the host's, so that all is computed and compared. Or the
model is on meta, where nothing is computed, and torch itself refuses to mix devices.
"""

import random
import unittest
from unittest import mock

import torch
from plans import random_plan
from scripts import Planner, differs, execute
from tensile import capture, player
from tensile.storages import Untyped, lies

BATCH = 16 * 25 * 8
HOST = {BATCH, 16 * 33, 8}  # bytes of a batch, of what dropout gives its backward pass, of a number


def script(run, batches, iterations=14):
    """On the host: batches of float64, a factor, and one of the results of dropout, as attention's seeds are."""
    torch.manual_seed(0)
    model = torch.nn.ModuleList([torch.nn.Linear(25, 33), torch.nn.Linear(33, 29), torch.nn.Linear(29, 7)])
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    run.join(model, optimizer)
    kept = [torch.randn(16, 25, dtype=torch.float64) for _ in range(3)]
    halved = torch.tensor(0.5, dtype=torch.float64)
    for i in range(iterations):
        if batches == "new":
            x = torch.randn(16, 25, dtype=torch.float64)
        elif batches == "in turn":
            x = kept[i % 3]
        else:
            x = kept[0].normal_()  # into the same memory
        optimizer.zero_grad(set_to_none=True)
        h, _ = torch.native_dropout(model[0](x.to(torch.float32)) * halved, 0.1, True)
        loss = model[2](model[1](h * h).tanh()).pow(2).mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


def dropout_again(it):
    """Returns a plan that runs dropout again, of whose results one is on the host."""
    slots, op = it.planned(), next(i for i, g in enumerate(it.groups) if "native_dropout.default" in g.name)
    made, = it.groups[op].makes
    uses = [i for i, g in enumerate(it.groups) if made in g.reads]
    return {"number": 1, "graph": 1, "limit_bytes": 0, "entry": [n for n, t in enumerate(slots) if t.persistent],
            "boundaries": [{"before": uses[0] + 1, "do": [{"do": "drop", "storage": slots.index(made)}]},
                           {"before": uses[1], "do": [{"do": "again", "op": op}]}]}


def on_meta(run, made, iterations=10):
    model = torch.nn.Sequential(torch.nn.Linear(64, 96, device="meta"), torch.nn.ReLU(),
                                torch.nn.Linear(96, 10, device="meta"))
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    run.join(model, optimizer)
    for _ in range(iterations):
        x, keep = torch.randn(48, 64), torch.rand(48, 64) > 0.5
        made.append((x.clone(), x))
        optimizer.zero_grad(set_to_none=True)
        loss = model(x.to("meta") * keep.to("meta")).pow(2).mean()
        loss.backward()
        optimizer.step()
        yield [s["step"].item() for s in optimizer.state.values()]


class NoData(player.Direct):
    """Copies of what has no data."""

    def out(self, n, storage):
        self.copies[n] = torch.empty(0)

    def fetch(self, n, storage):
        assert self.copies[n] is not None


def meta(t):
    return t.device.type == "meta"


class Elsewhere(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def patch(self, owner, name, new):
        patched = mock.patch.object(owner, name, new)
        patched.start()
        self.addCleanup(patched.stop)

    def test_bits(self):
        resize = Untyped.resize_

        def resized(storage, count):
            self.assertNotIn(storage.nbytes() or count, HOST)
            return resize(storage, count)

        def here(storage, device):
            return lies(storage, device) and storage.nbytes() not in HOST

        for batches in "new", "in turn", "in place":
            want = execute(script, batches=batches)
            with mock.patch.object(capture, "lies", here), mock.patch.object(player, "lies", here), \
                    mock.patch.object(Untyped, "resize_", resized):
                for seed in range(4):
                    def make(_, it, seed=seed):
                        return random_plan(it, random.Random(seed), 0.6)[0] if seed else dropout_again(it)
                    with self.subTest(batches=batches, seed=seed):
                        p = Planner(make)
                        self.assertEqual(differs(want, execute(script, p, batches=batches)), "")
                        self.assertEqual(p.errors, [])
                        self.assertEqual([bool(plan) for _, plan, _ in p.iterations], [False] * 3 + [True] * 11)
                        it = p.graphs[0]
                        self.assertTrue(HOST.isdisjoint(t.bytes for t in it.planned()))
                        held = sum(t.bytes for t in it.slots if t.fixed and not t.storage.elsewhere)
                        self.assertIn(it.held - held, (0, 4))  # a loss of the iteration before
                        reads = [g for g in it.groups if "_to_copy" in g.name]
                        self.assertTrue(reads and all(g.once for g in reads))

    def test_devices(self):
        """A batch, a mask and Adam's counters on the host, and the model on meta."""
        equal, checksum = torch.equal, capture.checksum
        self.patch(torch, "equal", lambda a, b: meta(a) or meta(b) or equal(a, b))
        self.patch(capture, "checksum", lambda s: 0 if meta(s) else checksum(s))
        for module in capture, player:
            self.patch(module, "lies", lambda s, device: s.device == device)
        self.patch(player, "Direct", NoData)
        for seed in range(4):
            made, p = [], Planner(lambda _, it, seed=seed: random_plan(it, random.Random(seed), 0.6)[0])
            torch.manual_seed(7)
            counts, _ = execute(on_meta, p, made=made)
            self.assertEqual(p.errors, [])
            self.assertEqual([bool(plan) for _, plan, _ in p.iterations], [False] * 3 + [True] * 7)
            self.assertEqual(counts, [[i + 1.0] * 4 for i in range(10)])
            self.assertTrue(all(torch.equal(a, b) for a, b in made))
            it = p.graphs[0]
            self.assertEqual(len([t for t in it.planned() if t.persistent]), 12)  # parameters and their two moments
            self.assertEqual(it.held, 0)
            self.assertTrue(all(not t.storage.elsewhere for t in it.planned()))


if __name__ == "__main__":
    unittest.main()
