"""check.py STAGE [RESULTS] [--fake] [--scale S] [--only PART]: one stage, 1 to 3, of the check of a machine with an NVIDIA GPU.

    1  does it run, and is it right
    2  how fast is what runs
    3  PyTorch's bridge, limits and failures

It wants the folder that `make gpu-check` packs, and nothing but Python's standard library. A stage ends within 570 seconds. Every part has
a limit of its own, at which all its processes are killed, and needs nothing of the part before it. A stage that is killed leaves none
either. After every part RESULTS (by default $RESULTS, or else gpu-check-results) has results.tgz, what the parts printed and left, without
the largest files; table.txt, which also comes last on the standard output; and table.json; what a run before this one has left there is
moved to RESULTS/earlier-1 and so on. The exit status is 1 if a part failed. Without a GPU that can be used one line says so, and the part
machine alone runs. --fake goes through all parts on a driver without a GPU, with small networks; make gpu-check-fake makes that driver.
--scale multiplies all limits, for tests.
"""

import argparse
import ctypes
import dataclasses
import fcntl
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 570  # seconds, for a stage with its packing
PRINTED = 11500  # characters of the table: 12,000 come back from a lent machine
ROWS = 2000  # of a part in table.json at most
SIGNALS = signal.SIGTERM, signal.SIGINT, signal.SIGHUP  # end a stage early
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # of Linux's prctl
SKIPPED, DIFFERS = 77, 3  # exit statuses of parts: not on this machine; the GPU computed other bits
FILES = ("table.txt", "table.json", "results.tgz")  # of RESULTS
LATE = "no time was left"  # in a line of a part about what it did not come to
NO_GPU = 78  # exit status of CARD: there is certainly none
CARD = f"""
import ctypes, sys
try:
    driver = ctypes.CDLL("libcuda.so.1")
except OSError as e:
    print("no NVIDIA driver (" + str(e) + "): install it, or name the folder of its library in LD_LIBRARY_PATH")
    sys.exit({NO_GPU})
if driver.cuInit(0) == 100:  # CUDA_ERROR_NO_DEVICE
    print("NVIDIA's driver is here and has no GPU: give one to this container, or have CUDA_VISIBLE_DEVICES name one")
    sys.exit({NO_GPU})
"""


@dataclasses.dataclass
class Part:
    """A part is a function of steps.py by its name, or a script beside it. Its lines that begin with @ are its rows of the table."""
    stage: int
    name: str
    limit: int  # seconds
    words: tuple = ()  # of the command after python3, with files that are beside this one; (): steps.py and the name
    lines: int = 8  # of the table at most
    remedy: bool = False  # it runs only after a part that ended with DIFFERS; and after one in stage 2 nothing else runs


PARTS = (
    Part(1, "machine", 15),
    Part(1, "probe", 45, lines=18),
    Part(1, "devices", 20),
    Part(1, "digests", 60, lines=10),
    Part(1, "ops", 60, remedy=True),
    Part(1, "conformance", 110),
    Part(1, "assembly", 20, lines=20),
    Part(1, "sanitizers", 80, lines=6),
    Part(1, "rates", 40, lines=16),
    Part(1, "bridge-smoke", 40, ("torch_bridge.py", "tensile", "--small"), lines=15),
    Part(1, "torch", 75, ("torch_step.py",), lines=14),

    Part(2, "digest", 20),
    Part(2, "ops", 60, remedy=True),
    Part(2, "kernels", 90, ("kernels.py",), lines=30),
    Part(2, "calibrate", 60),
    Part(2, "train", 130, lines=22),
    Part(2, "ncu", 50, lines=12),
    Part(2, "pages", 30, lines=18),
    Part(2, "pin", 40, lines=20),
    Part(2, "launch", 15),
    Part(2, "jobs", 45),

    Part(3, "bridge", 230, ("torch_bridge.py", "tensile", "--json", "bridge.json"), lines=60),
    Part(3, "rivals", 75, ("torch_rivals.py",)),
    Part(3, "per-op", 40, ("torch_per_op.py", "tensile"), lines=12),
    Part(3, "cases", 110, ("torch_cases.py", "tensile"), lines=32),
    Part(3, "failures", 60),
    Part(3, "hot", 50, lines=10),
)


class Stage:
    def __init__(self, args):
        self.number, self.scale, self.fake, self.only = args.stage, args.scale, args.fake, args.only
        self.end = time.monotonic() + LIMIT * self.scale
        self.results = os.path.abspath(args.results)
        self.work = os.path.join(HERE, "work")  # stays for the stages after this one
        self.kept = os.path.join(self.work, f"stage{self.number}")
        shutil.rmtree(self.kept, ignore_errors=True)
        os.makedirs(self.kept)
        os.makedirs(self.results, exist_ok=True)
        self.move()
        write(os.path.join(self.results, FILES[0]), f"stage {self.number} runs\n")
        self.rows, self.asks, self.child, self.card = [], True, None, "no card"
        self.note = ""  # why only the part machine runs
        self.cut = ""  # why the stage ends early: a signal came
        self.unpacked = ""  # why results are not whole
        self.stuck = set()  # processes that no signal has ended
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def move(self):
        """Moves what an earlier run has left in RESULTS to a folder of its own there."""
        there = [f for f in FILES if os.path.exists(os.path.join(self.results, f))]
        if there:
            earlier = (os.path.join(self.results, f"earlier-{n}") for n in itertools.count(1))
            folder = next(d for d in earlier if not os.path.exists(d))
            os.mkdir(folder)
            for f in there:
                os.rename(os.path.join(self.results, f), os.path.join(folder, f))

    def environment(self, part, limit):
        e = dict(os.environ, GPU_CHECK_FAKE="1" if self.fake else "", GPU_CHECK_WORK=self.work, GPU_CHECK_STAGE=str(self.number),
                 GPU_CHECK_LIMIT=str(limit), GPU_CHECK_PART=part.name, PYTHONFAULTHANDLER="1",
                 PYTHONUNBUFFERED="1", XDG_CACHE_HOME=os.path.join(self.work, "cache"))
        e["PYTHONPATH"] = os.pathsep.join([os.path.join(HERE, "python"), e.get("PYTHONPATH", "")])
        if self.fake:
            e["GPU_CHECK_CUDA"] = os.path.join(HERE, "libfakecuda.so")
        e.setdefault("HOME", self.work)  # the driver keeps what it compiles there
        return e

    def carry_out(self, words, part, limit, out, err):
        """Runs a process until it ends or is to end, ends all that it has left, and returns its status, None if it was cut off."""
        end = time.monotonic() + limit
        self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.kept,
                                      env=self.environment(part, limit), start_new_session=True)
        while (status := self.child.poll()) is None and time.monotonic() < end and not self.cut:
            time.sleep(0.02)
        self.kill()
        return status

    def clocks(self, part):
        """What nvidia-smi says of the card before a part, in a line. One that hangs once is not asked again."""
        if not self.asks:
            return ""
        file = os.path.join(self.kept, "nvidia-smi.txt")
        try:
            with open(file, "wb") as out:
                status = self.carry_out(
                    ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu,memory.used,"
                     "compute_mode,mig.mode.current", "--format=csv,noheader"], part, 10 * self.scale, out, subprocess.STDOUT)
        except OSError:
            self.asks = False
            return "nvidia-smi is not here"
        said = text(file).strip()[:200]
        if status is None:
            self.asks = False
            return "nvidia-smi hangs"
        if said.count(",") < 8:
            self.asks = False
            return "nvidia-smi says: " + said.split("\n")[0][:80]
        self.card = said.split(",")[0].strip()
        return said.split("\n")[0]

    def run(self, part):
        """Runs a part and returns its row."""
        os.makedirs(self.kept, exist_ok=True)  # a part may have removed it
        row = {"part": part.name, "result": "skipped", "seconds": 0.0, "lines": [], "before": self.clocks(part)}
        left = self.end - time.monotonic() - 15 * self.scale  # for killing and packing
        if left < 5 * self.scale:
            row["lines"] = [LATE]
            return row
        limit = min(part.limit * self.scale, left)
        beside = os.listdir(HERE)
        words = [sys.executable, *(os.path.join(HERE, w) if w in beside else w for w in part.words or ("steps.py", part.name))]
        file = os.path.join(self.kept, part.name)
        begun = time.monotonic()
        with open(file + ".txt", "wb") as out, open(file + ".err", "wb") as err:
            status = self.carry_out(words, part, limit, out, err)
        row["seconds"] = round(time.monotonic() - begun, 1)
        said, wrong = text(file + ".txt"), text(file + ".err")
        self.trim()
        lines = [line[1:].strip()[:150] for line in said.splitlines() if line.startswith("@ ")]
        if len(lines) > ROWS:
            lines[ROWS // 2:-ROWS // 2] = [f"... {len(lines) - ROWS} lines were left out"]
        row["lines"] = lines
        last = next((s.strip().removeprefix("@ ") for s in reversed((said + "\n" + wrong).splitlines()) if s.strip()), "it printed nothing")[:150]
        row["status"] = status
        if status == 0 and lines:
            late = sum(LATE in line for line in lines)
            row["result"] = f"ok, {late} not run" if late else "ok"
        elif status == SKIPPED:
            lines.append(last)
        elif status is None:
            row["result"] = "FAILED (cut off)" if self.cut else "FAILED (limit)"
            lines.append(f"killed after {row['seconds']} s: {last}")
        else:
            row["result"] = "FAILED (bits)" if status == DIFFERS else f"FAILED ({status})" if status else "FAILED (no row)"
            lines += [last] * (last not in lines)
        return row

    def kill(self):
        """Ends all processes that the child has started, also those that have left its session: as orphans they are this process's own."""
        asked, told, turns = time.monotonic() + 3 * self.scale, set(), 0
        while alive := descendants(self.child) - self.stuck:
            if time.monotonic() < asked:
                signal_all(alive - told, signal.SIGTERM)
                told |= alive
            elif turns == 300:  # such as one that waits within the driver
                self.stuck |= alive
            else:
                signal_all(alive, signal.SIGKILL)
                turns += 1
            time.sleep(0.01)
        self.child = None

    def trim(self):
        """Cuts what a part has left that is too large to carry: the disk is for the parts after it, too."""
        for file in files(self.kept):
            if os.path.getsize(file) > 64 << 20:
                os.truncate(file, 8 << 20)

    def go(self):
        wrong = False
        for part in PARTS:
            if part.stage != self.number or self.only and part.name not in self.only:
                continue
            if part.remedy and not wrong and not self.only:
                continue
            if self.number == 2 and wrong and not part.remedy:
                self.rows.append({"part": part.name, "result": "skipped", "seconds": 0.0, "before": "",
                                  "lines": ["the GPU computes other bits: what it does wrong comes first"]})
                continue
            if self.cut:
                return
            try:
                row = self.run(part)
            except OSError as e:  # no disk, no memory, no files: another part may need less
                row = {"part": part.name, "result": "FAILED (system)", "seconds": 0.0, "lines": [str(e)[:150]], "before": ""}
            self.rows.append(row)
            wrong = wrong or row.get("status") == DIFFERS
            self.pack()

    def table(self):
        """The table as a person reads it."""
        head = f"stage {self.number} on {'the fake driver' if self.fake else self.card}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC"
        failed = [r["part"] for r in self.rows if r["result"].startswith("FAILED")]
        late = [r["part"] for r in self.rows if any(LATE in line for line in r["lines"])]
        head += f": {sum(r['result'] == 'ok' for r in self.rows)} parts ok, {len(failed)} failed" + "".join(" " + f for f in failed)
        head += f"; no time was left for all of {', '.join(late)}" if late else ""
        lines = [head, *self.notes()]
        if failed:
            lines.append(f"all that a part printed is in stage{self.number}/PART.txt and PART.err of results.tgz")
        most = {p.name: p.lines for p in PARTS if p.stage == self.number}
        for r in self.rows:
            shown = r["lines"][:most[r["part"]]]
            if len(r["lines"]) > len(shown):
                shown[-1:] = [f"... {len(r['lines']) - len(shown) + 1} lines more in table.json", r["lines"][-1]]
            lines.append(f"{r['part']:<13} {r['result']:<15} {r['seconds']:>6.1f} s  {shown[0] if shown else ''}".rstrip())
            lines += ["    " + s for s in shown[1:]]
        lines.append("card before each part:")
        lines += [f"  {r['part']:<13} {r['before'].split(',', 2)[-1].strip() if r['before'].count(',') > 7 else r['before']}"
                  for r in self.rows if r["before"]]
        whole = "\n".join(lines)
        return whole if len(whole) <= PRINTED else whole[:PRINTED] + "\n... table.txt in results.tgz is whole"

    def notes(self):
        return [n for n in (self.note, f"the stage was cut short: {self.cut}" if self.cut else "", self.unpacked) if n]

    def pack(self):
        """Writes results anew, each file whole, and returns the table. What cannot be written stays as it was, and does not end the stage."""
        document = {"stage": self.number, "card": self.card, "fake": self.fake, "note": "; ".join(self.notes()), "rows": self.rows}
        self.unpacked = ""
        for name, content in zip(FILES, (self.table() + "\n", json.dumps(document, indent=1), None)):
            file = os.path.join(self.results, name)
            try:
                os.makedirs(self.results, exist_ok=True)  # a part may have removed it
                if content is None:
                    self.archive(file + ".new")
                    os.replace(file + ".new", file)
                else:
                    write(file, content)
            except OSError as e:
                self.unpacked = f"results are not whole: {e.filename or self.results}: {e.strerror or e}: make room, or name another folder"
                try:
                    os.remove(file + ".new")
                except OSError:
                    pass
        return self.table()

    def archive(self, file):
        """Packs what the parts have left and the table, at most 15 MiB (16 MiB of a file come back), the smallest files first."""
        all = sorted(files(self.kept), key=os.path.getsize)
        for most in 64 << 20, 14 << 20:
            total = 0
            with tarfile.open(file, "w:gz", compresslevel=4) as t:
                t.add(os.path.join(self.results, FILES[0]), arcname=f"stage{self.number}/table.txt")
                for f in all:
                    total += os.path.getsize(f) + 1024  # with its head and its padding
                    if total > most:
                        break
                    t.add(f, arcname=os.path.join(f"stage{self.number}", os.path.relpath(f, self.kept)))
            if os.path.getsize(file) <= 15 << 20:
                return


def prctl(option, value):
    """Asks the kernel for something that Python has no name for."""
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def descendants(child=None):
    """The processes below this one that run. Those that have ended are waited for, but not a child, whose status is wanted."""
    below = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                state, parent = f.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        below.setdefault(int(parent), []).append((int(pid), state))
    found, todo = set(), [os.getpid()]
    while todo:
        parent = todo.pop()
        for pid, state in below.get(parent, ()):
            todo.append(pid)
            if state not in b"ZX":
                found.add(pid)
            elif child and pid == child.pid:
                child.poll()
            elif parent == os.getpid():
                try:
                    os.waitpid(pid, os.WNOHANG)
                except OSError:
                    pass
    return found


def signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def files(folder):
    """The plain files below a folder."""
    found = (os.path.join(d, f) for d, _, names in os.walk(folder) for f in names)
    return [f for f in found if os.path.isfile(f) and not os.path.islink(f)]


def text(file):
    """A file as text, of a large one its first and last 4 MiB."""
    if not os.path.isfile(file):
        return ""
    with open(file, "rb") as f:
        head = f.read(4 << 20)
        f.seek(max(f.tell(), os.path.getsize(file) - (4 << 20)))
        return (head + f.read(4 << 20)).decode(errors="replace")


def write(file, content):
    with open(file + ".new", "w", encoding="utf-8", errors="replace") as f:
        f.write(content)
    os.replace(file + ".new", file)


def no_gpu():
    """Why there is certainly no GPU here, or "": anything else that is wrong with the driver is for the parts to tell."""
    try:
        done = subprocess.run([sys.executable, "-c", CARD], stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == NO_GPU else ""


def alone():
    """Ends the program if another one runs in this folder; the file that is returned is to stay open."""
    os.makedirs(os.path.join(HERE, "work"), exist_ok=True)
    lock = open(os.path.join(HERE, "work", "lock"), "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"check.py: another check.py runs from {HERE}: wait until it has ended, or unpack the archive once more elsewhere")
    return lock


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("stage", type=int, choices=(1, 2, 3))
    p.add_argument("results", nargs="?", default=os.environ.get("RESULTS") or "gpu-check-results")
    p.add_argument("--fake", action="store_true")
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--only", action="append", help="run this part alone; may come several times")
    args = p.parse_args()
    parts = [part.name for part in PARTS if part.stage == args.stage]
    for name in args.only or ():
        if name not in parts:
            p.error(f"argument --only: stage {args.stage} has no part {name}: choose from {', '.join(parts)}")
    if not os.access(os.path.join(HERE, "tensile"), os.X_OK):
        sys.exit(f"check.py: {os.path.join(HERE, 'tensile')} is missing: run make gpu-check where Go is, and unpack bin/gpu-check.tar.xz here")
    try:
        lock = alone()  # noqa: F841: both processes have it open until they end
        guard(LIMIT * args.scale, args.results)
        stage = Stage(args)
    except OSError as e:
        sys.exit(f"check.py: {e.filename} cannot be written ({e.strerror}): check.py writes to RESULTS, {args.results}, and to its own folder: "
                 "name or unpack it where that can be done")

    def stop(number, _):
        stage.cut = f"{signal.Signals(number).name} came"
    for number in SIGNALS:
        signal.signal(number, stop)
    stage.note = "" if args.fake else no_gpu()
    if stage.note:
        stage.only = ["machine"]
    stage.go()
    table = stage.pack()
    print(table.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding), flush=True)
    sys.exit(1 if stage.notes() or any(r["result"].startswith("FAILED") for r in stage.rows) else 0)


def guard(limit, results):
    """Goes on as two processes, and returns in one of them, which carries out the stage. The other waits for it, kills it at the limit, and
    ends what it leaves. When that one is killed, the first gets SIGTERM: so nothing is left of a stage that is killed."""
    own = os.getpid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    worker = os.fork()
    if not worker:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != own:
            sys.exit(1)
        return
    for number in SIGNALS:
        signal.signal(number, lambda n, _: os.kill(worker, n))
    signal.signal(signal.SIGALRM, lambda *_: os.kill(worker, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, limit)
    _, status = os.waitpid(worker, 0)
    for number in (signal.SIGALRM, *SIGNALS):
        signal.signal(number, signal.SIG_IGN)
    for _ in range(300):
        if not (alive := descendants()):
            break
        signal_all(alive, signal.SIGKILL)
        time.sleep(0.01)
    if os.WIFSIGNALED(status):
        print(f"check.py: the stage was killed by signal {os.WTERMSIG(status)}: {results} has the results of the parts that had ended", flush=True)
    sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


if __name__ == "__main__":
    main()
