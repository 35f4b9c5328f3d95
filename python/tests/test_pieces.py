"""Ops through lists of tensors, cut into pieces: to the bits of the whole, in every optimizer that makes them."""

import contextlib
import copy
import importlib
import itertools
import random
import unittest
from types import SimpleNamespace
from unittest import mock

import torch
from torch.nn import functional as F

import scripts
from plans import random_plan, shelved
from scripts import Planner, differs, execute
from tensile import pieces, session
from tensile.storages import identity, results

CPU = torch.device("cpu")


def small():
    """Has lists of small tensors cut too."""
    return mock.patch.dict(pieces.LEAST, cpu=0)


def operands(schema, n=7):
    """Returns arguments for an op, without those that are keywords alone."""
    made = []
    for a in schema.arguments:
        kind = str(a.type)
        if a.kwarg_only:
            break
        if kind == "List[Tensor]":
            made.append([torch.rand(5, 5) * 0.8 + 0.1 for _ in range(n)])
        elif kind == "List[number]":
            made.append([0.5 + i for i in range(n)])
        elif kind == "Tensor":
            made.append(torch.tensor(1.5))
        elif kind == "number":
            made.append(2.0)
        else:
            break  # a bool, a type: it has a default
    return made


def copied(args):
    return [[t.clone() for t in a] if isinstance(a, list) and isinstance(a[0], torch.Tensor) else a for a in args]


class Ops(unittest.TestCase):
    def test_all(self):
        """Of each op, pieces return and write what the whole does."""
        known, cut = 0, {}
        for schema in torch._C._jit_get_all_schemas():
            if not schema.name.startswith(("aten::_foreach_", "aten::_fused_")):
                continue
            func = getattr(getattr(torch.ops.aten, schema.name[6:]), schema.overload_name or "default")
            known += 1
            if pieces.lists(func) is None:
                continue
            cut[str(func)] = func
            if "fused" in schema.name:
                continue
            with self.subTest(op=str(func)), small():
                args = operands(schema)
                mine, theirs = copied(args), copied(args)
                how = pieces.cut(func, mine, {}, CPU)
                self.assertEqual((sum(how.counts), len(how.counts) > 2), (7, True))
                self.assertTrue(how.fits(func, args))
                want = func(*theirs)
                got = pieces.joined([func(*part) for part in how.parts(mine)])
                self.assertEqual(got is None, want is None)
                for a, b in zip(results([got, mine]), results([want, theirs])):
                    self.assertTrue(torch.equal(a, b))
                self.assertEqual(len(results(got)), len(results(want)))
        self.assertGreater(known, 100)
        for name in "_foreach_add_.ScalarList", "_foreach_norm.Scalar", "_foreach_sqrt.default", "_fused_adam_.default":
            self.assertIn("aten." + name, cut)
        # with a tensor of scalars, with several results, with a place for its result, of no lists
        for name in "_foreach_addcdiv_.Tensor", "_fused_adam.default", "_foreach_exp.out", "_fused_dropout.default":
            self.assertNotIn("aten." + name, cut)

    def test_unscaled(self):
        """Whether any gradient is infinite is found by all pieces together."""
        func = torch.ops.aten._amp_foreach_non_finite_check_and_unscale_.default
        for bad in None, 0, 3, 6:
            found, grads = [], [torch.rand(5, 5) for _ in range(7)]
            if bad is not None:
                grads[bad][2, 2] = float("inf")
            for whole in True, False:
                mine, flag = [g.clone() for g in grads], torch.zeros(1)
                args = mine, flag, torch.tensor([0.5])
                with small():
                    how = pieces.cut(func, args, {}, CPU)
                self.assertEqual(how.counts, (1,) * 7)
                for part in [args] if whole else how.parts(args):
                    func(*part)
                found.append([flag, *mine])
            self.assertEqual(found[0][0].item(), float(bad is not None))
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(*found)))

    def test_order(self):
        """Operands of pieces come back into the order of the whole."""
        args = list("abcde"), list("ABCDE"), "x", "y"
        how = pieces.Cut(None, (2, 1, 2), (True, True, False, False), (True, True, False, False))
        parts = [[*p[0], *p[1], *p[2:]] for p in how.parts(args)]
        self.assertEqual(how.whole(parts), list("abcdeABCDExy"))
        for n in 4, 6:
            self.assertFalse(how.fits(None, (args[0], list("ABCDEF")[:n], *args[2:])))

    def test_not_parted(self):
        """Elements that share memory are in one piece, and a list of them is not cut."""
        func = torch.ops.aten._foreach_mul_.Scalar
        flat = torch.rand(64)
        with small():
            self.assertEqual(pieces.cut(func, ([*flat.split(8), torch.rand(8), torch.rand(8)], 2.0), {}, CPU).counts, (8, 1, 1))
            self.assertIsNone(pieces.cut(func, (list(flat.split(8)), 2.0), {}, CPU))
            self.assertIsNone(pieces.cut(func, ([torch.rand(8)], 2.0), {}, CPU))
            self.assertIsNone(pieces.cut(torch.ops.aten.mul.Tensor, (flat, flat), {}, CPU))
            func = torch.ops.aten._foreach_add.List
            a, b = [torch.rand(8) for _ in range(7)], [torch.rand(8) for _ in range(7)]
            self.assertEqual(pieces.cut(func, (a, [a[4], *b[1:]]), {}, CPU).counts, (5, 1, 1))
            self.assertEqual(pieces.cut(func, (a, [b[3], *b[1:]]), {}, CPU).counts, (4, 1, 1, 1))
            self.assertIsNone(pieces.cut(func, (a, b[:6]), {}, CPU))
            func = torch.ops.aten._foreach_mul_.Scalar
        self.assertIsNone(pieces.cut(func, ([torch.rand(8) for _ in range(9)], 2.0), {}, CPU))

    def test_one_way(self):
        """Where torch takes its fast way for all elements or for none, only elements of one kind are parted."""
        cuda = SimpleNamespace(type="cuda")
        func = torch.ops.aten._foreach_add_.List
        a, b = [torch.rand(4, 4) for _ in range(5)], [torch.rand(4, 4) for _ in range(5)]
        with mock.patch.dict(pieces.LEAST, cuda=0):
            self.assertEqual(pieces.cut(func, (a, b), {}, cuda).counts, (1,) * 5)
            for other in torch.rand(4, 4, dtype=torch.float64), torch.rand(4, 4).t(), torch.rand(4, 8)[:, ::2], torch.rand(4):
                self.assertIsNone(pieces.cut(func, (a, [*b[:4], other]), {}, cuda))
            each = torch.ops.aten._foreach_mul_.ScalarList
            self.assertIsNone(pieces.cut(each, (a, [1.0, 2.0, 3.0, 4.0, 5]), {}, cuda))


def options():
    """Yields the name of each optimizer, and its options, that take lists of tensors."""
    common = {"weight_decay": (0.1,), "maximize": (True,), "lr": (torch.tensor(1e-2),), "capturable": (True,)}
    own = {"Adam": {"amsgrad": (True,)}, "AdamW": {"amsgrad": (True,)}, "SGD": {"momentum": (0.9,), "nesterov": (True,)},
           "RMSprop": {"momentum": (0.9,), "centered": (True,)}, "Adagrad": {"lr_decay": (0.1,)},
           "NAdam": {"decoupled_weight_decay": (True,)}, "RAdam": {"decoupled_weight_decay": (True,)}}
    for name, kind in vars(torch.optim).items():
        if not isinstance(kind, type):
            continue
        for way in ("foreach", "fused"):
            if way not in kind.__init__.__code__.co_varnames:
                continue
            for one in ({}, *({k: v} for k, (v,) in {**common, **own.get(name, {})}.items())):
                if set(one) <= set(kind.__init__.__code__.co_varnames) and not (way == "fused" and "capturable" in one):
                    yield name, {"lr": 1e-2, way: True, **({"momentum": 0.9} if "nesterov" in one else {}), **one}


@contextlib.contextmanager
def capturable():
    """Has a CPU pass for what can be captured."""
    with contextlib.ExitStack() as patches:
        for name in "adam adamax nadam radam rmsprop asgd adadelta rprop adagrad".split():
            module = importlib.import_module("torch.optim." + name)
            if hasattr(module, "_get_capturable_supported_devices"):
                patches.enter_context(mock.patch.object(module, "_get_capturable_supported_devices", lambda *a: ["cpu"]))
        yield


def trains(run, name, options, scale=None, clip=False, mixed=False, between=None, iterations=9):
    """Trains two groups of parameters, in the rates of each; with a scaler some steps are left out."""
    model = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(16, 16), torch.nn.Tanh())])
    if mixed:
        model[2].double()
    weights = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() == 1]
    o = getattr(torch.optim, name)([{"params": weights}, {"params": rest, "lr": options["lr"] * 2}], **options)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=3) if scale else None
    run.join(model, o)
    for i in range(iterations):
        x = torch.randn(8, 16)
        o.zero_grad(set_to_none=False)
        for m in model:
            x = m(x.to(m.weight.dtype) if isinstance(m, torch.nn.Linear) else x)
        loss = F.mse_loss(x.float(), torch.zeros(8, 16))
        (scaler.scale(loss) if scaler else loss).backward()
        if clip:
            grads = [p.grad for p in model.parameters()]
            torch._foreach_mul_(grads, 0.1 / torch.stack(torch._foreach_norm(grads)).norm().item())
        if scaler:
            scaler.step(o)
            scaler.update()
        else:
            o.step()
        yield loss.item()
        if between:
            between(run, i)


class Optimizers(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def same(self, name, options, **more):
        """Compares the script alone with that by plans: at random, and with what is trained away between its uses."""
        with small(), capturable():
            try:
                want = execute(trains, name=name, options=options, **more)
            except (AssertionError, RuntimeError, ValueError, TypeError) as e:
                return str(e)  # torch does not take these together
            for make in (lambda n, it: random_plan(it, random.Random(n), 0.6)[0]), lambda n, it: shelved(it):
                p = Planner(make)
                self.assertEqual(differs(want, execute(trains, p, name=name, options=options, **more)), "")
                self.assertEqual(p.errors, [])
                self.assertGreater(sum(bool(plan) for _, plan, _ in p.iterations), 2 if not more.get("scale") else -1)
        self.cut += sum(r.cut is not None for g in p.graphs for r in g.records)
        return None

    def test_all(self):
        """All optimizers with all options, at full length; a few of them else."""
        every = list(options())
        picked = every if scripts.LONG else random.Random(5).sample(every, 2)
        self.cut, refused = 0, {}
        for name, chosen in picked:
            with self.subTest(optimizer=name, options=chosen):
                why = self.same(name, chosen)
                if why:
                    refused[name, str(chosen)] = why
        self.assertLessEqual(len(refused), len(picked) // 4, refused)
        self.assertGreater(self.cut, 20 * (len(picked) - len(refused)))

    def test_scaled(self):
        """Where the step unscales gradients itself, and leaves out those that are infinite."""
        names = "Adam", "AdamW", "SGD", "Adagrad"
        self.cut = 0
        for name, way in itertools.product(names if scripts.LONG else names[:1], ("fused", "foreach")):
            with self.subTest(optimizer=name, way=way):
                self.assertIsNone(self.same(name, {"lr": 1e-2, way: True}, scale=2.0 ** 126, iterations=14))
        self.assertGreater(self.cut, 0)

    def test_more(self):
        """Clipping reduces what its first op has of each element; parameters may have several types."""
        self.cut = 0
        self.assertIsNone(self.same("AdamW", {"lr": 1e-2, "foreach": True}, clip=True))
        self.assertIsNone(self.same("AdamW", {"lr": 1e-2, "foreach": True}, mixed=True))
        self.assertGreater(self.cut, 0)

    def test_whole(self):
        """An op runs whole where no plan moves anything between its pieces, and in pieces where one does."""
        ran = []

        def counted(run, **options):
            for loss in trains(run, **options):
                p = run.session.player if run.session else None
                if p is not None and p.plan:
                    ran.append([c for c in p.usual if c.whole or c.span > 1])
                yield loss

        chosen = {"lr": 1e-2, "foreach": True}
        with small():
            want = execute(trains, name="AdamW", options=chosen)
            for make, spans in ((lambda n, it: {"limit_bytes": 0, "entry": [s for s, t in enumerate(it.planned())
                                                                             if t.persistent], "boundaries": []}, True),
                                (lambda n, it: shelved(it), False)):
                ran.clear()
                self.assertEqual(differs(want, execute(counted, Planner(make), name="AdamW", options=chosen)), "")
                self.assertTrue(ran and ran[-1])
                self.assertEqual(all(c.span > 1 for c in ran[-1]), spans)

    def test_whole_with_others(self):
        """So it does where it has other storages than before, which may lie otherwise."""
        def loaded(run):
            run.optimizer.load_state_dict(copy.deepcopy(run.optimizer.state_dict()))

        def given(run):
            run.model[0].weight.data = run.model[0].weight.data.clone()

        pieces_of, cuts, chosen = session.Session._pieces, [], {"lr": 1e-2, "foreach": True}

        def counted(*args):
            cuts[-1] += 1
            return pieces_of(*args)

        for change in loaded, given:
            def between(run, i, change=change):
                cuts.append(0)
                if i == 5:
                    change(run)

            with self.subTest(change=change.__name__), small():
                want = execute(trains, name="AdamW", options=chosen, between=between)
                cuts[:] = [0]
                p = Planner(lambda n, it: shelved(it))
                with mock.patch.object(session.Session, "_pieces", counted):
                    self.assertEqual(
                        differs(want, execute(trains, p, name="AdamW", options=chosen, between=between)), "")
                self.assertEqual([bool(plan) for _, plan, _ in p.iterations], [i not in (0, 1, 2, 6, 7) for i in range(9)])
                self.assertEqual([n > 10 for n in cuts[3:6]] + cuts[7:], [True] * 3 + [1, cuts[5], 0])  # one is before that

    def test_lists_of_the_script(self):
        """Lists that the script has made itself: of batches, of what a layer makes, and after a step, for the next iteration.
        A plan takes all that an op has away right before it."""
        def script(run, iterations=9):
            model = torch.nn.ModuleList([torch.nn.Linear(8, 8) for _ in range(5)])
            o = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
            run.join(model, o)
            pool = [[torch.randn(4, 8) for _ in model] for _ in range(3)]
            kept = None
            for i in range(iterations):
                xs = torch._foreach_mul(pool[i % 3], [0.5, 1.0, 2.0, 3.0, 4.0])
                hs = torch._foreach_tanh([m(x) for m, x in zip(model, xs)])
                if kept:
                    hs = torch._foreach_add(hs, kept)
                loss = sum(h.pow(2).mean() for h in torch._foreach_exp(hs))
                o.zero_grad()
                loss.backward()
                o.step()
                kept = torch._foreach_mul([h.detach() for h in hs], 0.1)
                if run.session and run.session.player:
                    left.append(sorted(run.session.player.left.values()) == sorted(map(identity, kept)))
                yield loss.item()

        def away(number, it):
            slots, do, p = it.planned(), [], 0
            while p < len(it.records):
                n = len(it.records[p].cut.counts) if it.records[p].cut is not None else 1
                groups = [it.group_at[q] for q in range(p, p + n) if it.group_at[q] is not None]
                if n > 1 and groups:
                    made = {t for g in groups for t in it.groups[g].makes}
                    had = {slots.index(t) for g in groups for t in it.groups[g].reads if t not in made}
                    do.append({"before": groups[0], "do": [{"do": w, "storage": t} for t in had for w in ("out", "drop")]})
                p += n
            return {"limit_bytes": 0, "entry": [s for s, t in enumerate(slots) if t.persistent], "boundaries": do}

        left = []
        with small():
            want = execute(script)
            for make in away, lambda n, it: random_plan(it, random.Random(3), 0.8)[0]:
                p = Planner(make)
                self.assertEqual(differs(want, execute(script, p)), "")
                self.assertEqual((p.errors, [bool(plan) for _, plan, _ in p.iterations]), ([], [False] * 3 + [True] * 6))
        self.assertEqual(left[::7], [True] * 2)  # the first iteration of each that is followed and not played


if __name__ == "__main__":
    unittest.main()
