"""Modes, compilers and threads of the script's own, and faults of ours: none changes what a script trains to."""

import contextlib
import io
import threading
import unittest
from unittest import mock

import torch
from scripts import LONG, Planner, Run, differs, execute
from test_bits import at_random
from torch.utils._python_dispatch import TorchDispatchMode

from tensile import capture, modes, player, saved, session


class Through(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def ops_within(around):
    """Returns the names of the ops of a layer, as a mode sees them within which there is another."""
    names = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    with Names(), around():
        torch.nn.Linear(2, 2)(torch.ones(2, 2)).tanh().sum().backward()
    return names


def script(run, forward=lambda i, model, x: model(x), backward=lambda i, loss: loss.backward(), around=None, after=None,
           iterations=14):
    """around() is a context of join and the first six iterations."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    with contextlib.ExitStack() as stack:
        if around:
            stack.enter_context(around())
        run.join(model, optimizer)
        for i in range(iterations):
            if i == 6:
                stack.close()
            optimizer.zero_grad(set_to_none=True)
            loss = forward(i, model, torch.randn(16, 24)).pow(2).mean()
            backward(i, loss)
            optimizer.step()
            yield loss.item()
            if after:
                yield after(i, model)


def in_thread(run):
    out = []
    thread = threading.Thread(target=lambda: out.append(run()))
    thread.start()
    thread.join()
    return out[0]


class Modes(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def trains(self, line=None, **options):
        """Trains it alone, and with plans: to the same bits; returns which iterations had a plan. It has one line, or none."""
        want, said = execute(script, **options), io.StringIO()
        p = Planner(at_random(2, 0.6))
        with contextlib.redirect_stderr(said):
            self.assertEqual(differs(want, execute(script, p, **options)), "")
        said = said.getvalue().splitlines()
        self.assertEqual(len(said), 0 if line is None else 1, said)
        if line is not None:
            self.assertRegex(said[0], line)
        self.assertEqual(modes._len_torch_dispatch_stack(), 0)
        return [bool(plan) for _, plan, _ in p.iterations]

    @unittest.skipUnless(ops_within(Through) == ops_within(contextlib.nullcontext),
                         "in this PyTorch, as in 2.6, a mode within another changes which ops that sees")
    def test_join_within_a_mode(self):
        """When that mode ends it takes itself off the stack."""
        self.assertEqual(self.trains(around=Through), [i >= 3 for i in range(14)])

    def test_taken_off(self):
        """Something takes all modes off, before there is a plan."""
        def after(i, model):
            if i == 1 and modes._len_torch_dispatch_stack():
                modes._pop_mode()
        self.assertEqual(self.trains("off torch's stack", after=after), [False] * 14)

    def test_numbers_while_tensors_are_fake(self):
        """What is away is brought home outside of the script's modes."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        def after(i, model):
            values = {name: p.detach() for name, p in model.named_parameters()}
            with FakeTensorMode(allow_non_fake_inputs=True):
                model.state_dict()
            return {name: v.tolist() for name, v in values.items()}
        self.assertEqual(self.trains(after=after), [i >= 3 for i in range(14)])

    def test_compiled(self):
        """A function that is compiled after join, before or while there is a plan, is compiled as alone. No op of it can be
        looked at from then on."""
        for at in 1, 8:
            with self.subTest(at=at):
                frames = []

                def forward(i, model, x, at=at, frames=frames):
                    if i < at:
                        return model(x)
                    if i == at:
                        torch._dynamo.reset()
                        self.compiled = torch.compile(
                            model, backend=lambda graph, _: frames.append(1) or graph.forward, fullgraph=True)
                    return self.compiled(x)
                line = None if saved.AVAILABLE else "passive from now on: what torch compiles"
                planned = self.trains(line, forward=forward)
                self.assertEqual(planned, [3 <= i < at for i in range(14)])
                self.assertEqual(len(frames), 2)

    def test_passive(self):
        """From the next step on torch is as without us, but for what tells of steps."""
        before = torch.Tensor.numpy, torch.autograd.backward, threading.Thread._bootstrap_inner

        def after(i, model):
            if i == 8 and run.session is not None:
                run.session.stop("the test says so")
            if i == 9:
                self.assertEqual(modes._len_torch_dispatch_stack(), 0)
                self.assertEqual((torch.Tensor.numpy, torch.autograd.backward, threading.Thread._bootstrap_inner), before)

        p = Planner(at_random(2, 0.6))
        run = Run(p)
        with contextlib.redirect_stderr(io.StringIO()):
            list(script(run, after=after))
        self.assertEqual(len(p.iterations), 14)
        run.leave()

    def test_threads(self):
        """A thread finds at home what it reads; one that writes what is known ends planning before that op has run."""
        other = r"an iteration was another than those that were recorded"
        for name, line, want, options in (
                ("forward", other, None, {"forward": lambda i, model, x: in_thread(lambda: model(x)) if i >= 8 else model(x)}),
                ("backward", other, None, {"backward": lambda i, loss: in_thread(loss.backward) if i >= 8 else loss.backward()}),
                ("between", None, [i >= 3 for i in range(14)],
                 {"after": lambda i, model: in_thread(lambda: model[0].weight.sum().item()) if i >= 7 else None}),
                ("write", "passive from now on: the thread Thread-", [3 <= i < 8 for i in range(14)],
                 {"after": lambda i, model: in_thread(lambda: model[0].weight.data.mul_(0.5).sum().item()) if i >= 7 else None}),
                ("nothing that is known", None, [i >= 3 for i in range(14)],
                 {"after": lambda i, model: in_thread(lambda: torch.ones(3).sum().item())})):
            with self.subTest(name=name):
                planned = self.trains(line, **options)
                self.assertEqual(planned[:8], [3 <= i < 8 for i in range(8)])
                self.assertEqual(planned, want or planned)

    def test_beside_a_thread(self):
        """A thread reads all that is trained, over and over, while plans move it."""
        def around():
            stop, seen = threading.Event(), []

            def reads(found):
                while not stop.is_set():
                    for model in found:
                        seen.append(sum(p.detach().isfinite().all().item() for p in model.parameters()))

            found = []
            thread = threading.Thread(target=reads, args=(found,))

            def after(i, model):
                if i == 2:
                    found.append(model)
                    thread.start()
                if i == 13:
                    stop.set()
                    thread.join()
                    self.assertEqual(set(seen), {len(list(model.parameters()))})
            return after

        for _ in range(5 if LONG else 1):
            want, p = execute(script, after=around()), Planner(at_random(2, 0.6))
            self.assertEqual(differs(want, execute(script, p, after=around())), "")
            self.assertEqual([i > 2 for i in range(14)], [bool(plan) for _, plan, _ in p.iterations], p.lines)

    def test_steps_elsewhere(self):
        """Steps in another thread end all, those within a backward pass do not. Neither leaves a profiler of torch on, which
        belongs to where it began."""
        def trains(run, last, hook=False, iterations=9):
            model = torch.nn.Linear(24, 16)
            o = torch.optim.SGD(model.parameters(), lr=0.1)
            run.join(model, o)
            for i in range(iterations):
                o.zero_grad()
                loss = model(torch.randn(8, 24)).pow(2).mean()
                if hook and 5 <= i <= last:
                    h = model.bias.register_post_accumulate_grad_hook(lambda p: o.step())
                    loss.backward()
                    h.remove()
                elif 5 <= i <= last:
                    loss.backward()
                    in_thread(o.step)
                else:
                    loss.backward()
                    o.step()
                yield loss.item()

        for last, hook in (5, False), (8, False), (8, True):
            p = Planner(at_random(2, 0.6))
            self.assertEqual(differs(execute(trains, last=last, hook=hook), execute(trains, p, last=last, hook=hook)), "")
            self.assertEqual([3 <= i < 5 for i in range(6)], [bool(plan) for _, plan, _ in p.iterations[:6]], p.lines)
            self.assertFalse(torch._C._autograd._profiler_enabled())

    def test_faults_of_ours(self):
        """A fault while recording, after an op in it, at a step, while playing and after an op there."""
        def fails(*args, **kwargs):
            raise ValueError("a fault")

        for owner, name, at in ((capture.Recorder, "see", 0), (capture.Recorder, "twice", 0), (session, "digest", 0),
                                (player.Player, "_moves", 3), (player.Player, "_adopt", 3), (player.Player, "begin", 3)):
            with self.subTest(name=name), mock.patch.object(owner, name, fails):
                planned = self.trains(r"passive from now on: ValueError in its own work.*test_modes.py.*a fault")
                self.assertFalse(any(planned[at + 1:]))


if __name__ == "__main__":
    unittest.main()
