"""What torch 2 has beside ops: a script that uses it trains to its own bits."""

import contextlib
import io
import unittest
from unittest import mock

import torch
from scripts import LONG, Planner, differs, execute
from test_bits import at_random
from test_link import SCRIPT, Sidecar, greeting

from tensile import saved


def script(run, each=lambda i, loss: loss, scaler=None, rate=0.05, iterations=14):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    run.join(model, optimizer)
    scaler = scaler and scaler()
    for i in range(iterations):
        optimizer.zero_grad(set_to_none=True)
        loss = each(i, model(torch.randn(16, 24)).pow(2).mean())
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        yield loss.item()


class Torch2(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def trains(self, **options):
        want, p, said = execute(script, **options), Planner(at_random(2, 0.6)), io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(differs(want, execute(script, p, **options)), "")
        return p, said.getvalue().splitlines()

    def test_operators_of_ops(self):
        """torch.cond, in the recording or while a plan is followed: it compiles itself, and no op is looked at from then on."""
        for at in (1, 8) if LONG else (8,):
            with self.subTest(at=at):
                p, said = self.trains(each=lambda i, loss, at=at: loss if i != at else loss + torch.cond(
                    torch.tensor(True), lambda x: x * 2, lambda x: x * 3, (loss.detach(),)))
                self.assertEqual(len(said), 0 if saved.AVAILABLE else 1, said)
                self.assertEqual([bool(plan) for _, plan, _ in p.iterations], [3 <= i < at for i in range(14)])

    def test_scaler(self):
        """A step that is left out ends an iteration, too: those after it are recorded and planned as any."""
        for begins, ends in (2.0 ** 10, 2.0 ** 10), (2.0 ** 127, 2.0 ** 107):
            with self.subTest(begins=begins):
                scalers = []

                def scaler(begins=begins, scalers=scalers):
                    scalers.append(torch.amp.GradScaler("cpu", begins, backoff_factor=2.0 ** -10))
                    return scalers[-1]
                p, _ = self.trains(each=lambda i, loss: loss * 1e5, scaler=scaler, rate=1e-7, iterations=24)
                self.assertEqual([s.get_scale() for s in scalers], [ends] * 2)
                self.assertEqual(len(p.iterations), 24)
                self.assertEqual([bool(plan) for _, plan, _ in p.iterations[14:]], [True] * 10)

    def test_graph(self):
        """A graph of CUDA's, which is captured or replayed: passive."""
        for name in "capture_begin", "replay":
            with self.subTest(name=name), mock.patch.object(torch.cuda.CUDAGraph, name, lambda self: None, create=True):
                def each(i, loss, name=name):
                    if i >= 8:
                        getattr(torch.cuda.CUDAGraph, name)(None)
                    return loss
                p, said = self.trains(each=each)
                self.assertEqual(len(said), 1)
                self.assertRegex(said[0], "passive from now on: the script uses a CUDA graph")
                self.assertEqual([bool(plan) for _, plan, _ in p.iterations], [3 <= i < 8 for i in range(14)])


@unittest.skipUnless(saved.AVAILABLE, "needs a torch that says which hooks are there")
class Compiled(Sidecar):
    def test_compiled_in_place(self):
        """A module that compiles itself keeps its class. It is recorded by what it saves: of what lasts, nothing may move."""
        compiled = SCRIPT.replace("tensile.join", "model.compile(backend='eager')\ntensile.join")
        done, said = self.run_script(greeting(lambda kind, body: []), compiled)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("tensile: ", done.stderr)  # torch says what it thinks of a Python
        self.assertEqual([k for k, _ in said], ["hello", "applied", *["iteration"] * 4, "graph", *["iteration"] * 4, "end"])
        graph = said[6][1]["graph"]
        self.assertTrue(graph["storages"] and all(s["role"] not in ("parameter", "state") for s in graph["storages"]))


if __name__ == "__main__":
    unittest.main()
