"""A script and its sidecar."""

import json
import os
import socket
import subprocess
import tempfile
import unittest

from fresh import Script
from scripts import long

SCRIPT = """
import torch
import tensile
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters())
tensile.join(model, optimizer)
for i in range(8):
    optimizer.zero_grad(set_to_none=True)
    loss = model(torch.randn(16, 64)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def shelved(g):
    """Returns a plan for a graph, without a number, that has the largest parameter on the host between iterations."""
    weights = [s["id"] for s in g["storages"] if s["role"] == "parameter"]
    swapped = max(weights, key=lambda s: g["storages"][s]["bytes"])
    reads = [i for i, op in enumerate(g["ops"])
             if any(g["tensors"][t]["storage"] == swapped for t in op["inputs"] + op["outputs"])]
    others = [s["id"] for s in g["storages"] if s["role"] in ("parameter", "state") and s["id"] != swapped]
    return {"graph": 1, "limit_bytes": 1 << 30, "plan_bytes": 0, "entry": others, "boundaries": [
        {"before": reads[0], "do": [{"do": "in", "storage": swapped}]},
        {"before": reads[-1] + 1, "do": [{"do": "out", "storage": swapped}, {"do": "drop", "storage": swapped}]}]}


WAIT = """
    session = tensile._session
    while session and session.number and session.planner.newest["number"] < 2:
        session.planner._read(None)  # for the first plan of the graph
"""


def waiting(script, *until):
    """Returns a script that reads what its sidecar says after iterations, until of each what is told of its planner is
    true. So it does not end before the sidecar has answered."""
    for i, true in until:
        script = script.replace("    print", f"    planner = tensile._session.planner\n    while i == {i} and planner.sock and "
                                f"not {true}:\n        planner._read(None)\n    print", 1)
    return script


def greeting(answer):
    """Returns a function that answers hello as well, for which a script waits."""
    def run(kind, body):
        if kind == "hello":
            yield "plan", {"number": 1, "graph": 0, "limit_bytes": 0}
        yield from answer(kind, body)
    return run


class Sidecar(unittest.TestCase):
    def run_script(self, answer=None, script=SCRIPT):
        """Runs a script with a sidecar that answers messages; returns its output, stderr and what it has said."""
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "train.py")
            with open(path, "w") as f:
                f.write(script)
            if answer is None:
                return subprocess.CompletedProcess([], *Script(path).wait()), []
            door = os.path.join(d, "sidecar")
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(door)
            listening.listen()
            script = Script(path, TENSILE_ADDRESS=door)
            with listening:
                ours, _ = listening.accept()
            said = []
            with ours, ours.makefile("r") as lines:
                for text in lines:
                    message = json.loads(text)
                    said.append((message["kind"], message["body"]))
                    for kind, body in answer(message["kind"], message["body"]):
                        if kind == "gone":
                            ours.shutdown(socket.SHUT_RDWR)
                            break
                        ours.sendall((json.dumps({"version": 1, "kind": kind, "body": body}) + "\n").encode())
            done = subprocess.CompletedProcess([], *script.wait())
            return done, said


class Link(Sidecar):
    def test_all(self):
        alone, _ = self.run_script()
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertEqual(alone.stderr.count("there is no sidecar"), 1)

        def planner(kind, body):
            if kind == "hello":
                yield "plan", {"number": 1, "graph": 0, "limit_bytes": 1 << 30}
            elif kind == "graph":
                yield "plan", dict(shelved(body["graph"]), number=2)
                yield "park", {"number": 1}
            elif kind == "parked":
                yield "resume", {"number": body["number"] + 1}
                if body["number"] == 1:  # it may read both at once, and then has not gone on in between
                    yield "park", {"number": 3}

        script = waiting(SCRIPT.replace("    print", WAIT + "    print"), (4, "planner.counter > 0"), (6, "planner.counter > 2"))
        joined, said = self.run_script(planner, script)
        self.assertEqual(joined.returncode, 0, joined.stderr)
        self.assertEqual(joined.stdout, alone.stdout)
        kinds = [k for k, _ in said]
        self.assertEqual(kinds[0], "hello")
        self.assertEqual(kinds[-1], "end")
        self.assertEqual(kinds.count("graph"), 1)
        self.assertEqual([b["number"] for k, b in said if k == "parked"], [1, 3])
        self.assertEqual([b.get("error") for k, b in said if k == "applied"], [None] * kinds.count("applied"))
        self.assertTrue([b for k, b in said if k == "iteration" and b["plan"] == 2 and b["touched_bytes"] > 0])

    @long
    def test_end(self):
        """The sidecar has the script end, or is gone."""
        alone, _ = self.run_script()

        def stopping(kind, body):
            if kind == "iteration" and body["iteration"] == 2:
                yield "stop", {}

        stopped, said = self.run_script(greeting(stopping), waiting(SCRIPT, (4, "planner.stopping")))
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertTrue(said[-1][1]["stopped"])
        self.assertTrue(alone.stdout.startswith(stopped.stdout))

        def dying(kind, body):
            if kind == "iteration" and body["iteration"] == 3:
                yield "gone", {}

        left, _ = self.run_script(greeting(dying), waiting(SCRIPT, (4, "False")))
        self.assertEqual((left.returncode, left.stdout), (0, alone.stdout), left.stderr)
        self.assertEqual(left.stderr.count("the sidecar is gone"), 1)

    @long
    def test_leave(self):
        """A script that leaves says so and no more, has torch as it was, and trains on to the same bits; it does not join
        again."""
        leaving = SCRIPT.replace("    optimizer.zero_grad", "    if i == 5:\n        tensile.leave()\n"
                                 "        tensile.join(model, optimizer)\n    optimizer.zero_grad")
        leaving = leaving.replace("    print", WAIT + "    print")
        leaving += "print('step' in vars(optimizer), hasattr(torch.save, '__wrapped__'))\n"
        alone, _ = self.run_script()

        def planner(kind, body):
            if kind == "hello":
                yield "plan", {"number": 1, "graph": 0, "limit_bytes": 0}
            elif kind == "graph":
                yield "plan", dict(shelved(body["graph"]), number=2)

        left, said = self.run_script(planner, leaving)
        self.assertEqual((left.returncode, left.stdout), (0, alone.stdout + "False False\n"), left.stderr)
        self.assertEqual([k for k, _ in said[-2:]], ["passive", "end"])
        self.assertIn("tensile.leave", said[-2][1]["why"])
        self.assertTrue(said[-2][1]["always"])
        self.assertEqual([b["iteration"] for k, b in said if k == "iteration"], [1, 2, 3, 4, 5])
        self.assertEqual([b["plan"] for k, b in said if k == "iteration"][-1], 2)
        self.assertEqual(left.stderr.count("tensile: "), 1, left.stderr)
        self.assertIn("does not join again", left.stderr)

    @long
    def test_passive(self):
        """A script that follows no plan rests and ends like any other."""
        sparse = SCRIPT.replace("    optimizer.step()", "    if i == 1:\n        torch.eye(3).to_sparse()\n"
                                "    optimizer.step()")
        sparse = waiting(sparse, (3, "planner.counter"), (5, "planner.stopping"))
        alone, _ = self.run_script()

        def planner(kind, body):
            if kind == "passive":
                yield "park", {"number": 1}
            elif kind == "parked":
                yield "resume", {"number": 2}
                yield "stop", {}

        stopped, said = self.run_script(greeting(planner), sparse)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertTrue([b["always"] for k, b in said if k == "passive"][0])
        self.assertEqual([b["number"] for k, b in said if k == "parked"], [1])
        self.assertEqual((said[-1][0], said[-1][1]["stopped"]), ("end", True))
        self.assertTrue(alone.stdout.startswith(stopped.stdout))
        self.assertLess(len(stopped.stdout), len(alone.stdout))


if __name__ == "__main__":
    unittest.main()
