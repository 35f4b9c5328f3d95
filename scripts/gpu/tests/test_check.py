"""check.py on a machine where nothing works: each part alone has programs that hang, fail or print garbage; what the others print is there."""

import argparse
import dataclasses
import importlib.util
import os
import shutil
import stat
import sys
import tarfile
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
KIT = os.path.dirname(HERE)
sys.dont_write_bytecode = True  # the folder of the repository stays as it is
TOOLS = ("nvidia-smi", "nvcc", "ptxas", "cuobjdump", "compute-sanitizer", "ncu")
BROKEN = {  # how programs are broken: what a shell does, and what a module of Python does when it is imported
    "hangs": ("setsid sleep 3000 & sleep 3000", "import time; time.sleep(3000)"),
    "fails": ("echo out of order >&2; exit 3", "raise RuntimeError('out of order')"),
    "garbage": ("head -c 3000 /dev/urandom", "import os; os.write(1, os.urandom(3000)); os._exit(0)"),
}
STARTED = "GPU_CHECK_TEST"  # is in the environment of every process that a test starts, but not of the test's own as the kernel shows it
SCALE = 0.02  # of what check.py waits for what hangs


def load(folder):
    spec = importlib.util.spec_from_file_location("check", os.path.join(folder, "check.py"))
    check = importlib.util.module_from_spec(spec)
    sys.modules["check"] = check
    spec.loader.exec_module(check)
    return check


def program(file, text):
    with open(file, "w") as f:
        f.write(f"#!/bin/sh\n{text}\n")
    os.chmod(file, 0o755 | stat.S_IXUSR)


class Kit:
    """A folder as make gpu-check packs it, whose programs are broken."""

    def __init__(self, folder, how):
        shell, python = BROKEN[how]
        self.folder = os.path.join(folder, "gpu")
        os.makedirs(os.path.join(self.folder, "ptx"))
        os.makedirs(os.path.join(self.folder, "tools"))
        os.makedirs(os.path.join(self.folder, "torch"))
        for name in os.listdir(KIT):
            if name.endswith(".py") and name != "cuda.py":
                shutil.copy(os.path.join(KIT, name), self.folder)
        for name in "digests.txt", "ops.txt":
            shutil.copy(os.path.join(KIT, "../../device/cuda/kernels/testdata", name), self.folder)
        with open(os.path.join(self.folder, "ptx", "conv.ptx"), "w") as f:
            f.write(".version 6.0\n")
        for name in "tensile", "conformance.test":
            program(os.path.join(self.folder, name), shell)
        for name in TOOLS:
            program(os.path.join(self.folder, "tools", name), shell)
        for name in "cuda.py", "torch/__init__.py":
            with open(os.path.join(self.folder, name), "w") as f:
                f.write(python + "\n")
        self.check = load(self.folder)

    def run(self, part, hangs, results):
        """Carries out a part between those beside it in its stage, which do what they should; returns the rows by their names."""
        parts = [p for p in self.check.PARTS if p.stage == part.stage]
        at = parts.index(part)
        parts = parts[max(0, at - 1):at + 2]
        for i, p in enumerate(parts):
            limit = 1 if hangs and p is part else 6000
            parts[i] = dataclasses.replace(p, remedy=False, limit=limit / SCALE)
            if p is not part:
                parts[i].words = (f"fine-{p.name}.py",)
                with open(os.path.join(self.folder, parts[i].words[0]), "w") as f:
                    f.write(f"print('@ of {p.name}')")
        self.check.PARTS, whole, self.check.LIMIT = parts, self.check.PARTS, 1 << 30
        try:
            stage = self.check.Stage(argparse.Namespace(stage=part.stage, scale=SCALE, fake=False, only=None, results=results))
            stage.go()
        finally:
            self.check.PARTS = whole
        return {r["part"]: r for r in stage.rows}


def left():
    """What has been started by this test and runs."""
    mark, found = f"{STARTED}={os.getpid()}".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f, open(f"/proc/{pid}/stat") as s:
                if mark in f.read().split(b"\0") and " Z " not in s.read():
                    found.append(pid)
        except OSError:
            continue
    return found


class Limits(unittest.TestCase):
    def test_sums(self):
        """The limits of a stage's parts fit into the stage: the last one has its time also if all others take theirs."""
        check = load(KIT)
        for stage in 1, 2, 3:
            # what remedies a difference takes the time of what is left out then, or of what was quicker than its limit
            spent = sum(p.limit for p in check.PARTS if p.stage == stage)
            self.assertLessEqual(spent, check.LIMIT, f"stage {stage}")


class Results(unittest.TestCase):
    def stage(self, folder):
        check = load(KIT)
        check.HERE, results = os.path.join(folder, "kit"), os.path.join(folder, "results")
        return check, results, check.Stage(argparse.Namespace(stage=1, scale=100, fake=True, only=None, results=results))

    def test_late(self):
        """A part that had no time for all that it does is none that is simply ok."""
        with tempfile.TemporaryDirectory() as folder:
            check, _, stage = self.stage(folder)
            with open(os.path.join(check.HERE, "late.py"), "w") as f:
                f.write("print('@ a: 3 ms')\nprint('@ b: not run: no time was left')")
            stage.rows.append(row := stage.run(check.Part(1, "machine", 60, ("late.py",))))
            self.assertEqual(row["result"], "ok, 1 not run")
            self.assertIn(": 0 parts ok, 0 failed; no time was left for all of machine\n", stage.pack(""))

    def test_room(self):
        """A stage whose results cannot be written goes on, and its table says so."""
        with tempfile.TemporaryDirectory() as folder:
            _, results, stage = self.stage(folder)
            stage.rows.append({"part": "machine", "result": "ok", "seconds": 0.0, "before": "", "lines": ["two cores"]})
            shutil.rmtree(results)
            table = stage.pack("")
            self.assertIn("results are not whole: " + results, table)
            self.assertRegex(table, "machine +ok .* two cores")
            os.mkdir(results)
            self.assertNotIn("not whole", stage.pack(""))


class Stubs(unittest.TestCase):
    def test_each_part(self):
        for how in BROKEN:
            with tempfile.TemporaryDirectory() as folder:
                kit = Kit(folder, how)
                os.environ[STARTED] = str(os.getpid())
                os.environ["PATH"] = os.path.join(kit.folder, "tools") + os.pathsep + (path := os.environ["PATH"])
                try:
                    for part in kit.check.PARTS:
                        with self.subTest(how=how, stage=part.stage, part=part.name):
                            self.part(kit, part, how, os.path.join(folder, "results"))
                finally:
                    os.environ["PATH"] = path

    def part(self, kit, part, how, results):
        rows = kit.run(part, how == "hangs", results)
        own = rows.pop(part.name)
        if part.name == "machine" and how != "hangs":
            self.assertEqual(own["result"], "ok")  # that nothing works is what it has to say
        else:
            self.assertRegex(own["result"], "^FAILED", own)
        self.assertIn(len(rows), (1, 2))
        for name, row in rows.items():
            self.assertEqual([row["result"], row["lines"]], ["ok", [f"of {name}"]], name)
        with tarfile.open(os.path.join(results, "results.tgz")) as t:
            self.assertLessEqual({f"stage{part.stage}/{name}.txt" for name in [part.name, *rows]}, set(t.getnames()))
        with open(os.path.join(results, "table.txt")) as f:
            table = f.read()
        for name in [part.name, *rows]:
            self.assertRegex(table, rf"(?m)^{name} ")
        while left():  # what is killed is gone a little later
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
