"""Lines of a sidecar that are damaged: each is refused in one line, or is a plan that is refused or carried out; the
script trains on, to its own bits."""

import contextlib
import copy
import io
import json
import random
import socket
import unittest

import torch

import scripts
from plans import random_plan
from scripts import Planner, differs, execute
from tensile import lines
from tensile.link import Link
from tensile.program import PlanError, Program

ODD = (None, True, False, -1, 0, 1, 3, 1 << 60, 0.5, float("nan"), "", "drop", [], [0], [[0]], {}, {"do": "in"})


def damaged(rng, message):
    """Returns a message with one place of it taken out, replaced or doubled, or with one too much."""
    message = copy.deepcopy(message)
    places = []

    def walk(value):
        for key in value if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            if isinstance(value[key], (dict, list)):
                walk(value[key])

    walk(message)
    if rng.randrange(2):  # most places are of actions: each name has its turn
        name = rng.choice(sorted({str(k) for v, k in places if isinstance(v, dict)}))
        places = [(v, k) for v, k in places if k == name]
    value, key = rng.choice(places)
    how = rng.randrange(6)
    if how > 3 and type(value[key]) is int:
        value[key] = max(0, value[key] + rng.choice((-2, -1, 1, 2)))
    elif how == 0:
        del value[key]
    elif how == 1 and isinstance(value, dict):
        value["more"] = rng.choice(ODD)
    elif how == 1:
        value.insert(key, copy.deepcopy(value[key]))
    else:
        value[key] = copy.deepcopy(rng.choice(ODD))
    return message


def line(rng, message):
    """Returns a damaged message as a line; of some, the text is damaged instead."""
    if rng.randrange(8):
        return json.dumps(damaged(rng, message)).encode() + b"\n"
    text = bytearray(json.dumps(message).encode())
    for _ in range(rng.randrange(1, 4)):
        text[rng.randrange(len(text))] = rng.randrange(256)
    return bytes(text[:rng.randrange(len(text) + 1)]) + b"\n"


class Lines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.alone = execute(scripts.plain, iterations=7)
        recorded = Planner()
        execute(scripts.plain, recorded, iterations=5)
        cls.iteration = recorded.graphs[0]
        cls.body, counts = random_plan(cls.iteration, random.Random(5), 0.3, number=2)
        assert all(counts.values()), counts  # it does all that a plan can do
        cls.message = {"version": 1, "kind": "plan", "body": dict(cls.body, plan_bytes=9)}

    def hear(self, text):
        """Returns a link that has heard what a sidecar said, and what it has said itself."""
        ours, theirs = socket.socketpair()
        with ours, theirs, contextlib.redirect_stderr(io.StringIO()) as said:
            link = Link(theirs, "cpu")
            ours.sendall(text)
            link._read(0)
        return link, said.getvalue()

    def test_damaged(self):
        refused = wrong = fine = 0
        messages = [self.message] * 6 + [{"version": 1, "kind": "park", "body": {"number": 3}},
                                         {"version": 1, "kind": "stop", "body": {}}]
        for seed in range(400):
            rng = random.Random(seed)
            text = line(rng, rng.choice(messages))
            with self.subTest(seed=seed, text=text[:200]):
                link, said = self.hear(text)
                if said:
                    refused += 1
                    self.assertRegex(said, r"\Atensile: cannot read what the sidecar says: [^\n]*\n\Z")
                    self.assertEqual((link.plan, link.counter, link.stopping, link.sock), (None, 0, False, None))
                    continue
                plan = link.newest
                if plan is not None and plan["graph"]:
                    try:
                        Program(self.iteration, plan)
                        fine += 1
                    except PlanError as e:
                        wrong += 1
                        self.assertNotIn("\n", str(e))
        self.assertGreater(min(refused, wrong, fine), 20, (refused, wrong, fine))

    def test_said(self):
        """What is wrong is named."""
        for change, want in (
                (lambda m: m["body"].pop("graph"), "a plan has no graph"),
                (lambda m: m["body"].pop("limit_bytes"), "a plan has no limit_bytes"),
                (lambda m: m["body"].update(entry=[1, 1]), "entry does not ascend at 1"),
                (lambda m: m["body"]["boundaries"][0].pop("do"), "a boundary has no do"),
                (lambda m: m["body"]["boundaries"][0]["do"].append({"do": "fly"}), "'fly' is nothing to do"),
                (lambda m: m["body"]["boundaries"][0]["do"].append({"do": "drop"}), "drop has no storage"),
                (lambda m: m["body"].update(strict=1), "strict is 1, not true or false"),
                (lambda m: m["body"].update(strict=True), "it is strict, and no limit without a plan"),
                (lambda m: m.update(version=2), "version 2, this package knows version 1"),
                (lambda m: m.update(kind="plans"), "kind 'plans' is not known"),
                (lambda m: m["body"].update(number=True), "number is True, not a whole number from 1 on")):
            message = copy.deepcopy(self.message)
            change(message)
            with self.subTest(want=want):
                self.assertIn(want, self.hear(json.dumps(message).encode() + b"\n")[1])
        self.assertIn("nested too deeply", self.hear(b"[" * 100_000 + b"\n")[1])
        with self.subTest("what follows is not heard"):
            bad, good = json.dumps(dict(self.message, kind=1)), json.dumps(self.message)
            self.assertIsNone(self.hear(f"{bad}\n{good}\n".encode())[0].plan)
        with self.subTest("a line without an end"):
            self.addCleanup(setattr, lines, "LONGEST", lines.LONGEST)
            lines.LONGEST = 100
            self.assertIn("more than 100 bytes", self.hear(b" " * 200)[1])

    @scripts.long
    def test_trains_on(self):
        """Whatever becomes of the line, losses, weights and optimizer state are those of the script alone."""
        taken = 0
        for seed in range(10):
            rng = random.Random(1000 + seed)
            ours, theirs = socket.socketpair()
            self.addCleanup(ours.close)
            self.addCleanup(theirs.close)
            link = Link(theirs, "cpu")
            text = line(rng, self.message)
            plan = link.graph

            def graph(number, iteration, ours=ours, plan=plan, text=text):
                plan(number, iteration)
                ours.sendall(text)

            link.graph = graph
            applied = link.applied

            def said(plan, iterations, error, applied=applied):
                nonlocal taken
                taken += not error
                applied(plan, iterations, error)

            link.applied = said
            with self.subTest(seed=seed, text=text[:200]), contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(differs(self.alone, execute(scripts.plain, link, iterations=7)), "")
        self.assertGreater(taken, 0)


if __name__ == "__main__":
    unittest.main()
