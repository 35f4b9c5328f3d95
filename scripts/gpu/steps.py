"""steps.py PART: what the parts of check.py do that are more than one command. A line that begins with @ is for the table."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FAKE = bool(os.environ.get("GPU_CHECK_FAKE"))
WORK = os.environ.get("GPU_CHECK_WORK", os.path.join(HERE, "work"))
END = time.monotonic() + float(os.environ.get("GPU_CHECK_LIMIT", "60")) - 2
TENSILE = os.path.join(HERE, "tensile")
DEVICE = ["--device", "cuda"] + (["--fake"] if FAKE else [])
SKIPPED, DIFFERS = 77, 3
MODEL = os.path.join(WORK, "model.json")


def skip(why):
    print(why)
    sys.exit(SKIPPED)


def left():
    return max(0.5, END - time.monotonic())


def run(words, limit=None, env=None, name=None):
    """Runs a command and returns its status, None at the limit, and what it printed; all of it is kept in a file of its name."""
    print("$", " ".join(words), flush=True)
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace",
                              timeout=min(limit or left(), left()), env=dict(os.environ, **(env or {})))
        status, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as e:
        status, out, err = None, (e.stdout or b"").decode(errors="replace"), (e.stderr or b"").decode(errors="replace")
    except OSError as e:
        status, out, err = 127, "", f"{words[0]}: {e.strerror or e}"
    if name:
        with open(name + ".out", "w") as f:
            f.write(out)
    elif len(out) < 200000:
        print(out)
    if err:
        print(err[-20000:], file=sys.stderr, flush=True)
    return status, out, err


def why(status, out, err):
    last = next((s.strip() for s in reversed((out + "\n" + err).splitlines()) if s.strip()), "nothing printed")
    return ("over its time" if status is None else f"status {status}") + ": " + last[:110]


def document(out):
    try:
        d = json.loads(out)
        return d if isinstance(d, dict) else {}
    except ValueError:
        return {}


def find(d, key):
    """The first value of a key anywhere in a document."""
    if isinstance(d, dict):
        if key in d:
            return d[key]
        d = list(d.values())
    if isinstance(d, list):
        for x in d:
            got = find(x, key)
            if got is not None:
                return got
    return None


def warm():
    if not FAKE:
        run([sys.executable, os.path.join(HERE, "card.py"), "warm", "2"], 15)


def card(word):
    sys.exit(subprocess.call([sys.executable, os.path.join(HERE, "card.py"), word]))


def machine():
    for words in (["uname", "-a"], ["date"], ["nproc"], ["free", "-m"], ["df", "-h"], ["cat", "/proc/meminfo"], ["bash", "-c", "ulimit -a"],
                  ["ldconfig", "-p"], ["bash", "-c", "ls -l /dev/nvidia*"], ["nvcc", "--version"], [TENSILE, "--version"], ["nvidia-smi", "-q"],
                  ["nvidia-smi", "topo", "-m"],
                  [sys.executable, "-c", "import torch;print(f'{torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}')"]):
        status, out, err = run(words, 4)
        if words[0] in (TENSILE, sys.executable, "nvcc") or words == ["nproc"]:
            line = next((s for s in reversed(out.splitlines()) if s.strip()), "") if status == 0 else "no: " + why(status, out, err)
            name = "torch" if words[0] == sys.executable else os.path.basename(words[0])
            print(f"@ {name}: {line.strip().removeprefix(name).strip()[:100]}")
    with open("/proc/meminfo") as f:
        print("@", ", ".join(" ".join(s.split()) for s in f if s.startswith(("MemTotal", "MemAvailable", "HugePages_Total"))))


def devices():
    took, d = [], {}
    for words in [TENSILE, "devices", "--json"], [TENSILE, "devices"]:
        begun = time.monotonic()
        status, out, err = run(words, 9, name=f"devices-{len(took)}")
        took.append(time.monotonic() - begun)
        d = d or document(out)
        if status != 0 or not d:
            print("@", why(status, out, err))
            sys.exit(1)
    print(f"@ {took[0]:.2f} s, again {took[1]:.2f} s")
    for line in out.splitlines():
        if line.strip() and not line.startswith("in virtual time"):
            print("@", line.rstrip()[:140])
    if not FAKE and not find(d, "gpus"):
        sys.exit("tensile devices lists no GPU")


def wanted():
    with open(os.path.join(HERE, "digests.txt")) as f:
        return [line.split(None, 1) for line in f.read().splitlines() if line.strip() and not line.startswith("#")]


def digests(rows=None, limit=None):
    """Compares digests with those of the interpreter, and stops at the first run that takes too long."""
    rows, same, differ, failed = rows or wanted(), 0, 0, 0
    for want, words in rows:
        status, out, err = run([TENSILE, "run", *words.split(), *DEVICE, "--no-calibrate", "--json"], limit)
        got = find(document(out), "digest")
        if got == want:
            same += 1
        elif status == 0 and got:
            differ += 1
            print(f"@ other bits: {words}: {got}, not {want}")
        else:
            failed += 1
            print(f"@ {words}: {why(status, out, err)}")
        if status is None:
            break
    print(f"@ {same} of {len(rows)} digests as committed")
    sys.stdout.flush()
    sys.exit(DIFFERS if differ else 1 if failed or not same else 0)


def digest():
    digests(wanted()[:1])


def hot():
    try:
        digests()
    except SystemExit as e:
        code = e.code
    words = ["lenet", "--batch", "16", "--iterations", "3"] if FAKE else ["resnet50", "--batch", "16", "--iterations", "60"]
    status, out, err = run([TENSILE, "run", *words, *DEVICE, "--budget", "60%", "--no-calibrate", "--compare", "--json"], name="train")
    d = document(out)
    print(f"@ {words[0]} at 60 %: " + (figures(d) if status == 0 and d else why(status, out, err)))
    sys.exit(code or (0 if status == 0 else 1))


def ops():
    """Names the first op of each network of digests.txt that writes something else than the interpreter."""
    wrong = late = 0
    for _, words in wanted():
        status, out, err = run([TENSILE, "debug", "ops", *words.split(), *DEVICE, "--against", os.path.join(HERE, "ops.txt")])
        same = status == 0 and re.search(r": all \d+ digests of \d+ ops are those of ", out)
        wrong += not same and status is not None
        late += status is None
        print("@", words.split()[0] + ":", "every op writes what it should" if same else
              "no time was left" if status is None else why(status, out, err), flush=True)
    if wrong or late:
        sys.exit(f"{wrong} networks have ops that write something else or cannot be carried out, {late} had no time")


def conformance():
    binary = os.path.join(HERE, "conformance.test")
    if FAKE:
        skip("the suite runs on the fake driver in make test-gpu-fake")
    if not os.access(binary, os.X_OK):
        sys.exit("conformance.test is not here")
    status, out, err = run([binary, "-test.v", "-test.timeout", f"{int(left())}s"], name="conformance")
    passed = re.findall(r"^\s*--- PASS: (\S+)", out, re.M)
    failed = re.findall(r"^\s*--- FAIL: (\S+)", out, re.M)
    print(f"@ {len(passed)} checks passed, {len(failed)} failed {' '.join(failed[:4])}")
    for line in re.findall(r"^\s+\S+_test\.go:\d+: .*", out, re.M)[:6] if failed else ():
        print("@", line.strip()[:140])
    if status != 0 or failed:
        sys.exit(why(status, out, err))
    if not passed:
        sys.exit("no check ran: " + (re.findall(r".*needs an NVIDIA GPU.*", out) or ["the suite printed nothing"])[0].strip())


def assembly():
    if not shutil.which("ptxas"):
        skip("ptxas is not here")
    _, out, _ = run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], 5)
    asked = re.match(r"(\d+)\.(\d)\s", out)
    arch = "sm_" + ("".join(asked.groups()) if asked else "90")
    print("@ for", arch)
    bad = []
    for name in sorted(os.listdir(os.path.join(HERE, "ptx"))):
        cubin = name[:-4] + ".cubin"
        status, out, err = run(["ptxas", "-v", "-arch", arch, "-o", cubin, os.path.join(HERE, "ptx", name)], 10)
        registers = [int(n) for n in re.findall(r"Used (\d+) registers", out + err)]
        bad += [name] if status != 0 or not registers else []
        spilled = re.findall(r"Function properties for (\S+)\n\s*\d+ bytes stack frame, ([1-9]\d*) bytes spill stores", out + err)
        print(f"@ {name}: " + (f"at most {max(registers, default=0)} registers, spills {spilled or 'none'}" if status == 0 else
                               why(status, out, err)))
        if name in ("conv.ptx", "product.ptx") and status == 0 and shutil.which("cuobjdump"):
            run(["cuobjdump", "-sass", cubin], 10, name=name[:-4] + ".sass")
    sys.exit("ptxas says nothing of the registers of " + " ".join(bad) if bad else 0)


def sanitizers():
    tool = shutil.which("compute-sanitizer")
    if FAKE or not tool:
        skip("compute-sanitizer is for a GPU" if FAKE else "compute-sanitizer is not here")
    bad = []
    for check, words in (("memcheck", "lenet --batch 4 --iterations 1"), ("memcheck", "bert:1,16,2 --sequence 8 --vocabulary 150 --batch 4 --iterations 1"),
                         ("racecheck", "lenet --batch 4 --iterations 1"), ("initcheck", "lenet --batch 4 --iterations 1"),
                         ("synccheck", "lenet --batch 4 --iterations 1"),
                         ("racecheck", "gnmt:3,16 --sequence 4 --vocabulary 150 --batch 4 --iterations 1")):
        status, out, err = run([tool, "--tool", check, "--error-exitcode", "9", TENSILE, "run", *words.split(), *DEVICE, "--share", "--no-calibrate"],
                               20)
        said = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", out + err)
        print(f"@ {check} {words.split()[0]}: {(said or [why(status, out, err)])[0][:120]}")
        bad += [check] if status != 0 or not said else []
    sys.exit("reports, or none, of " + " ".join(bad) if bad else 0)


def rates():
    warm()
    status, out, err = run([TENSILE, "debug", "rates", *DEVICE])
    if status == 0 and "PRODUCT" not in out:
        sys.exit("debug rates printed no table")
    for line in out.splitlines() if status == 0 else ():
        if line.strip():
            print("@", line.rstrip()[:140])
    sys.exit(0 if status == 0 else why(status, out, err))


def calibrate():
    if FAKE:
        skip("the fake driver has no time of its own")
    warm()
    status, out, err = run([TENSILE, "calibrate", *DEVICE, "--time", "40s", "--output", MODEL + ".new", "--samples", "samples.json"])
    if status != 0:
        sys.exit(why(status, out, err))
    os.replace(MODEL + ".new", MODEL)
    shutil.copy(MODEL, "model.json")
    print("@", out.strip().splitlines()[-1][:140] if out.strip() else "it printed nothing")


def figures(d):
    keys = ("eor", "eor_low", "eor_high", "start_eor", "arena_bytes", "vanilla_peak_live_bytes", "stall_ms", "bit_identical")
    return ", ".join(f"{k} {x:.4g}" if isinstance(x, float) else f"{k} {x}" for k in keys for x in [find(d, k)] if x is not None)


def train():
    """EOR with limits, against a run without a plan, and what was predicted, with the model of calibrate where it is there. Each limit needs
    none of the others."""
    warm()
    nets = [("lenet", 16, 3)] if FAKE else [("resnet50", 16, 200), ("resnet50", 64, 60), ("vgg16", 16, 80)]
    model = [["--predictor", MODEL]] if os.path.exists(MODEL) else []
    failed = 0
    jobs = [(n, limit, m) for limit in ("60%", "80%", "40%") for n in nets for m in (model or [["--no-calibrate"]])]
    if model:
        jobs.append((nets[0], "60%", ["--no-calibrate"]))
    for (name, batch, turns), limit, how in jobs:
        if FAKE and limit == "40%":
            limit = "55%"  # less does not hold the largest step
        if left() < 6:
            print(f"@ {name} {batch} {limit}: no time was left")
            failed += limit == "60%"  # the first of each network are to run
            continue
        status, out, err = run([TENSILE, "run", name, "--batch", str(batch), "--iterations", str(turns), *DEVICE, "--budget", limit, *how,
                                "--compare", "--json"], max(5, left() / 2), name=f"{name}-{batch}-{limit[:-1]}-{how[0].strip('-')}")
        d = document(out)
        ok = status == 0 and find(d, "bit_identical") is True
        failed += not ok
        print(f"@ {name} b{batch} {limit} {how[0].strip('-')}: " + (figures(d) if d and status == 0 else why(status, out, err)), flush=True)
        if ok:
            status, out, err = run([TENSILE, "plan", name, "--batch", str(batch), *DEVICE, "--budget", limit, *how, "--json"], 15)
            print("@   predicted: " + (f"eor {find(document(out), 'eor') or 0:.4g}" if status == 0 else why(status, out, err)))
    sys.exit(f"{failed} trainings failed" if failed else 0)


def ncu():
    if FAKE or not shutil.which("ncu"):
        skip("ncu is for a GPU" if FAKE else "ncu is not here")
    status, out, err = run(["ncu", "--set", "full", "--clock-control", "none", "--csv", "--page", "raw", "--target-processes", "all",
                            "--kernel-name", "regex:conv_128|conv_dw_128|conv_64|product_nn_128|product_nt_64|batch_norm|stats_chunks|relu|softmax",
                            "--launch-count", "12", sys.executable, os.path.join(HERE, "kernels.py"), "once"], name="ncu")
    rows = [s for s in out.splitlines() if s.startswith('"')]  # of the table, its head and units among them
    print(f"@ {max(0, len(rows) - 2)} launches in ncu.out")
    sys.exit(0 if status == 0 and len(rows) > 2 else why(status, out, err))


def pages():
    card("pages")


def pin():
    card("pin")


def launch():
    card("launch")


def probe():
    card("probe")


def jobs():
    """Two jobs: one after the other, in processes, with --share, with gates."""
    warm()
    net = ["lenet", "lenet", "--batch", "8", "--iterations", "3"] if FAKE else ["resnet50", "vgg16", "--batch", "16", "--iterations", "40"]
    failed, seen = 0, set()
    for name, more in ("alone", None), ("processes", ["--isolate"]), ("share", ["--share"]), ("gates", ["--share", "--memory-sharing", "gates"]):
        begun = time.monotonic()
        if more is None:
            got = [run([TENSILE, "run", n, *net[2:], *DEVICE, "--no-calibrate", "--json", "--seed", str(1 + i)], name=f"alone-{i}")
                   for i, n in enumerate(net[:2])]  # the second of two jobs has the next seed
        else:
            got = [run([TENSILE, "run", *net, *DEVICE, "--no-calibrate", "--budget", "70%", "--json", *more], name=name)]
        bad = [why(*g) for g in got if g[0] != 0]
        digests = re.findall(r'"digest": *"([0-9a-f]+)"', "".join(g[1] for g in got))
        if not bad and len(digests) != 2:
            bad = ["no digests of two jobs: " + why(*got[0])]
        failed += bool(bad)
        if not bad:
            seen.add(tuple(digests))
        print(f"@ {name}: " + (bad[0] if bad else f"{time.monotonic() - begun:.1f} s, digests {' '.join(x[:8] for x in digests)}"))
    if len(seen) > 1:
        print("@ the jobs come to other bits together than alone")
    sys.exit(f"{failed} ways failed" if failed else 1 if len(seen) > 1 else 0)


def children(pid):
    """The processes that any thread of a process has started."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as f:
            yield from map(int, f.read().split())


def failures():
    """Memory that is taken, an executor that is killed, SIGTERM; and nothing is left on the card."""
    def used():
        status, out, _ = run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], 10)
        return int(out.split()[0]) if status == 0 and out.split() and out.split()[0].isdigit() else None
    before, failed = used(), 0
    net = ["lenet", "--batch", "16"] if FAKE else ["resnet50", "--batch", "64"]
    if not FAKE:
        ballast = subprocess.Popen([sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1])\nfrom cuda import Driver\nd = Driver()\n"
                                    "a = d.alloc(d.free()[0] - (3 << 30)); print('there', flush=True); sys.stdin.read()", HERE],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ballast.stdout.readline()
        status, out, err = run([TENSILE, "run", *net, "--iterations", "5", *DEVICE, "--no-calibrate"], 20)
        print(f"@ with 3 GiB free: {why(status, out, err)}")
        ballast.kill()
        ballast.wait()
    for name, number, child in ("SIGTERM", signal.SIGTERM, False), ("kill -9 of an executor", signal.SIGKILL, True):
        p = subprocess.Popen([TENSILE, "run", *net, "--iterations", "100000", *DEVICE, "--no-calibrate", "--isolate"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, errors="replace")
        try:
            p.wait(3 if FAKE else 8)
            print(f"@ {name}: the run ended before that")
            failed += 1
        except subprocess.TimeoutExpired:
            victim = p.pid
            if child:
                victim = next(children(p.pid), 0)
            if victim:
                os.kill(victim, number)
            else:
                print(f"@ {name}: there is no child process")
                failed += 1
        try:
            out = p.communicate(timeout=15)[0]
            ended = p.returncode
        except subprocess.TimeoutExpired:
            if not child:
                failed += 1
            p.kill()  # with a child that is killed the run may go on with another
            out, ended = p.communicate()[0], "the run goes on" if child else "still running after 15 s"
        print(f"@ {name}: {ended}: " + next((s.strip() for s in reversed(out.splitlines()) if s.strip()), "")[:110])
    if before is not None:
        time.sleep(2)
        after = used()
        print(f"@ memory used before {before} MiB, after {after} MiB")
        failed += after is None or after > before + 64
    sys.exit(f"{failed} failures were not met as they should" if failed else 0)


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")]()
