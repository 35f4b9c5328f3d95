"""Optimizers that change after the script has joined."""

import copy
import sys
import unittest
from unittest import mock

import torch
from torch.nn import functional as F

import scripts
import tensile
from scripts import Planner, differs, execute
from test_bits import at_random
from tensile.storages import storage_of

ADAM = dict(lr=0.01, foreach=False)


def trains(run, change, iterations=20, before=None, first=lambda model: torch.optim.Adam(model.parameters(), **ADAM)):
    """Trains; change(i, model, o) may return another optimizer before iteration i: before(model) has made it."""
    model = scripts.cnn()
    o = first(model)
    kept = before(model) if before else None
    run.join(model, o)
    for i in range(iterations):
        o = change(i, model, kept or o) or o
        run.optimizer = o
        x, y = torch.randn(8, 3, 12, 12), torch.randint(0, 10, (8,))

        def closure():
            o.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x), y)
            if hasattr(model, "extra"):
                loss = loss + model.extra.pow(2).mean()
            loss.backward()
            return loss

        loss = o.step(closure) if isinstance(o, torch.optim.LBFGS) else closure()
        if not isinstance(o, torch.optim.LBFGS):
            o.step()
        yield loss.item()


class Optimizers(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def joined(self, change, **options):
        want = execute(trains, change=change, **options)
        p = Planner(at_random(3, 0.6))
        self.assertEqual(differs(want, execute(trains, p, change=change, **options)), "")
        self.assertEqual(p.errors, [])
        return p

    def again(self, change, known=False):
        """Expects that what comes from iteration 6 on is recorded and planned for, as what was before it was; or is known: it
        does the same to other storages, and the plan is followed again once they have been seen."""
        p = self.joined(change)
        self.assertEqual(len(p.iterations), 20)
        self.assertTrue(p.iterations[5][1])
        graph, plan = p.iterations[-1][:2]  # what differs meanwhile may be a graph of its own
        self.assertTrue((graph, plan) == (1, 1) if known else graph > 1 and plan > 1, p.iterations)
        self.assertEqual([i[:2] for i in p.iterations[8 if known else -3:]], [(graph, plan)] * (12 if known else 3), p.lines)

    def test_replaced(self):
        """An optimizer that the script makes later takes the place of the one that joined."""
        for make, known in ((lambda model: torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), False),
                            (lambda model: torch.optim.Adam(model.parameters(), **ADAM), True),
                            (lambda model: torch.optim.Adam(model[-1].parameters(), **ADAM), False)):
            self.again(lambda i, model, o, make=make: make(model) if i == 6 else None, known)

    def test_old_reference(self):
        """Whoever still has the step of the first one may call it."""
        def change(i, model, o):
            if i == 0:
                self.old = o.step
            if i == 9:
                self.old()
            if i == 6:
                return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.again(change)

    @scripts.long
    def test_groups(self):
        """So does a group of parameters that is added, and state that is loaded."""
        def unfreeze(i, model, o):
            if i in (0, 6):
                model[0].requires_grad_(i > 0)

        def added(i, model, o):
            if i == 6:
                model.extra = torch.nn.Parameter(torch.ones(2000))
                o.add_param_group({"params": [model.extra]})

        def loaded(i, model, o):
            if i == 6:
                o.load_state_dict(o.state_dict())

        def other(i, model, o):
            if i in (6, 7):
                for p in model.parameters():
                    p.data = p.data.clone()

        for change in unfreeze, added, loaded, other:
            with self.subTest(change=change.__name__):
                self.again(change, known=change in (loaded, other))

    def test_copied(self):
        """A copy trains what it has, though all that the optimizer has is copied."""
        class Whole(torch.optim.SGD):
            def __getstate__(self):
                return self.__dict__

        def copied(i, model, o):
            if i == 4:
                copy.deepcopy((model, o))[1].step()

        self.joined(copied, first=lambda model: Whole(model.parameters(), lr=0.01, momentum=0.9), iterations=7)

    def test_rests(self):
        """A script that rests has nothing of its new optimizer on the device."""
        def script(run):
            def change(i, model, o):
                if i == 6:
                    o = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
                    self.o = o
                if i == 9 and run.session:
                    kept = [s["momentum_buffer"] for s in o.state.values()]
                    away = run.session.rest()
                    self.left = sum(storage_of(t).nbytes() for t in kept)
                    self.whole = len(kept)
                    run.session.wake(away)
                return o
            yield from trains(run, change)
        want = execute(script)
        p = Planner(at_random(3, 0.6))
        self.assertEqual(differs(want, execute(script, p)), "")
        self.assertEqual(self.left, 0)
        self.assertGreater(self.whole, 5)

    @scripts.long
    def test_another(self):
        """Another optimizer that was there before is noticed by what it does: from then on backward passes end iterations."""
        def sgd(model):
            return torch.optim.SGD(model.parameters(), lr=0.01)

        def foreach(model):
            return torch.optim.Adam(model.parameters(), lr=0.01, foreach=True)

        for make, first in (foreach, {}), (sgd, {}), (sgd, {"first": sgd}):  # of the last the ops are the same
            for since in 0, 6:
                with self.subTest(since=since, make=make.__name__, **first):
                    p = self.joined(lambda i, model, o, since=since: o if i >= since else None, before=make, **first)
                    self.assertEqual(len([w for w in p.lines if "something else than the optimizer" in w]), 1, p.lines)
                    if not since:
                        self.assertTrue(all(plan for _, plan, _ in p.iterations[-6:]), p.iterations)

    def test_many_backward_passes(self):
        """Nothing is wrong with many backward passes in a step, or between two."""
        p = self.joined(lambda i, model, o: None,
                        before=lambda model: torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=6), iterations=4)
        self.assertEqual([w for w in p.lines if "something else" in w], [])


class SAM(torch.optim.Optimizer):
    """Steps twice, as its public implementations do: up to where the loss is higher, then back, and down by another one."""

    def __init__(self, parameters, base, **options):
        super().__init__(parameters, {})
        self.base = base(self.param_groups, **options)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def step(self, closure):
        for p in self.param_groups[0]["params"]:
            self.state[p]["up"] = p.grad * 0.05
            p.add_(self.state[p]["up"])
        self.zero_grad()
        with torch.enable_grad():
            closure()
        for p in self.param_groups[0]["params"]:
            p.sub_(self.state[p]["up"])
        self.base.step()


class Each(torch.optim.Optimizer):
    """Steps by another optimizer once in a while, as that of Accelerate does."""

    def __init__(self, inner, every):
        self.inner, self.every, self.calls = inner, every, 0

    def step(self, closure=None):
        self.calls += 1
        if self.calls % self.every == 0:
            self.inner.step()

    param_groups = property(lambda self: self.inner.param_groups)
    state = property(lambda self: self.inner.state)
    defaults = {}


def sharp(run, iterations=14):
    model = scripts.cnn()
    o = SAM(model.parameters(), torch.optim.SGD, lr=0.01, momentum=0.9)
    run.join(model, o.base)
    for _ in range(iterations):
        x, y = torch.randn(8, 3, 12, 12), torch.randint(0, 10, (8,))

        def closure():
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        loss = closure()
        o.step(closure)
        o.zero_grad()
        yield loss.item()


class First(unittest.TestCase):
    """The first optimizer whose model is called joins, or that makes a step, with the largest module that has all of what it
    trains."""

    def joined(self, train, found=None):
        found = [] if found is None else found
        with mock.patch.object(tensile, "join", lambda model, optimizer: found.append((model, optimizer))):
            tensile.wait_for_training()
            train()
        self.assertEqual(len(found), 1)
        return found[0]

    def test_joins(self):
        model = torch.nn.ModuleDict({"a": torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)),
                                     "b": torch.nn.Linear(2, 1)})

        def backward():
            model["b"](model["a"](torch.ones(2, 4))).sum().backward()

        def steps(*optimizers):
            def run():
                backward()
                for o in optimizers:
                    o.step()
            return run

        sgd = torch.optim.SGD(model.parameters(), 0.1)
        a, b = (torch.optim.Adam(part.parameters()) for part in model.values())
        sam = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
        each = Each(sgd, 2)
        for name, train, optimizer in (
                ("one", steps(sgd), sgd), ("two", steps(b, a), b), ("every second call", steps(each, each), sgd),
                ("SAM", lambda: (backward(), sam.step(backward)), sam.base)):
            with self.subTest(name):
                joined = self.joined(train)
                self.assertIs(joined[0], model)
                self.assertIs(joined[1], optimizer)
        alone = torch.nn.Parameter(torch.ones(3))
        alone.sum().backward()
        self.assertEqual([p is alone for p in self.joined(torch.optim.SGD([alone], 0.1).step)[0].parameters()], [True])

    def test_joins_before_its_step(self):
        """The first that was made of what is called for training, if that has its sizes."""
        def called(alone):
            torch.optim.SGD(other.parameters(), 0.1)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            torch.optim.Adam(model.parameters())
            with torch.no_grad():
                model(torch.ones(1, 2))
            torch.nn.ReLU()(torch.ones(2))
            self.assertEqual(len(found), 0)
            model[0](torch.ones(1, 2)) if alone else model(torch.ones(1, 2))
            self.assertEqual(found, [(model, optimizer)])
            self.assertNotIn("__wrapped__", dir(torch.nn.Module.__call__))
            optimizer.step()

        def lazy():
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            model(torch.ones(1, 2))
            self.assertEqual(len(found), 0)
            model(torch.ones(1, 2)).sum().backward()
            self.assertEqual(found, [(model, optimizer)])
            optimizer.step()

        def compiled():
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            step = torch.compile(lambda x: model(x).sum(), backend="eager", fullgraph=True)
            step(torch.ones(1, 2)).backward()
            self.assertEqual(found, [(model, optimizer)])
            optimizer.step()
        for train, layer in ((lambda: called(False), torch.nn.Linear(2, 3)), (lambda: called(True), torch.nn.Linear(2, 3)),
                             (lazy, torch.nn.LazyLinear(3)), (compiled, torch.nn.Linear(2, 3))):
            other, model, found = torch.nn.Linear(2, 2), torch.nn.Sequential(layer), []
            self.joined(train, found)

    def test_first_step(self):
        """The first step of all ends the first iteration, also where another optimizer has joined by its model, or in the middle
        of this very step; later steps are those of that optimizer."""
        def sharp():
            sam = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
            return lambda: (closure(), sam.step(closure), sam.zero_grad()), sam.base

        def closed():
            o = torch.optim.SGD(model.parameters(), 0.1)
            return lambda: o.step(closure), o

        def second():
            a, b = (torch.optim.SGD(model.parameters(), 0.1) for _ in range(2))
            return lambda: (closure(), b.step(), a.step()), b

        def closure():
            loss = model(torch.ones(1, 2)).sum()
            loss.backward()
            return loss
        for make in sharp, closed, second:
            with self.subTest(make.__name__):
                model, p = torch.nn.Sequential(torch.nn.Linear(2, 3)), Planner()

                def join(model, optimizer, p=p):
                    tensile.start(list(model.parameters()), optimizer, p)
                with mock.patch.object(tensile, "join", join):
                    tensile.wait_for_training()
                    train, optimizer = make()
                    for n in range(1, 7):
                        train()
                        self.assertEqual(len(p.iterations), n)
                    self.assertIs(tensile._session.optimizer, optimizer)
                    tensile.leave()
                    tensile._left = False
                self.assertEqual(len(p.graphs), 1, p.lines)

    def test_sharp(self):
        """An optimizer that has another one step trains within a plan by the steps of that."""
        torch.set_num_threads(1)
        p = Planner(at_random(3, 0.6))
        self.assertEqual(differs(execute(sharp), execute(sharp, p)), "")
        self.assertTrue(all(plan for _, plan, _ in p.iterations[4:]), p.lines)


if __name__ == "__main__":
    unittest.main()
