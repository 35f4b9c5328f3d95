"""Plans that are played by what autograd saves: the bits of the script alone, and no more bytes than were foreseen."""

import contextlib
import ctypes
import gc
import io
import os
import random
import sys
import threading
import unittest
import warnings
from unittest import mock

import scripts
import torch
from plans import shelved
from scripts import LONG, Planner, differs, execute
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tensile import away, modes, saved
from tensile.copies import Direct, on_host
from tensile.session import Session


def lowest(iteration):
    """Returns what an iteration has at most as it is, and at least by its saved tensors."""
    slots = away.slots_of(iteration)
    least = most = away.bytes_at(iteration, slots)
    least = list(least)
    for c in away.candidates(iteration, "cpu", slots):
        for p in range(c.begin, c.end):
            least[p] -= c.slot.bytes
    return max(most), max(least)


def within(part):
    """Plans within a part of the way from the least that saved tensors can reach to what there is."""
    def make(number, iteration):
        most, least = lowest(iteration)
        return {**shelved(iteration), "plan_bytes": int(least + (most - least) * part)}
    return make


def at_random(seed):
    """Has any of what may go to the host go there."""
    draw = random.Random(seed)

    def choose(iteration, kind, slots, most):
        return [c for c in away.candidates(iteration, kind, slots) if draw.random() < 0.7]
    return mock.patch.object(away, "choose", choose)


@unittest.skipUnless(saved.AVAILABLE, "needs a torch that says which hooks are there")
class Base(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.moved = 0

    @contextlib.contextmanager
    def watched(self):
        """Counts what goes to the host."""
        emptied = saved.emptied

        def counted(storage):
            self.moved += 1
            return emptied(storage)

        said = io.StringIO()
        with mock.patch.object(saved, "emptied", counted), contextlib.redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what torch thinks of the script, once in a process, is no line of ours
            yield
        self.said = said.getvalue().splitlines()

    def run_both(self, script, make=within(0), want=None, **options):
        """Runs it alone, unless what that gives is known as want, and with plans."""
        want = want or execute(script, **options)
        p = Planner(make)
        with self.watched():
            self.assertEqual(differs(want, execute(script, p, **options)), "", p.lines)
        self.assertEqual(p.errors, [])
        self.assertEqual(modes._len_torch_dispatch_stack(), 0)
        self.assertIsNone(torch._C._autograd._top_saved_tensors_default_hooks(True))
        return p

    def trains(self, script, planned=None, lines=0, seeds=4, **options):
        """Trains it alone, at the least, and by random moves: to the same bits, and something moves; planned is which of the
        last iterations had a plan. Returns the planner that had the least."""
        want, planners = execute(script, **options), []
        for seed in range(seeds * 5 if LONG else min(seeds, 2)):
            with self.subTest(seed=seed), at_random(seed) if seed else contextlib.nullcontext():
                p = self.run_both(script, want=want, **options)
                planners.append(p)
                if planned is not None:
                    self.assertEqual([bool(plan) for _, plan, _ in p.iterations[-len(planned):]], planned, p.lines)
                self.assertEqual(len(self.said), lines, self.said)
        self.assertGreater(self.moved, 0)
        return planners[0]


class Saved(Base):
    def test_scripts(self):
        """The allocator has at most what was foreseen, to the byte."""
        for i, (name, script, options) in enumerate((
                ("cnn", scripts.plain, {}), ("encoder", scripts.plain, {"network": "encoder"}),
                ("lstm", scripts.plain, {"network": "lstm"}), ("accumulation", scripts.accumulation, {}),
                ("custom", scripts.custom, {}), ("fused", scripts.plain, {"network": "encoder", "optimizer": "foreach"}))):
            want = execute(script, **options)
            for part in (0, 0.3, 0.6) if LONG else (0.5 * (i % 2),):
                with self.subTest(script=name, part=part), mock.patch.object(Session, "measures", 1 << 30):
                    p = self.run_both(script, within(part), want, **options)
                    self.assertEqual([bool(plan) for _, plan, _ in p.iterations[6:]], [True] * (len(p.iterations) - 6))
                    foreseen, least = p.plans[0]["plan_bytes"], lowest(p.graphs[0])[1]
                    for _, plan, touched in p.iterations[7:]:
                        self.assertLessEqual(touched, foreseen)
                        self.assertGreaterEqual(touched, least * 0.95)

    def test_lower(self):
        """An iteration never has more where the limit is lower, and no limit but what is there has nothing go."""
        def make(number, iteration):
            slots, (most, least) = away.slots_of(iteration), lowest(iteration)
            before = None
            for bytes_ in range(most, least - 1, -max(1, (most - least) // 50)):
                live = away.bytes_at(iteration, slots)
                chosen = away.choose(iteration, "cpu", slots, bytes_)
                for c in chosen:
                    for p in range(c.begin, c.end):
                        live[p] -= c.slot.bytes
                self.assertEqual(bool(chosen), bytes_ < most)
                self.assertLessEqual(max(live), bytes_ if before is None else min(bytes_, before))
                before = max(live)
            self.assertIsNone(away.choose(iteration, "cpu", slots, least - 1))
            looked.append(number)
            return within(0)(number, iteration)
        looked = []
        for network in "cnn", "encoder", "lstm":
            self.run_both(scripts.plain, make, network=network)
        self.assertEqual(looked, [1, 1, 1])

    def test_others(self):
        for name, script, options in (
                ("checkpoint", scripts.checkpointed, {}), ("bfloat16", scripts.autocast, {}),
                ("epochs", scripts.epochs, {}), ("saving", scripts.saving, {"into": []})):
            with self.subTest(script=name):
                self.trains(script, **options)

    def test_ahead(self):
        """A copy that begins some unpacks before it is needed: at the unpack that was named, or later where there is no room."""
        def bring(saver, kept, tensor):
            if "_start" in sys._getframe(1).f_code.co_name:
                if fails:
                    raise torch.OutOfMemoryError("no room")
                ahead.append(saver.u)
            else:
                late.append(saver.u)
            return bring_back(saver, kept, tensor)
        bring_back, foreseen = saved.Saver._bring, []
        for fails in False, True:
            ahead, late = [], []
            with mock.patch.dict(away.AHEAD, cpu=2), mock.patch.object(saved.Saver, "_bring", bring):
                p = self.run_both(scripts.plain, network="encoder")
                moves = away.moves(p.graphs[0], torch.device("cpu"), p.plans[0]["plan_bytes"])
                foreseen = sorted(u for u, slots in moves.starts.items() for _ in slots)
            if fails:
                self.assertGreater(len(late), 0)
            else:
                self.assertEqual((sorted(set(ahead)), late), (sorted(set(foreseen)), []))

    def test_unpacked(self):
        """What a node has unpacked does not go while the node has it: one that is differentiated packs others before it reads
        that."""
        def unpacked(saver, p):
            t = unpack(saver, p)
            if type(p.kept) is saved.Kept:
                alone.append(p.kept.storage() is not None)
            return t
        unpack, alone = saved.Saver.unpack, []
        with mock.patch.object(saved.Saver, "unpack", unpacked):
            self.run_both(script, iterations=8)
        self.assertEqual(set(alone), {False})

    def test_ops_are_not_looked_at(self):
        """The mode is off torch's stack in iterations that are played so, and takes the place of hooks where these cannot keep
        the plan's bytes."""
        for part, at in (0, 0), (-2, 1):
            stacks = []
            with self.subTest(part=part):
                self.run_both(scripts.plain, within(part), between=lambda run, i, stacks=stacks: stacks.append(
                    modes._len_torch_dispatch_stack()))
                self.assertEqual(stacks, [0] * 10 + [1] * 2 + [at] * 8)  # alone, then joined


def layers(width=48):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width),
                         nn.Tanh(), nn.Linear(width, 10))


def script(run, forward=lambda i, model, x: model(x), backward=lambda i, loss: loss.backward(), after=None, batch=lambda i: 128,
           iterations=16, optimizer=lambda p: torch.optim.SGD(p, 0.05, momentum=0.9)):
    model = layers()
    o = optimizer(model.parameters())
    run.join(model, o)
    for i in range(iterations):
        o.zero_grad(set_to_none=True)
        loss = forward(i, model, torch.randn(batch(i), 32)).pow(2).mean()
        backward(i, loss)
        o.step()
        yield loss.item()
        if after:
            yield after(i, model)


class Traps(Base):
    def test_versions(self):
        """What was written in place since it was saved is an error, as without hooks; the script trains on after it."""
        def forward(i, model, x):
            y = model[1](model[0](x))
            if i in (2, 9, 12):
                z = y.exp()
                w = z * z
                z.add_(1)
                try:
                    w.sum().backward()
                except RuntimeError as e:
                    errors.append(str(e)[:100])
                else:
                    errors.append("none")
                model.zero_grad(set_to_none=True)
                y = model[1](model[0](x))
            return model[2:](y)

        errors = []
        self.trains(script, forward=forward, lines=1, seeds=2)
        self.assertEqual(len(set(errors)), 1, set(errors))
        self.assertIn("modified by an inplace operation", errors[0])

    def test_written_through_data(self):
        """What is written while packs are not alone, of which no version tells, is what the backward pass reads; also where
        the recorded iterations had no such write."""
        for begins in 0, 9:
            def forward(i, model, x, begins=begins):
                y = model[:4](x)
                if i >= begins:
                    y.data.mul_(0.5)
                z = model[4:6](y)
                if i >= begins:
                    z.data.mul_(1.5)
                    y.data.add_(0.25)
                del y
                return model[6](z)
            with self.subTest(begins=begins):
                self.trains(script, forward=forward, planned=[True] * 6)

    def test_held_by_others(self):
        """What a script holds in any way while it was alone in the recording: an array, a storage, a view, a list."""
        for name, hold in (("array", lambda t: t.detach().numpy()), ("storage", lambda t: t.untyped_storage()),
                           ("view", lambda t: t.detach()[1:]), ("tensor", lambda t: t)):
            def forward(i, model, x, hold=hold):
                if i == 0:
                    held.clear()
                y = model[:4](x)
                if i >= 9:
                    held[:] = [hold(y)]
                return model[4:](y)

            def backward(i, loss):
                if held and name == "storage":
                    read.append((held[0][0], held[0][len(held[0]) - 1]))
                elif held:
                    read.append(torch.as_tensor(held[0]).sum().item())
                loss.backward()

            def after(i, model):
                return read.pop() if read else None
            held, read = [], []
            with self.subTest(name=name):
                self.trains(script, forward=forward, backward=backward, after=after)

    def test_used_again(self):
        """Storages that die between two packs, whose addresses others get."""
        def forward(i, model, x):
            y = model[:2](x)
            for _ in range(3):
                z = y.exp().log1p()
                (z * z).sum().item()
                del z
                y = y + torch.randn(128, 48) * y
            return model[2:](y)
        self.trains(script, forward=forward, planned=[True] * 8)

    def test_views(self):
        """A view is saved, and its base is not; two views of one base; a base that lives on."""
        bases = []

        def forward(i, model, x):
            if i == 0:
                bases.clear()
            y = model[:2](x)
            base = torch.cat([y, y * 2, y * 3])
            a, b = base[:128], base[128:256]
            if i % 2:
                bases[:] = [base]
            z = a * b.tanh() + base[256:].exp()
            del base, a, b
            return model[2:](z)
        self.trains(script, forward=forward, after=lambda i, model: bases[0].sum().item() if bases else 0)

    def test_inner_hooks(self):
        """Those of the script win: checkpoint of both kinds, save_on_cpu, and hooks around join and steps."""
        def reentrant(i, model, x):
            return model[4:](checkpoint(model[2:4], checkpoint(model[:2], x, use_reentrant=False), use_reentrant=True))

        def on_cpu(i, model, x):
            y = model[:2](x)
            with torch.autograd.graph.save_on_cpu():
                y = model[2:4](y)
            return model[4:](y)
        for name, forward in ("checkpoint", reentrant), ("save_on_cpu", on_cpu):
            with self.subTest(name=name):
                self.trains(script, forward=forward, planned=[True] * 8)

        def around(run):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 1, lambda t: t):
                yield from script(run, iterations=8)
        self.run_both(around)

    def test_graphs_that_live_on(self):
        """A graph whose backward pass comes in a later iteration, or never, or twice."""
        kept = []

        def later(i, loss):
            kept.append(loss)
            loss.backward(retain_graph=True)
            if i % 3 == 2:
                for one in kept[:-1]:
                    try:
                        one.backward()
                    except RuntimeError as e:
                        self.assertIn("modified by an inplace", str(e))
                kept.clear()

        def never(i, model, x):
            kept.append(model(x * 2).sum())
            del kept[:-2]
            return model(x)

        def twice(i, loss):
            loss.backward(retain_graph=True)
            loss.backward()

        def delayed(i, model, x):
            if i == 0:
                kept.clear()
            x.requires_grad_()
            kept.append((x, x.exp().tanh().exp().tanh().sum()))
            y = model(x.detach())
            if len(kept) > 1:
                x, total = kept.pop(0)
                y = y + torch.autograd.grad(total, x)[0].mean()
            return y
        for name, options in (("later", {"backward": later}), ("never", {"forward": never}), ("twice", {"backward": twice}),
                              ("delayed", {"forward": delayed})):
            kept.clear()
            with self.subTest(name=name):
                self.trains(script, **options)

    def test_second_derivatives(self):
        def forward(i, model, x):
            x.requires_grad_()
            y = model(x)
            g, = torch.autograd.grad(y.pow(2).sum(), x, create_graph=True)
            return y + g.pow(2).mean()
        self.trains(script, forward=forward, planned=[True] * 8)

    def test_functions(self):
        """torch.func allows no hooks while it works, and what a function of the script's own saves."""
        def forward(i, model, x):
            y = model[:2](x)
            g = torch.func.grad(lambda v: v.pow(3).sum())(y.detach())
            return model[2:](scripts.Square.apply(y) + g)
        self.trains(script, forward=forward, planned=[True] * 8)

    def test_what_is_on_tensors(self):
        """A function of the script's own gets its parameters themselves, and on other tensors what the script has put there."""
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w, none):
                ctx.save_for_backward(x, none, w)
                return x @ w.t()

            @staticmethod
            def backward(ctx, g):
                x, none, w = ctx.saved_tensors
                assert none is None and w is weight[0]
                w.seen = w.grad is not None
                return g @ w * x.scale, g.t() @ x * w.scale, None

        def forward(i, model, x):
            y = model[:2](x)
            weight[:] = [model[2].weight]
            y.scale, weight[0].scale = 3.0, 2.0
            return model[3:](Scaled.apply(y, weight[0], None))
        weight = []
        self.trains(script, forward=forward, planned=[True] * 8, after=lambda i, model: weight[0].seen, seeds=2)

    def test_hooks_of_one_tensor(self):
        """The script registers hooks for one saved tensor, once."""
        def forward(i, model, x):
            y = model[:2](x).exp()
            if i >= begins:
                one = y.grad_fn._raw_saved_result
                one.register_hooks(lambda t: (t * 1, i), lambda pair: pair[0] * 2)
                with self.assertRaisesRegex(RuntimeError, "hooks have already been set"):
                    one.register_hooks(lambda t: t, lambda t: t)
            return model[2:](y.log())
        for begins in 0, 9:
            self.trains(script, forward=forward, planned=[True] * 8, seeds=1)

    def test_another_parameter(self):
        """The backward pass reads what a parameter has then, as without hooks: the script may have given it other memory."""
        def forward(i, model, x):
            models[:] = [model]
            return model(x)

        def backward(i, loss):
            weight = models[0][2].weight
            if i % 3 == 2:
                weight.data = weight.data * 0.5
            loss.backward()
        models = []
        self.trains(script, forward=forward, backward=backward, seeds=2)

    def test_addresses(self):
        """What was given away by its address stays, in this iteration already."""
        def forward(i, model, x):
            y = model[:4](x)
            if i == 9:
                address.append(y.data_ptr())
            return model[4:](y)

        def backward(i, loss):
            if address:
                read.append(ctypes.c_float.from_address(address.pop()).value)
            loss.backward()
        address, read = [], []
        self.trains(script, forward=forward, backward=backward, after=lambda i, model: read.pop() if read else None,
                    lines=1, seeds=2)

    def test_resized(self):
        """A storage that the script has made larger since it was saved has no room on the host: it stays."""
        def forward(i, model, x):
            y = model[:4](x)
            z = model[4](y)
            if i == 9:
                y.untyped_storage().resize_(2 * y.untyped_storage().nbytes())
            del y
            return model[5:](z)

        def out(copies, n, storage):
            self.assertLessEqual(storage.nbytes(), copies.slots[n].bytes)
            copy(copies, n, storage)
        copy = Direct.out
        with mock.patch.object(Direct, "out", out):
            self.trains(script, forward=forward, planned=[True] * 8, seeds=1)

    def test_late(self):
        """What a script holds for some packs more than when it was recorded goes once it is let go."""
        def moves(begins):
            def forward(i, model, x):
                y = model[:2](x)
                z = model[2](y)
                held = y if i >= begins else None
                del y
                z = model[4](model[3](z))
                del held
                return model[6](model[5](z))
            self.moved = 0
            self.run_both(script, forward=forward)
            return self.moved
        self.assertEqual(moves(9), moves(16))

    def test_forked(self):
        """A process that was forked in the middle of an iteration shares no copies, and moves nothing."""
        def forward(i, model, x):
            if i == 9:
                begin, child = os.pipe(), os.fork()
                if not child:
                    try:
                        os.read(begin[0], 1)
                        y = model(torch.full((128, 32), 100.0)).sum().item()
                    finally:
                        os._exit(y is None)
                forked.append((child, begin))
            return model(x)

        def backward(i, loss):
            if forked:
                child, begin = forked.pop()
                os.write(begin[1], b"x")
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                os.close(begin[0])
                os.close(begin[1])
            loss.backward()
        forked = []
        self.trains(script, forward=forward, backward=backward, seeds=1)
        mapped = on_host(8)
        child = os.fork()
        if not child:
            mapped.fill_(1)
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(mapped.tolist(), [0] * 8)

    def test_shapes(self):
        """Smaller and larger batches: one plan for all, as large as the largest."""
        for name, batch, planned in (("smaller", lambda i: 128 - i * 5 % 9, [True] * 6),
                                     ("larger", lambda i: 128 if i < 9 else 140, [True] * 4)):
            with self.subTest(name=name):
                p = self.trains(script, batch=batch, planned=planned)
                self.assertGreater(len(p.graphs), 1)  # it was planned for again, as large as it is

    def test_evaluation(self):
        """With gradients, every third time; and another network's in turn, as of a GAN."""
        critic = layers()

        def evaluated(i, model, x):
            if i % 3 == 2:
                model(x * 0.5).sum().item()
            return model(x)

        def gan(i, model, x):
            real = critic(torch.randn(128, 32)) - critic(model[:6](x).detach()[:, :32])
            torch.autograd.grad(real.mean(), list(critic.parameters()))
            return model(x)
        for name, forward in ("evaluation", evaluated), ("gan", gan):
            with self.subTest(name=name):
                self.trains(script, forward=forward, iterations=30, planned=[True] * 6, lines=int(name == "evaluation"))

    def test_another_way(self):
        """An iteration that saves something else, more or less of it: to the same bits, and one line."""
        for name, forward in (
                ("other", lambda i, model, x: model(x).double() if i == 9 else model(x)),
                ("more", lambda i, model, x: model(x).exp() if i == 9 else model(x)),
                ("less", lambda i, model, x: model[:2](x) if i == 9 else model(x)),
                ("shape", lambda i, model, x: model(x[None])[0] if i == 9 else model(x))):
            with self.subTest(name=name):
                p = self.trains(script, forward=forward, lines=1)
                self.assertEqual([bool(plan) for _, plan, _ in p.iterations[6:]], [i != 9 for i in range(6, 16)])

    def test_subclasses(self):
        class Named(torch.Tensor):
            pass

        def forward(i, model, x):
            return model[2:](model[:2](x.as_subclass(Named))).as_subclass(torch.Tensor)
        self.trains(script, forward=forward, planned=[True] * 8)

    def test_versions_of_their_own(self):
        """What counts no versions of the tensor that is saved is not compared, and no error of ours ends the script."""
        written = torch.zeros(3).add_(1)
        self.assertEqual(saved.version_of(written, written.detach()), written._version)
        self.assertIsNone(saved.version_of(written, torch.zeros(3)))
        p = saved.Pack(written)
        p.version = None
        p.unpacked()
        p.version = written._version - 1
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            p.unpacked()

    def test_threads(self):
        def in_thread(run):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        self.trains(script, backward=lambda i, loss: in_thread(loss.backward) if i >= 8 else loss.backward())

    def test_ends(self):
        """An exception in the middle, leave and stop with something away."""
        def raising(i, model, x):
            y = model(x)
            if i == 9:
                try:
                    raise ValueError
                except ValueError:
                    y = model(x)
            return y
        self.trains(script, forward=raising, lines=1)

        for what in "leave", "stop":
            def ending(run, what=what):
                def forward(i, model, x):
                    y = model(x)
                    if i == 9 and run.session is not None:
                        if what == "leave":
                            run.leave()
                        else:
                            run.session.stop("the test says so")
                    return y
                yield from script(run, forward=forward)
            with self.subTest(what=what):
                self.trains(ending, lines=int(what == "stop"))

    def test_nothing_stays(self):
        """What packs held is gone with its graph: no circle holds it until a collection."""
        def count():
            return sum(type(o) in (saved.Pack, saved.Kept) for o in gc.get_objects())
        scripts.settle()
        gc.disable()
        self.addCleanup(gc.enable)
        alive = [count()]  # of other tests
        self.trains(script, after=lambda i, model: alive.append(count()) if i in (8, 14) else None, seeds=1)
        self.assertEqual(len(set(alive)), 1, alive)

    def test_step_in_backward(self):
        """An optimizer makes its step in the middle of a backward pass, where hooks cannot be changed: ops are looked at."""
        def stepping(run):
            model = layers()
            o = torch.optim.SGD(model.parameters(), 0.05)
            run.join(model, o)

            def step(p):
                o.step()
                o.zero_grad()
            model[0].weight.register_post_accumulate_grad_hook(step)
            for _ in range(16):
                loss = model(torch.randn(128, 32)).pow(2).mean()
                loss.backward()
                yield loss.item()
        p = self.run_both(stepping)
        self.assertEqual([bool(plan) for _, plan, _ in p.iterations[8:]], [True] * 8)
        self.assertEqual((self.said, self.moved), ([], 0))


def compiled(run, backend="aot_eager", how="blocks", **options):
    """Its ops cannot be seen. What a function that is compiled saves comes at its end, so that blocks of their own save
    more than the whole."""
    torch._dynamo.reset()
    join = run.join

    def joined(model, optimizer):
        if how == "model":
            model.compile(backend=backend)
        join(model, optimizer)
        if how == "blocks":
            blocks[:] = [torch.compile(model[k:k + 2], backend=backend) for k in range(0, 7, 2)]

    def forward(i, model, x):
        if how == "model":
            return model(x)
        for block in blocks:
            x = block(x)
        return x
    blocks, run.join = [], joined
    yield from script(run, forward=forward, **options)


class Compiled(Base):
    def test_blocks(self):
        """Planned for by what they save, to the bits of the compiled script, within what was foreseen."""
        for backend in ("aot_eager", "inductor") if LONG else ("aot_eager",):
            with self.subTest(backend=backend), mock.patch.object(Session, "measures", 1 << 30):
                p = self.trains(compiled, backend=backend, planned=[True] * 8)
                most, least = lowest(p.graphs[0])
                self.assertLess(least, most)
                for _, plan, touched in p.iterations[9:]:
                    self.assertLessEqual(touched, p.plans[0]["plan_bytes"])
                    self.assertGreater(touched, least * 0.5)  # what else lives in this process counts as needed

    @scripts.long
    def test_model(self):
        """A model that is compiled as a whole saves all at once: there is little to gain, and nothing to lose."""
        p = self.trains(compiled, how="model", seeds=2)
        self.assertEqual([bool(graph) for graph, _, _ in p.iterations[-8:]], [True] * 8)


if __name__ == "__main__":
    unittest.main()
