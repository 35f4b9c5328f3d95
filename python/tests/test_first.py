"""A limit before there is a plan: the first iterations are within it, to the bits of the script alone."""

import contextlib
import gc
import io
import random
import unittest
from unittest import mock

import scripts
import test_pieces
import test_saved
import torch
from plans import random_plan, shelved
from scripts import LONG, Planner, Run, differs, execute
from test_programs import program
from torch import nn

from tensile import modes, saved, used
from tensile.capture import TooLarge
from tensile.events import Events, marking
from tensile.session import Session
from tensile.storages import checksum


class Limited(Planner):
    """Has a limit, and no plan, or those of make after some steps."""

    def __init__(self, limit, strict=False, make=None):
        super().__init__(make)
        if limit:
            self.plans.append({"number": 1, "graph": 0, "limit_bytes": limit, "strict": strict})
            self.next.append(self.plans[0])


DEPTH = 24 if LONG else 12


class Deep(nn.Module):
    """Most of its memory is what autograd saves."""

    def __init__(self, depth, width=64):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def deep(run, forward=lambda i, model, x: model(x), backward=lambda i, loss: loss.backward(), iterations=5, rows=2048, depth=DEPTH,
         compiles=None, after=None):
    torch.manual_seed(0)
    model = Deep(depth)
    if compiles:
        torch._dynamo.reset()
        for layer in model.layers:
            layer.compile(backend=compiles)
    o = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    run.join(model, o)
    for i in range(iterations):
        o.zero_grad(set_to_none=True)
        loss = forward(i, model, torch.randn(rows, 64)).pow(2).mean()
        backward(i, loss)
        o.step()
        yield loss.item()
        if after:
            after(i)


def peaks(script, planner=None, **options):
    """Runs a script; returns the most that the allocator has in each iteration, and what execute returns."""
    torch.manual_seed(7)
    run, losses = Run(planner), []
    events = Events().start()
    try:
        for loss in script(run, **options):
            losses.append(loss)
            with marking():
                pass
    finally:
        sizes = events.stop()
    run.leave()
    now, most, found = 0, 0, []
    for size in sizes:
        if size is None:
            found.append(most)
            most = now
        else:
            now += size
            most = max(most, now)
    return found, (losses, run.state())


def noted(iteration):
    """Returns what was noted of the packs of a cycle, with storages by first appearance."""
    numbers, saves = {}, iteration.saves

    def of(s):
        return None if s is None else numbers.setdefault(s, len(numbers))
    return ([(of(s), shape, dtype) for s, shape, dtype in saves.packs], {of(s): k for s, k in saves.needed.items()},
            {of(s): (k, at - iteration.made_of[2]) for s, (k, at) in saves.alone.items()},
            [at - iteration.made_of[2] for at in saves.unpacks])


class Within(test_saved.Base):
    @contextlib.contextmanager
    def within(self, limit):
        """Has sessions begin with a limit, and counts what goes."""
        with self.watched():
            yield Limited(limit)


class First(Within):
    def test_a_third(self):
        """What needs three times its limit has no more than that from its first iteration on."""
        cases = ("ops", {"depth": 24}), ("compiled", {"depth": 24, "compiles": "aot_eager"})
        for name, options in cases if LONG else cases[:1]:
            with self.subTest(name=name):
                alone, want = peaks(deep, **options)
                limit = max(alone) // 3
                with self.within(limit) as p, mock.patch.object(saved, "moving", contextlib.nullcontext):
                    found, got = peaks(deep, p, **options)
                self.assertEqual((differs(want, got), p.errors), ("", []))
                self.assertGreater(self.moved, 0)
                self.assertLessEqual(max(found), limit, (alone, found))

    def test_ids(self):
        """Storages that get the ids of gradients of the iteration before go like others."""
        counts = []
        with self.within(1) as p:
            execute(deep, p, iterations=12, depth=4, after=lambda i: counts.append(self.moved))
        self.assertEqual({b - a for a, b in zip(counts[4:], counts[5:])}, {counts[5] - counts[4]})

    def test_no_limit(self):
        """Nothing goes where there is no limit, or what is needed is far below it."""
        for limit in 0, 1 << 30:
            with self.within(limit) as p:
                execute(deep, p)
            self.assertEqual((self.moved, len(p.graphs)), (0, 1))

    def test_recorded(self):
        """What is recorded within a limit is what is recorded without one."""
        cases = (("cnn", scripts.plain, {}), ("encoder", scripts.plain, {"network": "encoder"}), ("deep", deep, {}),
                 ("compiled", deep, {"compiles": "aot_eager", "iterations": 8}))
        for name, script, options in cases if LONG else cases[1:2]:
            with self.subTest(name=name):
                found = []
                for limit in 0, 1:
                    gc.collect()
                    with self.within(limit) as p, mock.patch.object(saved.Room, "fits", lambda room, size: True):
                        execute(script, p, **options)
                    found.append(p.graphs[0])
                self.assertGreater(self.moved, 0)
                a, b = found
                self.assertEqual(noted(a), noted(b))
                self.assertEqual([(t.bytes, t.persistent, t.fixed, t.until) for t in a.slots],
                                 [(t.bytes, t.persistent, t.fixed, t.until) for t in b.slots])
                if "compiles" in options:
                    # what else lives in this process, as the parameters of the run before, counts as needed
                    trained = 4 * DEPTH * (64 * 64 + 64)
                    for x, y in zip(a.groups, b.groups):
                        self.assertLess((y.scratch - x.scratch + 64) % trained, 128)
                else:
                    self.assertEqual(str(a.key), str(b.key))

    def test_probed(self):
        """An op that does not fit twice is compared by checksums, and runs once in an iteration; one that fits may run again."""
        for limit, once in (1, True), (1 << 30, False):
            with self.within(limit) as p:
                execute(deep, p)
            found = [g.once for g in p.graphs[0].groups if "aten.tanh.default" in g.name]
            self.assertEqual(found, [once] * len(found))
            self.assertEqual([g.name for g in p.graphs[0].groups if "add_" in g.name and not g.updates], [])

    def test_then_a_plan(self):
        """A plan comes after iterations of which something went, and may be played in both ways."""
        for part, by in (0, 0), (-2, 1):
            stacks = []
            with self.subTest(part=part):
                want = execute(deep, iterations=12)
                with self.watched():
                    p = Limited(1 << 20, make=test_saved.within(part))
                    got = execute(deep, p, iterations=12, after=lambda i, stacks=stacks: stacks.append(
                        modes._len_torch_dispatch_stack()))
                self.assertEqual((differs(want, got), p.errors), ("", []))
                self.assertEqual(stacks, [1] * 2 + [by] * 10)
                self.assertEqual([bool(plan) for _, plan, _ in p.iterations[3:]], [True] * 9)

    def test_too_large(self):
        """An op that no plan can have within the limit ends the script, and says which it is and where."""
        with self.within(3 * 4 * 2048 * 64) as p:
            p.plans[0]["strict"] = True
            execute(deep, p)  # the largest op has just this
        with self.within(4 * (64 + 64 * 64 + 2 * 2048 * 64) - 1) as p, self.assertRaises(TooLarge) as caught:
            p.plans[0]["strict"] = True
            execute(deep, p)
        self.assertRegex(str(caught.exception), r"aten\.addmm\.default works on \d+ bytes, and the limit is 1065215 "
                         r"\(\S+, line \d+\): raise --memory, or take a smaller batch")

    def test_brought(self):
        """What is brought back has room made for it before."""
        def made(room, size):
            fits.append(make(room, size))
            return fits[-1]

        def brought(room, p):
            was, session = p.kept.away, room.session
            with mock.patch.object(session, "limit", room.live() + 1 if was else session.limit):
                fits.clear()
                bring(room, p)
                if was and fits[0]:
                    over.append(room.live() - session.limit)
        make, bring, fits, over = saved.Room.make, saved.Room.bring, [], []
        limit = 4 << 20
        with self.within(limit) as p, mock.patch.multiple(saved, TIMES=0, MARGIN=2 * limit), \
                mock.patch.object(saved.Room, "make", made), mock.patch.object(saved.Room, "bring", brought):
            execute(deep, p, iterations=1, depth=12, backward=lambda i, loss: loss.backward(retain_graph=True))
        self.assertGreater(len(over), 0)
        self.assertLessEqual(max(over), 0)

    def test_no_memory(self):
        """An op for which there is no memory runs again, once, when something has gone; not one that writes, and none where
        nothing can go."""
        tanh = torch.ops.aten.tanh.default

        def forward(i, model, x):
            y = model(x)
            if i in at:
                with torch.no_grad():
                    failing.append(True)
                    y.tanh()
            return y

        def run(session, func, args, kwargs):
            if func is tanh and failing:
                failing.pop()
                failed.append(func)
                raise torch.OutOfMemoryError("no room")
            return course(session, func, args, kwargs)
        failing, failed, course, at = [], [], Session._record, {0}
        for limit in 1 << 30, 0:
            failed.clear()
            with self.subTest(limit=limit), mock.patch.object(Session, "_record", run):
                want = execute(deep, iterations=2)
                with self.within(limit) as p, contextlib.nullcontext() if limit else self.assertRaises(torch.OutOfMemoryError):
                    self.assertEqual(differs(want, execute(deep, p, forward=forward, iterations=2)), "")
                self.assertEqual((len(failed), self.moved > 0), (1, bool(limit)))
                self.moved = 0


def wide(run, optimizer=lambda p: torch.optim.AdamW(p, foreach=True), iterations=3):
    """Most of its memory is what the optimizer keeps."""
    torch.manual_seed(0)
    model = Deep(12)
    o = optimizer(model.parameters())
    run.join(model, o)
    for _ in range(iterations):
        o.zero_grad(set_to_none=True)
        loss = model(torch.randn(16, 64)).pow(2).mean()
        loss.backward()
        o.step()
        yield loss.item()


class Steps(Within):
    """What a step uses goes to the host by least recent use."""

    @contextlib.contextmanager
    def watched(self):
        def counted(storage):
            self.moved += 1
            return emptied(storage)
        emptied = used.emptied
        with mock.patch.object(used, "emptied", counted), super().watched():
            yield

    def test_a_part(self):
        """The optimizer's first step makes what it keeps, and the next ones use it, in less than all that would take."""
        for way, part in ({"foreach": True}, 0.5), ({"fused": True}, 0.62):
            def optimizer(p, way=way):
                return torch.optim.AdamW(p, **way)
            with self.subTest(**way):
                alone, want = peaks(wide, optimizer=optimizer)
                limit = int(max(alone) * part)
                checksum(torch.zeros(8).untyped_storage())  # which keeps some memory from its first time on
                with self.within(limit) as p:
                    found, got = peaks(wide, p, optimizer=optimizer)
                self.assertEqual((differs(want, got), p.errors), ("", []))
                self.assertGreater(self.moved, 0)
                self.assertLessEqual(max(found), limit + (16 << 10), (alone, found))

    def test_optimizers(self):
        """Of all optimizers, with all options, the bits are those of the script alone."""
        every = list(test_pieces.options())
        for name, options in every if LONG else random.Random(1).sample(every, 3):
            with self.subTest(optimizer=name, options=options), test_pieces.small(), test_pieces.capturable(), \
                    mock.patch.dict(used.LEAST_MOVED, cpu=1):
                try:
                    want = execute(test_pieces.trains, name=name, options=options, iterations=4)
                except (AssertionError, RuntimeError, ValueError, TypeError):
                    continue  # torch does not take these together
                with self.within(1) as p:
                    got = execute(test_pieces.trains, p, name=name, options=options, iterations=4)
                self.assertEqual((differs(want, got), p.errors, p.lines, self.said), ("", [], [], []))
                self.assertGreater(self.moved, 0)

    def test_before_plans(self):
        """What is away when a plan with a limit begins comes back, and from then on the plan alone moves what it knows."""
        def still(it):
            return {"entry": [n for n, t in enumerate(it.planned()) if t.persistent], "boundaries": []}
        want = execute(wide, iterations=8)
        for seed, plan in enumerate((still, shelved, *[random_plan] * (8 if LONG else 2))):
            def make(number, it):
                at.append(self.moved)
                return dict(plan(it, random.Random(seed))[0] if plan is random_plan else plan(it), limit_bytes=1)
            with self.subTest(seed=seed), self.watched():
                at = []
                p = Limited(1, make=make)
                self.assertEqual(differs(want, execute(wide, p, iterations=8)), "")
                self.assertEqual((p.errors, [bool(plan) for _, plan, _ in p.iterations[-3:]]), ([], [True] * 3))
                self.assertGreater(at[0], 0)

    def test_read(self):
        """What is away is there for whatever reads it: ops, torch.save, numpy, print, an address; and for a plan of any way."""
        def script(run):
            for i, loss in enumerate(wide(run)):
                yield loss
                p = next(run.model.parameters())
                state = run.optimizer.state[p]["exp_avg"]
                yield (str(state), state.numpy().sum().item(), state.tolist(), p.data_ptr() != 0,
                       torch.load(io.BytesIO(saving(run.optimizer)))["state"][3]["exp_avg_sq"].sum().item())
        want = execute(script)
        with self.within(1) as p:
            self.assertEqual(differs(want, execute(script, p)), "")
        self.assertEqual(p.errors, [])
        self.assertGreater(self.moved, 0)
        want = execute(wide, iterations=7)
        for make in (lambda number, it: shelved(it)), test_saved.within(0):
            with self.watched():
                p = Limited(1, make=make)
                self.assertEqual(differs(want, execute(wide, p, iterations=7)), "")
            self.assertEqual((p.errors, [bool(plan) for _, plan, _ in p.iterations[-2:]]), ([], [True] * 2))


def saving(optimizer):
    with io.BytesIO() as f:
        torch.save(optimizer.state_dict(), f)
        return f.getvalue()


class Unplanned(test_saved.Traps):
    """What plans of saved tensors must not fall into, where there is a limit that nothing can keep, and no plan."""

    def run_both(self, script, make=None, want=None, **options):
        want = want or execute(script, **options)
        p = Limited(1)
        with self.watched():
            self.assertEqual(differs(want, execute(script, p, **options)), "", p.lines)
        self.assertEqual(p.errors, [])
        self.assertEqual(modes._len_torch_dispatch_stack(), 0)
        self.assertIsNone(torch._C._autograd._top_saved_tensors_default_hooks(True))
        return p

    def trains(self, script, planned=None, lines=0, seeds=0, **options):
        p = self.run_both(script, **options)
        self.assertGreater(self.moved, 0)
        return p

    test_another_way = test_late = test_resized = test_shapes = test_versions_of_their_own = None

    def test_step_in_backward(self):
        """Hooks cannot be changed there."""
        with contextlib.suppress(AssertionError):
            super().test_step_in_backward()

    def test_scripts(self):
        cases = (("cnn", scripts.plain, {}), ("encoder", scripts.plain, {"network": "encoder"}),
                 ("lstm", scripts.plain, {"network": "lstm"}), ("fused", scripts.plain, {"optimizer": "foreach"}),
                 ("accumulation", scripts.accumulation, {}), ("custom", scripts.custom, {}),
                 ("checkpoint", scripts.checkpointed, {}), ("bfloat16", scripts.autocast, {}),
                 ("epochs", scripts.epochs, {}), ("saving", scripts.saving, {"into": []}),
                 ("compiled as a whole", test_saved.compiled, {"how": "model"}), ("compiled", test_saved.compiled, {}))
        for name, script, options in cases if LONG else cases[2::3]:
            with self.subTest(script=name):
                self.moved = 0
                self.trains(script, **options)

    def test_programs(self):
        """At random, with a plan that comes or none."""
        for seed in range(40 if LONG else 4):
            with self.subTest(seed=seed):
                want, draw = execute(program, seed=seed), random.Random(seed)
                p = Limited(draw.choice((1, 8000, 16000)), make=draw.choice((
                    None, lambda number, iteration, draw=draw: random_plan(iteration, draw, 0.5)[0])))
                with self.watched(), mock.patch.dict(saved.LEAST_MOVED, cpu=1):
                    self.assertEqual(differs(want, execute(program, p, seed=seed)), "")
                self.assertEqual(p.errors, [])

    def test_exception(self):
        """In the forward pass and in the backward pass, with something away."""
        def forward(i, model, x):
            if i % 3 == 1:
                with contextlib.suppress(ValueError):
                    y = model(x)
                    raise ValueError
                del y
            if i % 3 == 2:
                y = model(x)
                y.register_hook(self.fails)
                with contextlib.suppress(ValueError):
                    y.sum().backward()
                model.zero_grad(set_to_none=True)
                del y
            return model(x)
        self.trains(test_saved.script, forward=forward)

    def fails(self, grad):
        raise ValueError

    def test_counts(self):
        """What lives and what is away adds up, at the end of each iteration, whether it was recorded or not."""
        def after(i, model):
            room = sessions[0].room
            gc.collect()
            self.assertEqual(room.away, sum(k.size for k in room.gone))
            self.assertEqual(room.saved, sum(k.size for k in room.here.values()))
            if sessions[0].course == sessions[0]._record:
                recorder = sessions[0].recorder
                self.assertEqual(recorder.bytes, sum(s.bytes for s in recorder.known.values() if not s.elsewhere))
        scripts.settle()
        sessions, enter = [], Session.enter

        def entered(session, hooks):
            sessions[:] = [session]
            enter(session, hooks)

        def backward(i, loss):
            if i % 4 != 3:  # else the graph is let go while something of it is away
                loss.backward()
        with mock.patch.object(Session, "enter", entered):
            p = Limited(1)
            with self.watched():
                execute(test_saved.script, p, backward=backward, after=after)
        self.assertGreater(self.moved, 0)
        self.assertGreater(sessions[0].room.lost, 0)


if __name__ == "__main__":
    unittest.main()
