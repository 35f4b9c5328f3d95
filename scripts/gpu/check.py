"""check.py STAGE [RESULTS] [--fake] [--scale S] [--only PART]: one stage, 1 to 3, of the check of a machine with an NVIDIA GPU.

    1  does it run, and is it right
    2  how fast is what runs
    3  PyTorch's bridge, limits and failures

It wants the folder that `make gpu-check` packs, and nothing but Python's standard library. A stage ends within 570 seconds. Every part has
a limit of its own, at which all its processes are killed, and needs nothing of the part before it. After every part RESULTS (by default
$RESULTS, or else gpu-check-results) has results.tgz, all that the parts printed; table.txt, which also comes last on the standard output;
and table.json; what a run before this one has left there is moved to RESULTS/earlier-1 and so on. The exit status is 1 if a part failed.
Without a GPU that can be used one line says so, and the part machine alone runs. --fake goes through all parts on a driver without a GPU,
with small networks; make gpu-check-fake makes that driver. --scale multiplies all limits, for tests.
"""

import argparse
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


class Stop(Exception):
    """The stage's limit, or a signal, has come."""


def stop(number, _):
    raise Stop("the stage's limit came" if number == signal.SIGALRM else f"{signal.Signals(number).name} came")


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
        self.rows, self.asks, self.child, self.card, self.unpacked = [], True, None, "no card", ""

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
                 GPU_CHECK_LIMIT=str(limit), GPU_CHECK_PART=f"{os.getpid()}-{part.name}", PYTHONFAULTHANDLER="1",
                 PYTHONUNBUFFERED="1", XDG_CACHE_HOME=os.path.join(self.work, "cache"))
        e["PYTHONPATH"] = os.pathsep.join([os.path.join(HERE, "python"), e.get("PYTHONPATH", "")])
        if self.fake:
            e["GPU_CHECK_CUDA"] = os.path.join(HERE, "libfakecuda.so")
        e.setdefault("HOME", self.work)  # the driver keeps what it compiles there
        return e

    def start(self, words, part, limit, out, err):
        """Starts a process of a part, which run and clocks end by kill."""
        self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.kept,
                                      env=self.environment(part, limit), start_new_session=True)

    def clocks(self, part):
        """What nvidia-smi says of the card before a part, in a line. One that hangs once is not asked again."""
        if not self.asks:
            return ""
        try:
            self.start(
                ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu,memory.used,"
                 "compute_mode,mig.mode.current", "--format=csv,noheader"], part, 10, subprocess.PIPE, subprocess.STDOUT)
        except OSError:
            self.asks = False
            return "nvidia-smi is not here"
        with self.child.stdout as out:
            try:
                said = self.child.communicate(timeout=10 * self.scale)[0].decode(errors="replace").strip()[:200]
            except subprocess.TimeoutExpired:
                self.asks = False
                return "nvidia-smi hangs"
            finally:
                self.kill(part)
        if said.count(",") < 8:
            self.asks = False
            return "nvidia-smi says: " + said.split("\n")[0][:80]
        self.card = said.split(",")[0].strip()
        return said.split("\n")[0]

    def run(self, part):
        """Runs a part and returns its row."""
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
            self.start(words, part, limit, out, err)
            try:
                status = self.child.wait(limit)
            except (subprocess.TimeoutExpired, Stop) as e:
                status = None
                stopped = e if isinstance(e, Stop) else None
            self.kill(part)
        row["seconds"] = round(time.monotonic() - begun, 1)
        said, wrong = text(file + ".txt"), text(file + ".err")
        row["lines"] = [line[1:].strip()[:150] for line in said.splitlines() if line.startswith("@ ")]
        last = next((s.strip().removeprefix("@ ") for s in reversed((said + "\n" + wrong).splitlines()) if s.strip()), "it printed nothing")[:150]
        row["status"] = status
        if status == 0 and row["lines"]:
            late = sum(LATE in line for line in row["lines"])
            row["result"] = f"ok, {late} not run" if late else "ok"
        elif status == SKIPPED:
            row["lines"].append(last)
        elif status is None:
            row["result"] = "FAILED (limit)"
            row["lines"].append(f"killed after {row['seconds']} s: {last}")
            if stopped:
                self.rows.append(row)
                raise stopped
        else:
            row["result"] = "FAILED (bits)" if status == DIFFERS else f"FAILED ({status})" if status else "FAILED (no row)"
            row["lines"] += [last] * (last not in row["lines"])
        return row

    def kill(self, part):
        """Ends all processes of a part, also those that left its process group: they have its name in their environment."""
        mark = f"GPU_CHECK_PART={os.getpid()}-{part.name}\0".encode()
        for number in (signal.SIGTERM, signal.SIGKILL):
            alive = set()
            for name in os.listdir("/proc"):
                try:
                    with open(f"/proc/{name}/environ", "rb") as f:
                        if name.isdigit() and mark in f.read() + b"\0":
                            alive.add(int(name))
                except OSError:
                    continue
            for pid in alive:
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
            try:
                os.killpg(self.child.pid, number)
            except OSError:
                pass
            try:
                self.child.wait(3 * self.scale)
            except subprocess.TimeoutExpired:
                continue
            if not alive:
                break
            time.sleep(min(1.0, 3 * self.scale))
        self.child = None

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
            row = self.run(part)
            self.rows.append(row)
            wrong = wrong or row.get("status") == DIFFERS
            self.pack("")

    def table(self, note):
        """The table as a person reads it."""
        head = f"stage {self.number} on {'the fake driver' if self.fake else self.card}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC"
        failed = [r["part"] for r in self.rows if r["result"].startswith("FAILED")]
        late = [r["part"] for r in self.rows if any(LATE in line for line in r["lines"])]
        head += f": {sum(r['result'] == 'ok' for r in self.rows)} parts ok, {len(failed)} failed" + "".join(" " + f for f in failed)
        head += f"; no time was left for all of {', '.join(late)}" if late else ""
        lines = [head] + [n for n in (note, self.unpacked) if n]
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

    def pack(self, note):
        """Writes results anew, each file whole, and returns the table. A disk that is full does not end the stage."""
        try:
            self.write(note)
        except OSError as e:
            self.unpacked = f"results are not whole: {e.filename or self.results}: {e.strerror or e}: make room, or name another folder"
        return self.table(note)

    def write(self, note):
        self.unpacked = ""
        table = self.table(note)
        document = {"stage": self.number, "card": self.card, "fake": self.fake, "note": note, "rows": self.rows}
        write(os.path.join(self.kept, "table.txt"), table)
        write(os.path.join(self.results, FILES[0]), table + "\n")
        write(os.path.join(self.results, FILES[1]), json.dumps(document, indent=1))
        new = os.path.join(self.results, FILES[2] + ".new")

        def wanted(info):
            return None if info.isfile() and info.size > 64 << 20 else info
        with tarfile.open(new, "w:gz", compresslevel=4) as t:
            t.add(self.kept, arcname=f"stage{self.number}", filter=wanted)
        if os.path.getsize(new) > 15 << 20:  # 16 MiB of a file come back: the largest outputs stay here
            kept = sorted((os.path.join(d, f) for d, _, fs in os.walk(self.kept) for f in fs), key=os.path.getsize)
            with tarfile.open(new, "w:gz", compresslevel=4) as t:
                for f in kept:
                    if os.path.getsize(f) <= 1 << 20:
                        t.add(f, arcname=os.path.join(f"stage{self.number}", os.path.relpath(f, self.kept)))
        os.replace(new, os.path.join(self.results, FILES[2]))


def text(file):
    with open(file, "rb") as f:
        return f.read(8 << 20).decode(errors="replace")


def write(file, content):
    with open(file + ".new", "w") as f:
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
        lock = alone()
        stage = Stage(args)
    except OSError as e:
        sys.exit(f"check.py: {e.filename} cannot be written ({e.strerror}): check.py writes to RESULTS, {args.results}, and to its own folder: "
                 "name or unpack it where that can be done")
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, (LIMIT - 12) * args.scale))
    note = ""
    try:
        note = "" if args.fake else no_gpu()
        if note:
            stage.only = ["machine"]
        stage.go()
    except Stop as e:
        note = f"{note + '; ' if note else ''}the stage was cut short: {e}"
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(stage.pack(note), flush=True)
    sys.exit(1 if note or any(r["result"].startswith("FAILED") for r in stage.rows) else 0)


if __name__ == "__main__":
    main()
