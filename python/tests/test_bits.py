"""Scripts end with the same bits under any valid plan."""

import contextlib
import copy
import io
import os
import random
import tempfile
import unittest

import numpy as np
import torch

import scripts
from plans import random_plan, shelved
from scripts import Planner, differs, execute

from tensile.storages import identity


def at_random(seed, often=0.3, least=0):
    return lambda number, iteration: random_plan(iteration, random.Random(seed), often, least)[0]


def reused(run, late, iterations=10):
    """A loader that writes each batch, and late a weight too, in place."""
    model = torch.nn.Linear(64, 8)
    o = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    buffer = torch.zeros(16, 64)

    def collate(numbers):
        buffer.fill_(0.5).add_(numbers[0] / 100)
        if late and numbers[0] > 6:
            with torch.no_grad():
                model.weight.mul_(0.5)
        return buffer

    run.join(model, o)
    for x in torch.utils.data.DataLoader(range(iterations), 1, collate_fn=collate):
        o.zero_grad(set_to_none=True)
        loss = model(x).tanh().pow(2).mean()
        loss.backward()
        o.step()
        yield loss.item()


def rounds(run, how, iterations=10):
    """Storages that go round: the next batch is there while one is used, a list of batches, a loss that is kept."""
    model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
    o = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run.join(model, o)
    batches, loss = [torch.randn(16, 24) for _ in range(3)], None
    for i in range(iterations):
        x = batches[i % 3]
        if how == "ahead":
            batches[(i + 1) % 3] = torch.randn(16, 24)
        o.zero_grad(set_to_none=True)
        new = model(x).pow(2).mean()
        if how == "kept" and loss is not None:
            yield loss.item()
        loss = new
        loss.backward()
        o.step()
        yield loss.item()
        if how != "kept":
            loss = None


class Bits(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def same(self, script, seeds=(1, 2), planned=1, **options):
        """Runs a script plainly, joined without a plan and under random plans, in short form one, and compares bits."""
        want = execute(script, **options)
        free = Planner()
        self.assertEqual(differs(want, execute(script, free, **options)), "", "joined without a plan")
        for seed in seeds[:None if scripts.LONG else 1]:
            p = Planner(at_random(seed))
            self.assertEqual(differs(want, execute(script, p, **options)), "", f"seed {seed}")
            self.assertEqual(p.errors, [], f"seed {seed}")
            followed = sum(1 for graph, plan, _ in p.iterations if plan)
            self.assertGreaterEqual(followed, planned, f"seed {seed}: {p.lines[:3]}")
        return p

    def test_networks(self):
        """Three networks, three optimizers, 50 iterations; in short form one of each, 12 iterations."""
        pairs = [(n, o) for n in scripts.NETWORKS for o in scripts.OPTIMIZERS]
        for network, optimizer in pairs if scripts.LONG else pairs[1:2]:
            with self.subTest(network=network, optimizer=optimizer):
                iterations = 50 if scripts.LONG else 12
                self.same(scripts.plain, seeds=[len(network) + len(optimizer)], planned=iterations - 4, network=network,
                          optimizer=optimizer, iterations=iterations)

    def test_storages_that_go_round(self):
        """What is another storage in each iteration does not last, though it is older than the iteration."""
        for how in "ahead", "list", "kept":
            with self.subTest(how=how):
                self.same(rounds, planned=7, how=how)

    def test_numbers_of_one_tensor(self):
        """Reading them brings back that tensor's memory alone, and the plan goes on."""
        def script(run, iterations=10):
            model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
            o = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            run.join(model, o)
            for _ in range(iterations):
                x, p = torch.randn(16, 24), run.session.player if run.session is not None and run.session.plan else None
                before = set(p.away) if p else None
                yield model[2].bias.detach().tolist()
                if p:
                    found.append((before - p.away, p.bound.index(identity(model[2].bias)), len(p.away) > 0))
                o.zero_grad(set_to_none=True)
                out = model(x)
                yield out.detach().argmax(1).tolist()
                out.pow(2).mean().backward()
                o.step()

        found = []
        p = Planner(lambda number, iteration: shelved(iteration))
        self.assertEqual(differs(execute(script), execute(script, p)), "")
        self.assertEqual(found[0][0], set())  # before the iteration that begins with the plan
        self.assertEqual(found[1:], [({found[1][1]}, found[1][1], True)] * 6)

    def test_never_alike(self):
        """Iterations of which no two are alike are recorded ever more seldom, in one line; a shape that comes is planned."""
        def script(run, iterations=54):
            model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
            o = torch.optim.SGD(model.parameters(), lr=0.1)
            run.join(model, o)
            for i in range(iterations):
                if run.session is not None:
                    recorded.append(run.session.course == run.session._record)
                o.zero_grad(set_to_none=True)
                out = model(torch.randn(8, 24))
                for _ in range(min(i, 30)):
                    out = out.tanh()
                loss = out.pow(2).mean()
                loss.backward()
                o.step()
                yield loss.item()

        recorded, p, said = [], Planner(at_random(1)), io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(differs(execute(script), execute(script, p)), "")
        looks = [*range(7), 8, 9, 12, 13, 18, 19, 28, 29, 46, 47, 48]
        self.assertEqual([i for i, r in enumerate(recorded) if r], looks)
        self.assertEqual([i for i, (_, plan, _) in enumerate(p.iterations) if plan], [49, 50, 51, 52, 53])
        self.assertRegex(said.getvalue(), r"\Atensile: no two iterations were alike: op \d+ is aten.*\n\Z")

    def test_none_or_zero(self):
        self.same(scripts.plain, none=False)

    def test_checkpoint(self):
        self.same(scripts.checkpointed)

    def test_custom_function(self):
        self.same(scripts.custom)

    def test_autocast(self):
        self.same(scripts.autocast)

    def test_accumulation_and_schedule(self):
        self.same(scripts.accumulation)

    def test_epochs(self):
        """Neither the beginning of an epoch nor an evaluation costs an iteration of the plan."""
        cases = (2, 4, 2), (0, 8, 3), (2, 40, 8)
        for workers, batch, epochs in cases if scripts.LONG else cases[:1]:
            with self.subTest(workers=workers, batch=batch):
                p = self.same(scripts.epochs, seeds=[1], workers=workers, batch=batch, epochs=epochs)
                self.assertEqual([bool(plan) for _, plan, _ in p.iterations],
                                 [False] * 3 + [True] * (40 // batch * epochs - 3))
                self.assertEqual(p.lines, [])

    def test_evaluation_with_gradients(self):
        """An evaluation that is a forward pass like any other costs the next iteration, at most."""
        def script(run):
            model = scripts.cnn()
            o = torch.optim.Adam(model.parameters())
            run.join(model, o)
            for i in range(12):
                o.zero_grad(set_to_none=True)
                loss = model(torch.randn(8, 3, 12, 12)).pow(2).mean()
                loss.backward()
                o.step()
                yield loss.item()
                if i % 4 == 3:
                    for _ in range(3):
                        yield model(torch.randn(8, 3, 12, 12)).sum().item()
        self.same(script, planned=7)

    def test_loader_that_writes_into_the_same_memory(self):
        """What a loader touches is outside of the plan, whether it is seen there before or after the recording."""
        for late in False, True:
            with self.subTest(late=late):
                self.same(reused, seeds=[1], planned=0 if late else 5, late=late)

    def test_save(self):
        want, got = [], []
        a = execute(scripts.saving, into=want)
        p = Planner(at_random(4, 0.6))
        b = execute(scripts.saving, p, into=got)
        self.assertEqual(differs(a, b), "")
        self.assertEqual([bool(plan) for _, plan, _ in p.iterations], [False] * 3 + [True] * 9)
        self.assertEqual([len(f) > 0 for f in want], [True, True])
        self.assertEqual(want, got)


class Other(unittest.TestCase):
    """Iterations that are not the recorded one."""

    def test_written_by_numpy(self):
        """What a script writes through an array is there in the rest of the iteration, and nothing is made of it again that was
        made before."""
        def script(run, when):
            model = torch.nn.Sequential(*[m for a in (64, 256) for m in (torch.nn.Linear(a, 256), torch.nn.ReLU())],
                                        torch.nn.Linear(256, 64))
            o = torch.optim.AdamW(model.parameters(), foreach=False)
            run.join(model, o)
            for i in range(14):
                for at in "before", "between", "behind":
                    if at == "before":
                        o.zero_grad()
                    elif at == "between":
                        loss = model(torch.randn(32, 64)).square().mean()
                    else:
                        loss.backward()
                        o.step()
                    if at == when and i % 3 == 2 and i > 6:
                        model[4].weight.detach().numpy()[0, 0] += 1
                yield loss.item()

        for when in "before", "between", "behind":
            for seed in (0, 2) if scripts.LONG else (0,):
                with self.subTest(when=when, seed=seed):
                    self.planned(script, seed, when=when)

    def planned(self, script, seed=3, **options):
        want = execute(script, **options)
        p = Planner(at_random(seed, 0.6))
        self.assertEqual(differs(want, execute(script, p, **options)), "")
        return p

    def test_another_op(self):
        p = self.planned(scripts.plain, iterations=12, scale=lambda i, loss: loss * 1.5 if i == 6 else loss)
        self.assertEqual([bool(plan) for _, plan, _ in p.iterations[4:]],
                         [True, True, False, True, True, True, True, True])
        self.assertEqual(len(p.lines), 1)

    def test_smaller_batches(self):
        """A plan is for smaller batches, too."""
        p = self.planned(scripts.plain, iterations=12, batch=lambda i: {6: 5, 7: 4}.get(i, 8))
        self.assertEqual((len(p.graphs), p.lines), (1, []))
        self.assertEqual([plan for _, plan, _ in p.iterations], [0] * 3 + [1] * 9)

    def test_larger_batches(self):
        """What a larger iteration has is planned for after it, and it has no plan; smaller ones keep theirs meanwhile."""
        p = self.planned(scripts.plain, iterations=12, batch=lambda i: 7 if i == 5 else 8 if i in (7, 8) else 6)
        self.assertEqual([plan for _, plan, _ in p.iterations], [0] * 3 + [1, 1, 0, 1, 0, 0, 2, 2, 2])
        self.assertEqual([graph for graph, _, _ in p.iterations[3:]], [1, 1, 1, 1, 1, 1, 2, 2, 2])
        for before, now in zip(p.graphs, p.graphs[1:]):
            self.assertIs(before, now)  # the same iteration, grown

    def test_other_parameters(self):
        """The same ops on other memory are the same graph, which takes that for its own."""
        kept = []

        def between(run, i):
            if i == 5:
                for q in run.model.parameters():
                    kept.append(q.data)
                    q.data = q.data * 0.5
        p = self.planned(scripts.plain, iterations=16, between=between)
        self.assertEqual(len(p.graphs), 1)
        self.assertEqual([plan for _, plan, _ in p.iterations], [int(i > 2 and i != 6) for i in range(16)])

    def test_second_shape(self):
        """A second steady kind of iteration gets a plan of its own, and so does the first, which it follows now."""
        p = self.planned(scripts.plain, iterations=24, scale=lambda i, loss: loss * 1.5 if 6 <= i < 16 else loss)
        self.assertEqual([bool(plan) for _, plan, _ in p.iterations], [i > 2 and i not in (6, 7, 16) for i in range(24)])

    def test_exception(self):
        """A script that catches an exception in the middle of a backward pass goes on with the same bits."""
        def script(run):
            model = scripts.cnn()
            o = torch.optim.Adam(model.parameters())
            run.join(model, o)
            for i in range(14):
                o.zero_grad(set_to_none=True)
                out = model(torch.randn(8, 3, 12, 12))
                try:
                    if i in (6, 9):
                        def fail(grad):
                            raise KeyboardInterrupt if i == 6 else ValueError
                        out.register_hook(fail)
                    out.pow(2).mean().backward()
                except (KeyboardInterrupt, ValueError):
                    continue
                o.step()
                yield out.sum().item()
        p = self.planned(script)
        self.assertTrue(p.iterations[-1][1])

    def test_memory_read_without_an_op(self):
        seen = []

        def between(run, i):
            seen.append([p.detach().numpy().sum() for p in run.model.parameters()])
        want = execute(scripts.plain, between=between)
        first, seen[:] = list(seen), []
        p = Planner(at_random(5, 0.7))
        self.assertEqual(differs(want, execute(scripts.plain, p, between=between)), "")
        for a, b in zip(first, seen):
            self.assertEqual([float(x) for x in a], [float(x) for x in b])

    def test_memory_lent(self):
        """What shares a tensor's memory, by dlpack or between processes, reads the script's own numbers later too;
        so does a child at its fork."""
        for way in "dlpack", "share", "fork":
            lent, seen = [], []

            def between(run, i, way=way, lent=lent, seen=seen):
                ps = list(run.model.parameters())
                if i == 6 and way == "dlpack":
                    lent.extend(np.from_dlpack(q.detach()) for q in ps)
                elif i == 6 and way == "share":
                    run.model.share_memory()
                elif i == 6:
                    with tempfile.TemporaryFile() as f:
                        child = os.fork()
                        if child == 0:
                            try:
                                for q in ps:
                                    os.write(f.fileno(), bytes(q.detach().numpy()))
                            finally:
                                os._exit(0)
                        os.waitpid(child, 0)
                        f.seek(0)
                        seen.append(f.read())
                seen.extend(a.copy() for a in lent)
            with self.subTest(way=way):
                want = execute(scripts.plain, between=between)
                first, seen[:], lent[:] = list(seen), [], []
                p = Planner(lambda number, iteration: shelved(iteration))
                self.assertEqual(differs(want, execute(scripts.plain, p, between=between)), "")
                self.assertTrue(p.iterations[6][1], "no plan was followed")
                same = [np.array(a).tobytes() for a in first] == [np.array(a).tobytes() for a in seen]
                self.assertTrue(same, "other numbers were read")

    def test_memory_lent_before_it_comes(self):
        """What was lent before an op has touched it stays, too: a batch of a loader, and what a parameter is given."""
        def script(run, since, given, iterations=12):
            model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
            o = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            run.join(model, o)
            lent = []

            def collate(numbers):
                x = torch.randn(16, 24)
                if numbers[0] >= since and not given:
                    lent[:] = [np.from_dlpack(x)]
                return x
            for i, x in enumerate(torch.utils.data.DataLoader(range(iterations), 1, collate_fn=collate)):
                if i == since and given:
                    other = model[2].weight.detach().clone()
                    lent.append(np.from_dlpack(other))
                    model[2].weight.data = other
                o.zero_grad(set_to_none=True)
                loss = model(x).pow(2).mean()
                yield from (float(a.sum()) for a in lent)
                loss.backward()
                o.step()
                yield from (float(a.sum()) for a in lent)
                yield loss.item()
        for since, given in (0, False), (6, False), (6, True):
            with self.subTest(since=since, given=given):
                want = execute(script, since=since, given=given)
                p = Planner(at_random(1, 1.0))
                self.assertEqual(differs(want, execute(script, p, since=since, given=given)), "")
                self.assertTrue(p.iterations[5][1] and p.iterations[-1][1], p.iterations)


if __name__ == "__main__":
    unittest.main()
