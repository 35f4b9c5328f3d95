"""Scripts within a limit, planned by `tensile join`, which must be in the PATH: the bits of the script alone, and what
torch's allocator has in every planned iteration.

One process runs all scripts. The command that join starts hands the socket to its sidecar over.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

import torch

import scripts
from scripts import Planner, differs, execute
from tensile.link import Link
from tensile.session import Session

Session.measures = 1 << 30  # iterations of each plan in which the allocator's events are taken: all

HAND_OVER = """
import os, socket, sys
up = socket.socket(socket.AF_UNIX)
up.connect(sys.argv[1])
up.sendall(os.environ["TENSILE_ADDRESS"].encode())
up.recv(1)
"""


class Joined(Link):
    """A line to a sidecar, which waits for the first plan of each graph and notes what is measured."""

    latency = None  # nanoseconds that each op is said to take; None: as recorded

    def __init__(self, sock):
        self.told = []
        super().__init__(sock, "cpu")
        self.plans, self.iterations, self.errors, self.graphs = {}, [], [], []
        self.session = None

    def graph(self, number, iteration):
        if self.latency is not None:
            iteration.latencies = lambda: [self.latency] * len(iteration.groups)
        super().graph(number, iteration)
        self.graphs.append(iteration)
        while self.newest is None or self.newest["number"] < number + 1:
            self._read(None)

    def applied(self, plan, iterations, error):
        super().applied(plan, iterations, error)
        self.plans[plan["number"]] = plan
        if error:
            self.errors.append(error)

    def send(self, kind, body):
        if kind == "iteration":
            self.told.append(body)
        super().send(kind, body)

    def iteration(self, session, graph, plan, wall):
        super().iteration(session, graph, plan, wall)
        self.session = session
        self.iterations.append((graph, plan, session.touched))

    def left(self, session):
        pass  # it ends, which is told later


def joined(script, limit, **options):
    """Runs a script within so many bytes, 0 for no limit; returns what execute returns, the line and join's report."""
    with tempfile.TemporaryDirectory() as d, socket.socket(socket.AF_UNIX) as listening:
        path, report = os.path.join(d, "s"), os.path.join(d, "report.json")
        listening.bind(path)
        listening.listen()
        words = ["tensile", "join", "--report", report] + (["--memory", str(limit)] if limit else [])
        command = subprocess.Popen(words + ["--", sys.executable, "-S", "-c", HAND_OVER, path], stderr=subprocess.PIPE,
                                   text=True)
        up, _ = listening.accept()
        with up:
            sidecar = socket.socket(socket.AF_UNIX)
            sidecar.connect("\0" + up.recv(108).decode()[1:])
            link = Joined(sidecar)
            result = execute(script, link, **options)
            link.end(link.session)
        errors = command.communicate()[1]
        if command.returncode:
            raise AssertionError(f"join ended with {command.returncode}: {errors}")
        with open(report) as f:
            return result, link, json.load(f)


class Planned(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def all(self, script, **options):
        """Returns the most that a script has without a plan, whose bits must be those of the script alone."""
        want = execute(script, **options)
        p = Planner()
        self.assertEqual(differs(want, execute(script, p, **options)), "", "joined without a limit")
        return want, max(touched for graph, _, touched in p.iterations[1:] if graph)

    def within(self, script, want, limit, planned, **options):
        got, link, report = joined(script, limit, **options)
        self.assertEqual(differs(want, got), "", link.errors)
        self.assertEqual((link.errors, report["faults"], report.get("passive"), report["ended"]), ([], 0, None, True))
        followed = [(graph, plan, touched) for graph, plan, touched in link.iterations if plan]
        self.assertEqual(len(followed), report["planned_iterations"])
        self.assertGreaterEqual(len(followed), planned, report)
        checked = 0
        for (_, before, _), (_, plan, touched) in zip(followed, followed[1:]):
            if before == plan:  # an iteration is measured at its end, after its step
                most = link.plans[plan]["plan_bytes"]
                self.assertLessEqual(most, limit)
                self.assertLessEqual(touched, most * 1.01 + (64 << 10))
                checked += 1
        self.assertGreater(checked, 0)
        self.assertEqual(report["claim_bytes"], report["plan_bytes"] + report["reserve_bytes"])
        # beside a plan of 50 KB, storages that are not moved are more than a twentieth
        self.assertLessEqual(report["reserve_bytes"], max(report["plan_bytes"] * 0.05, 4096))
        steps = [(i["steps_ns"], link.plans[i["plan"]]) for i in link.told if "steps_ns" in i]
        by_hooks = sum(i.get("hooks", False) for i in link.told)
        self.assertEqual(report["hooks_iterations"], by_hooks)
        self.assertTrue(steps or by_hooks or "batch" in options)  # those of smaller iterations tell nothing
        for took, plan in steps:
            again = sum(a["do"] == "again" for b in plan["boundaries"] for a in b["do"])
            self.assertEqual(len(took), len(link.graphs[plan["graph"] - 1].groups) + again)
            self.assertTrue(all(ns >= 0 for ns in took) and sum(took) > 0)
        self.link = link
        return report

    def within_part(self, script, planned, percent=60, **options):
        want, all_ = self.all(script, **options)
        self.losses = want[0]
        return self.within(script, want, all_ * percent // 100, planned, **options)

    def test_networks(self):
        for network in scripts.NETWORKS:
            for optimizer in scripts.OPTIMIZERS:
                with self.subTest(network=network, optimizer=optimizer):
                    percent = 70 if network == "lstm" else 60  # an LSTM is one op on a CPU
                    self.within_part(scripts.plain, 46, percent, network=network, optimizer=optimizer, iterations=50)
                    losses = [i["loss"] for i in self.link.told if "loss" in i]
                    self.assertEqual(losses, self.losses[:-1])  # each is read after its step, and told with the next

    def test_hooks(self):
        """Where what autograd saves is enough, all planned iterations are played by that."""
        report = self.within_part(scripts.plain, 16, 80, network="encoder", optimizer="momentum", iterations=20)
        self.assertEqual(report["hooks_iterations"], report["planned_iterations"])

    def test_held(self):
        """Where an optimizer works on all parameters at once, a third of the memory is held beside that, to be released
        when it has ended: within the limit that has to be on the host."""
        report = self.within_part(scripts.plain, 16, network="lstm", optimizer="foreach", iterations=20, batch=lambda i: 8)
        self.assertGreater(report["host_bytes"], 0)

    def test_scripts(self):
        for name, script, planned, options in (
                ("checkpoint", scripts.checkpointed, 6, {}),
                ("custom function", scripts.custom, 6, {}),
                ("bfloat16", scripts.autocast, 6, {}),
                ("accumulation, schedule, gradients set to zero", scripts.accumulation, 6, {}),
                ("gradients set to zero", scripts.plain, 6, {"none": False}),
                ("workers, evaluation", scripts.epochs, 16, {"workers": 2, "batch": 4, "epochs": 2})):
            with self.subTest(script=name):
                self.within_part(script, planned, **options)

    def test_saved_files(self):
        want, alone = [], []
        result, all_ = self.all(scripts.saving, into=alone)
        del alone[len(alone) // 2:]
        self.within(scripts.saving, result, all_ * 60 // 100, 8, into=want)
        self.assertEqual([len(f) > 0 for f in want], [True, True])
        self.assertEqual(want, alone)

    def test_kinds(self):
        """Each of two kinds of iterations that come in turn has a plan of its own."""
        report = self.within_part(scripts.plain, 12, iterations=30, scale=lambda i, loss: loss * 1.5 if i % 2 else loss)
        followed = [(graph, bool(plan)) for graph, plan, _ in self.link.iterations]
        self.assertEqual(set(followed[20::2]) | set(followed[21::2]), {followed[20], followed[21]})
        self.assertTrue(followed[20][1] and followed[21][1])
        self.assertNotEqual(followed[20][0], followed[21][0])
        self.assertEqual(report["graphs"], 2)

    def test_sizes(self):
        """One plan is for batches of all sizes, as large as the largest that has come."""
        report = self.within_part(scripts.plain, 24, iterations=40, batch=lambda i: 3 + i * 5 % 6)
        self.assertLessEqual(report["graphs"], 4)

    def test_lower_limits(self):
        """Down to what the largest op of a network needs, each limit holds, and a lower one never has a higher peak.
        Which plan is made depends on the times of ops too: here they are the same for each limit."""
        Joined.latency = 10000
        self.addCleanup(setattr, Joined, "latency", None)
        for network, lowest in ("cnn", 60), ("encoder", 40), ("lstm", 70):
            options = dict(network=network, optimizer="momentum", iterations=8)
            want, whole = self.all(scripts.plain, **options)
            before = whole
            for percent in range(100, lowest - 10, -10):
                with self.subTest(network=network, percent=percent):
                    limit = whole * percent // 100
                    touched = self.within(scripts.plain, want, limit, 4, **options)["touched_bytes"]
                    self.assertLessEqual(touched, min(before, limit))
                    before = touched


if __name__ == "__main__":
    unittest.main()
