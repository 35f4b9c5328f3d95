"""check.py on a machine where nothing works: each part alone has programs that hang, fail or print garbage; what the others print is there."""

import argparse
import dataclasses
import importlib.util
import json
import os
import shutil
import signal
import stat
import subprocess
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


class Parts:
    """A folder with check.py, whose stage 1 has parts of a test's own: Python scripts, each with its limit in seconds."""

    def __init__(self, folder, results=None, **parts):
        self.folder, self.results = os.path.join(folder, "gpu"), results or os.path.join(folder, "results")
        os.makedirs(self.folder)
        program(os.path.join(self.folder, "tensile"), "exit 1")
        shutil.copy(os.path.join(KIT, "check.py"), self.folder)
        rows = []
        for name, (script, limit, *more) in parts.items():
            with open(os.path.join(self.folder, name + ".py"), "w") as f:
                f.write(script)
            rows.append(f"check.Part(1, {name!r}, {limit / SCALE}, ({name + '.py'!r},), **{more[0] if more else {}})")
        with open(os.path.join(self.folder, "go.py"), "w") as f:
            f.write(f"import check\ncheck.LIMIT = 1 << 30\ncheck.PARTS = [{', '.join(rows)}]\ncheck.main()")

    def start(self, *more, **env):
        return subprocess.Popen([sys.executable, "-B", os.path.join(self.folder, "go.py"), "1", self.results, "--fake", "--scale", str(SCALE), *more],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                env=dict(os.environ, **{STARTED: str(os.getpid()), **env}))

    def rows(self):
        with open(os.path.join(self.results, "table.json")) as f:
            return {r["part"]: r for r in json.load(f)["rows"]}

    def packed(self):
        with tarfile.open(os.path.join(self.results, "results.tgz")) as t:
            return {os.path.basename(m.name): m.size for m in t.getmembers()}


FINE = "print('@ fine')", 6000
WAITS = "\nimport time; time.sleep(3000)"
# How a process gets away from the part that has started it: all of them must be found.
AWAY = """
import os, signal, sys, time
print('@ begun', flush=True)
def away(*words, env=os.environ):
    if not os.fork():
        os.setsid()
        if not os.fork():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.execvpe('sleep', ['sleep', '3000'], env)
        os._exit(0)
away()
away(env={STARTED: os.environ[STARTED]})  # without what its parent has in its environment
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for i in range(3):
    os.close(i)
""".replace("STARTED", repr(STARTED))


class Hostile(unittest.TestCase):
    """Parts that do what no part should."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def carry_out(self, results=None, env=None, **parts):
        kit = Parts(self.folder, results, first=FINE, **parts, last=FINE)
        p = kit.start(**(env or {}))
        said = p.communicate()[0]
        self.assertEqual(left(), [], "processes are left")
        self.assertNotIn("Traceback", said)
        return kit, p.returncode, said

    def fine(self, rows, *names):
        for name in names or ("first", "last"):
            self.assertEqual([rows[name]["result"], rows[name]["lines"]], ["ok", ["fine"]], rows[name])

    def test_away(self):
        """Processes that have left session, parent and environment, and ignore SIGTERM."""
        kit, status, _ = self.carry_out(away=(AWAY + WAITS, 5), ends=(AWAY, 6000))
        rows = kit.rows()
        self.assertEqual(status, 1)
        self.fine(rows)
        self.assertEqual(rows["away"]["result"], "FAILED (limit)")
        self.assertEqual([rows["ends"]["result"], rows["ends"]["lines"]], ["ok", ["begun"]])

    def test_much(self):
        """A million rows, bytes that are no text, a file and an output too large to carry, and more than can be packed."""
        kit, status, said = self.carry_out(
            rows=("import sys\nfor i in range(1000000): sys.stdout.write('@ row %d\\n' % i)", 6000),
            bytes=("import os\nos.write(1, b'@ \\xff\\xfe\\x00 \\x1b[2J\\n@ fine\\n')", 6000),
            output=("print('@ head', flush=True)\nimport os\nos.truncate(1, 1 << 31)\nos.lseek(1, 0, 2)\nos.write(1, b'\\n@ tail\\n')", 6000),
            huge=("print('@ fine')\nopen('huge', 'w').truncate(1 << 40)", 6000),
            many=("import os\nprint('@ fine')\nfor i in range(20): open(f'many{i}', 'wb').write(os.urandom(1 << 20))", 6000))
        rows = kit.rows()
        self.assertEqual(status, 0, said)
        self.fine(rows, "first", "huge", "many", "last")
        self.assertEqual([rows["rows"]["lines"][0], rows["rows"]["lines"][-1]], ["row 0", "row 999999"])
        self.assertEqual([rows["output"]["lines"][0], rows["output"]["lines"][-1]], ["head", "tail"])
        self.assertEqual(rows["bytes"]["lines"][-1], "fine")
        self.assertLessEqual(os.path.getsize(os.path.join(kit.results, "table.json")), 1 << 20)
        self.assertLessEqual(os.path.getsize(os.path.join(kit.results, "results.tgz")), 15 << 20)
        self.assertLessEqual({"first.txt", "last.txt", "many.txt", "table.txt", "many0"}, kit.packed().keys())
        for name, size in (("huge", 64 << 20), ("output.txt", 64 << 20)):
            self.assertLessEqual(os.path.getsize(os.path.join(kit.folder, "work/stage1", name)), size)

    def test_locale(self):
        """What is no ASCII is written whatever the locale says."""
        kit, status, said = self.carry_out(env=dict(PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", LC_ALL="C", PYTHONIOENCODING="ascii:strict"),
                                           other=("import os\nos.write(1, '@ \u00fcber\\n'.encode())", 6000))
        self.assertEqual(status, 0, said)
        self.assertEqual(kit.rows()["other"]["lines"], ["\u00fcber"])

    def test_removed(self):
        """The folders of results and of what is kept are removed, or another thing stands there."""
        gone = "import os, shutil\nshutil.rmtree(os.path.dirname(os.getcwd()))\nshutil.rmtree({!r})\n"
        results = os.path.join(self.folder, "results")
        kit, status, said = self.carry_out(gone=(gone.format(results) + "print('@ fine')", 6000), next=FINE)
        rows = kit.rows()
        self.fine(rows, "first", "next", "last")
        self.assertIn("last.txt", kit.packed())
        self.assertIn("last          ok", said)

    def test_full_disk(self):
        """A part fills the disk of the results: those of the others before it stay, and the table comes out; what it leaves that is too
        large is cut, so that the parts after it have room."""
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "none", disk], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("only root may mount a disk that is small")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        fill = "print('@ begun', flush=True)\ntry:\n  with open({!r}, 'wb') as f:\n    while True: f.write(bytes(1 << 16))\nexcept OSError: pass"
        self.folder = disk  # for the kit, too
        kit, status, said = self.carry_out(large=(fill.format("large"), 6000), after=FINE,
                                           full=(fill.format(os.path.join(disk, "elsewhere")), 6000))
        rows = kit.rows()
        self.assertEqual(status, 1)
        self.fine(rows, "first", "after")
        self.assertIn("large", kit.packed())
        self.assertRegex(said, r"(?m)^last .*")
        self.assertRegex(said, r"(?m)^results are not whole: .*No space left")

    def test_killed(self):
        """A stage that is killed in the midst of a part: the results of the parts before it are there, and nothing runs on."""
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL:
            for whom in "stage", "worker":
                with self.subTest(number=number, whom=whom), tempfile.TemporaryDirectory() as folder:
                    there = os.path.join(folder, "there")
                    kit = Parts(folder, first=FINE, waits=(AWAY + f"open({there!r}, 'w')" + WAITS, 6000), last=FINE)
                    p = kit.start()
                    while not os.path.exists(there):
                        time.sleep(0.01)
                    victim = p.pid
                    if whom == "worker":
                        with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
                            victim = int(f.read())
                    os.kill(victim, number)
                    said = p.communicate()[0]
                    while left():  # of a stage whose first process was killed the other comes to its end
                        time.sleep(0.05)
                    self.assertEqual(p.returncode, -9 if (number, whom) == (signal.SIGKILL, "stage") else 1, said)
                    self.fine(kit.rows(), "first")
                    self.assertIn("first.txt", kit.packed())
                    if number != signal.SIGKILL:
                        self.assertIn(f"the stage was cut short: {number.name} came", said)
                        self.assertRegex(said, r"(?m)^waits .*FAILED \(cut off\)")
                    elif whom == "worker":
                        self.assertIn("the stage was killed by signal 9", said)
                    self.assertNotRegex(said, "(?m)^last ")

    def test_limit(self):
        """A stage that hangs by itself is killed at its limit."""
        kit = Parts(self.folder, first=FINE)
        with open(os.path.join(kit.folder, "go.py")) as f:
            script = f.read()
        with open(os.path.join(kit.folder, "go.py"), "w") as f:
            f.write(script.replace("check.main()", "check.Stage.go = lambda _: check.time.sleep(3000)\ncheck.LIMIT = 20\ncheck.main()"))
        p = kit.start()
        said = p.communicate()[0]
        self.assertEqual(p.returncode, 1)
        self.assertIn("the stage was killed by signal 9", said)
        self.assertEqual(left(), [])

    def test_unwritable(self):
        """The results cannot be written any more: the table comes out, and says so."""
        other = "import os, shutil\nshutil.rmtree({0!r})\nopen({0!r}, 'w')\nprint('@ fine')".format(os.path.join(self.folder, "results"))
        _, status, said = self.carry_out(other=(other, 6000))
        self.assertEqual(status, 1)
        self.assertRegex(said, r"(?m)^results are not whole: ")
        self.assertRegex(said, r"(?m)^last +ok .* fine$")

    def test_no_folder(self):
        """Where no part can be started the stage says so of each, and the results of those before it are there."""
        other = "import os, shutil\nhere = os.getcwd()\nshutil.rmtree(here)\nopen(here, 'w')"
        kit, status, said = self.carry_out(other=(other, 6000), next=FINE)
        rows = kit.rows()
        self.fine(rows, "first")
        self.assertEqual([rows["next"]["result"], rows["last"]["result"]], ["FAILED (system)"] * 2)
        self.assertRegex(said, "(?m)^last +FAILED .*File exists")

    def test_only(self):
        """One part alone runs."""
        kit = Parts(self.folder, first=FINE, last=FINE)
        kit.start("--only", "last").communicate()
        self.assertEqual(list(kit.rows()), ["last"])

    def test_status(self):
        """Results follow from the status and the rows."""
        kit, status, said = self.carry_out(fails=("print('@ fine')\nimport sys; sys.exit('no way')", 6000), silent=("print('fine')", 6000),
                                           dies=("print('@ fine', flush=True)\nimport os; os.kill(os.getpid(), 9)", 6000),
                                           lacks=("print('no card')\nimport sys; sys.exit(77)", 6000))
        self.assertEqual(status, 1)
        rows = kit.rows()
        self.fine(rows)
        self.assertEqual([[rows[n]["result"], rows[n]["lines"]] for n in ("fails", "silent", "dies", "lacks")],
                         [["FAILED (1)", ["fine", "no way"]], ["FAILED (no row)", ["fine"]], ["FAILED (-9)", ["fine"]], ["skipped", ["no card"]]])
        self.assertIn("2 parts ok, 3 failed fails silent dies", said)

    def test_remedy(self):
        """What names a wrong op runs after a part that came to other bits, and only then."""
        for status, want in (0, "skipped"), (3, "ok"):
            with tempfile.TemporaryDirectory() as folder:
                kit = Parts(folder, first=(f"print('@ fine')\nimport sys; sys.exit({status})", 6000), then=FINE, ops=(*FINE, {"remedy": True}), last=FINE)
                kit.start().communicate()
                rows = kit.rows()
                self.assertEqual(rows.get("ops", {"result": "skipped"})["result"], want)
                self.fine(rows, "last")


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
            self.assertIn(": 0 parts ok, 0 failed; no time was left for all of machine\n", stage.pack())

    def test_end(self):
        """A part gets no more time than the stage has, and is not begun when that has none."""
        with tempfile.TemporaryDirectory() as folder:
            check, _, stage = self.stage(folder)
            with open(os.path.join(check.HERE, "asks.py"), "w") as f:
                f.write("import os\nprint('@', os.environ['GPU_CHECK_LIMIT'])")
            part = check.Part(1, "machine", 1 << 40, ("asks.py",))
            self.assertLessEqual(float(stage.run(part)["lines"][0]), 100 * (check.LIMIT - 15))
            stage.end = time.monotonic() + 100 * 19
            row = stage.run(part)
            self.assertEqual([row["result"], row["lines"]], ["skipped", [check.LATE]])

    def test_table(self):
        """A part has so many lines of the table, which fits into what comes back; table.json has all."""
        with tempfile.TemporaryDirectory() as folder:
            check, results, stage = self.stage(folder)
            parts = [p for p in check.PARTS if p.stage == 1]
            for p in parts:
                stage.rows.append({"part": p.name, "result": "ok", "seconds": 0.0, "before": "", "lines": [f"{i} " + 140 * "x" for i in range(40)]})
            table = stage.pack()
            self.assertLess(len(table), 12000)
            self.assertRegex(table, r"(?m)^machine .* 0 x+\n(    \d x+\n){6}    \.\.\. 33 lines more in table.json\n    39 x+\nprobe")
            with open(os.path.join(results, "table.json")) as f:
                self.assertEqual([len(r["lines"]) for r in json.load(f)["rows"]], [40] * len(parts))

    def test_clocks(self):
        """An nvidia-smi that hangs or prints something else is asked once, one that answers before each part."""
        for script, times, before in (("sleep 3000", 1, "nvidia-smi hangs"), ("echo no; exit 9", 1, "nvidia-smi says: no"),
                                      ("echo A card, 1, 2, 3, 4, 5, 6, 7, 8", 2, "A card, 1, 2, 3, 4, 5, 6, 7, 8")):
            with tempfile.TemporaryDirectory() as folder:
                check, _, stage = self.stage(folder)
                stage.scale = SCALE if before.endswith("hangs") else 100
                program(os.path.join(folder, "nvidia-smi"), f"echo >>{folder}/asked\n{script}")
                path = os.environ["PATH"]
                os.environ["PATH"] = folder + os.pathsep + path
                try:
                    said = [stage.clocks(check.PARTS[0]) for _ in range(2)]
                finally:
                    os.environ["PATH"] = path
                self.assertEqual(said, [before, before if times == 2 else ""])
                if stage.scale != SCALE:  # one that is killed may not have come to it
                    self.assertEqual(os.path.getsize(os.path.join(folder, "asked")), times)

    def test_room(self):
        """A stage whose results cannot be written goes on, and its table says so."""
        with tempfile.TemporaryDirectory() as folder:
            _, results, stage = self.stage(folder)
            stage.rows.append({"part": "machine", "result": "ok", "seconds": 0.0, "before": "", "lines": ["two cores"]})
            shutil.rmtree(results)
            open(results, "w").close()
            table = stage.pack()
            self.assertIn("results are not whole: " + results, table)
            self.assertRegex(table, "machine +ok .* two cores")
            os.remove(results)
            self.assertNotIn("not whole", stage.pack())


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
