"""torch_bridge.py TENSILE [DEVICE] [--small] [--json FILE]: networks of gigabytes (ResNet-50 of batch 64, GPT-2 small of 8 x 1024 tokens,
ViT-B/16 of batch 64), alone and joined by TENSILE: without a limit, and in 80, 60 and 40 % of what they then need, with Adam as PyTorch makes
it, fused, and with foreach=False, on DEVICE, cuda or cpu. Each run is a process of its own. One that fails says why, and the others go on.
It prints a line per run and a table last: bits against those of the run alone under deterministic algorithms, milliseconds of an iteration,
what torch's allocator had in planned iterations and what it holds at the end, the plan, and allocations that were tried again or failed.
The exit status is 1 if a run failed. --small has small networks, each with one optimizer, in 60 %. GPU_CHECK_LIMIT is a limit of seconds.
The package tensile is in python beside this file, or in PYTHONPATH."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import torch_kit

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORKS = ("resnet50", "gpt2", "vit")
OPTIMIZERS = ("default", "fused", "foreach=False")
FIRST, REST = ("alone", "none", "60%"), ("80%", "40%")
# Optimizers and ways, in the order in which they would be missed if there was no time for all.
PASSES = (("default", FIRST), ("fused", FIRST), ("default", REST), ("foreach=False", FIRST), ("fused", REST), ("foreach=False", REST))
MIB = 1 << 20


class Runs:
    """Runs of scripts that end with torch_kit.train, one process each, compared with the run of the same script alone."""

    def __init__(self, tensile, most):
        self.tensile, self.most, self.rows, self.by_name = os.path.abspath(tensile), most, [], {}

    def compare(self, name, words, ways):
        """Runs a script in these ways, prints a line of each, and returns their rows by way."""
        rows = self.by_name.setdefault(name, {})
        for way in ways:
            row = rows[way] = {"name": name, "way": way, "result": "ok"}
            self.rows.append(row)
            left = torch_kit.END - 5 - time.monotonic()
            if left < 5:
                row["result"] = "not run: no time was left"
            else:
                self.run(row, words, rows, min(left, self.most))
            torch_kit.row(line(row))
        return rows

    def run(self, row, words, rows, limit):
        """Runs a script in one way, and fills its row."""
        free = {way: rows.get(way, {}) for way in ("alone", "none")}
        with tempfile.TemporaryDirectory() as d:
            file = os.path.join(d, "report.json")
            command = [sys.executable, *words]
            if row["way"] != "alone":
                bound = []
                if row["way"] != "none":
                    needs = free["none"].get("allocated") or free["alone"].get("allocated")
                    if not needs and free["alone"].get("result", "").startswith("not run"):
                        row["result"] = free["alone"]["result"]
                        return
                    if not needs:
                        row["result"] = "FAILED: no run before it tells what a limit is a part of"
                        return
                    row["limit"] = needs * int(row["way"][:-1]) // 100
                    bound = ["--memory", str(row["limit"])]
                command = [self.tensile, "join", "--report", file, *bound, "--", *command]
            status, out, err = process(command, limit)
            try:
                got = json.loads(out.splitlines()[-1])
                row.update(got)
                with open(file if row["way"] != "alone" else os.devnull) as f:
                    report = json.loads(f.read() or "{}")
            except (ValueError, IndexError, TypeError, OSError):
                got = report = {}
        if report:
            row.update(allocated=report["touched_bytes"] or got.get("allocated", 0), plan=report["plan_bytes"],
                       planned=report["planned_iterations"], faults=report["faults"], retried=report["retried_iterations"])
        said = [s.strip() for s in (out + "\n" + err).splitlines() if s.strip()] or ["it printed nothing"]
        if status == torch_kit.SKIPPED:
            row["result"] = "not run: " + (out.strip().splitlines() or said)[-1][:80]
        elif status is None and limit < self.most:
            row["result"] = f"not run: no time was left, killed after {limit:.0f} s"
        elif status != 0 or not got:
            row["result"] = "FAILED: " + (f"killed after {limit:.0f} s: " if status is None else f"status {status}: ") + said[-1][:80]
            print(f"--- {row['name']}, {row['way']}:\n{err[-20000:]}", file=sys.stderr, flush=True)
        elif not report and row["way"] != "alone":
            row["result"] = "FAILED: tensile join wrote no report"
        elif row["way"] != "alone" and not row["planned"]:
            why = [s for s in said if s.startswith("tensile:")] or said
            row["result"] = "FAILED: no plan was followed: " + why[-1].replace("tensile: ", "")[:80]
        elif row["way"] != "alone" and "bits" not in free["alone"]:
            row["result"] = "ok, bits not compared"
        elif row["bits"] != free["alone"].get("bits", row["bits"]):
            row["result"] = "FAILED: other bits than alone"


def process(words, limit):
    """Runs a command in a session of its own; returns its status, None at the limit, and what it printed."""
    env = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8", PYTHONFAULTHANDLER="1")
    env["PYTHONPATH"] = os.pathsep.join([os.path.join(HERE, "python"), env.get("PYTHONPATH", "")])
    p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace", env=env,
                         start_new_session=True)
    status = None
    try:
        out, err = p.communicate(timeout=limit)
        status = p.returncode
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
    return status, out, err


def line(row):
    """A run as a person reads it."""
    said = [row["result"]]
    if "ms" in row:
        said.append(f"{row['ms']:.1f} ms")
    said += [f"{key} {row[key] / MIB:.0f} MiB" for key in ("allocated", "reserved", "plan", "limit") if row.get(key)]
    said += [f"{row[key]} {key}" for key in ("planned", "retried", "retries", "ooms", "faults") if row.get(key)]
    return f"{row['name']} {row['way']}: " + ", ".join(said)


def table(rows):
    """A line per network and optimizer: the time alone, and that of the other ways as parts of it; and one per run that failed."""
    lines = []
    for name in dict.fromkeys(r["name"] for r in rows):
        ways = {r["way"]: r for r in rows if r["name"] == name}
        alone = ways.get("alone", {}).get("ms")
        cells = [f"alone {alone:.1f} ms" if alone else "alone -"]
        for way, r in ways.items():
            if way != "alone":
                eor = f"{r['ms'] / alone:.3f}" if alone and "ms" in r else "-"
                cells.append(f"{way} {eor}" + ("" if r["result"].startswith("ok") else " " + r["result"].split(":")[0]))
        lines.append(f"{name:<23} " + ", ".join(cells))
    return lines + [line(r) for r in rows if r["result"].startswith("FAILED")]


def finish(rows):
    """Prints the table and ends the program: with 1 if a run failed or none was there."""
    failed = [r for r in rows if r["result"].startswith("FAILED")]
    ran = [r for r in rows if r["result"].startswith("ok")]
    torch_kit.row("milliseconds of an iteration alone, and multiples of it:")
    for s in table(rows):
        torch_kit.row(s)
    torch_kit.row(f"{len(ran)} runs as they should, {len(failed)} failed, {len(rows) - len(ran) - len(failed)} not run")
    sys.exit(1 if failed or not ran else 0)


def script(name, how, device, small):
    """The script that each run is."""
    torch, device = torch_kit.torch_here(device)
    torch_kit.deterministic(torch)
    model, batch = torch_kit.network(torch, device, name, small=small)
    inputs = [t.pin_memory() if device == "cuda" else t for t in batch()]
    optimizer = torch_kit.adam(torch, model, how)

    def iteration(_):
        x, y = (t.to(device, non_blocking=True, copy=True) for t in inputs)
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()
    torch_kit.train(torch, device, model, optimizer, iteration, 20)


def main():
    if sys.argv[1:2] == ["script"]:
        return script(*sys.argv[2:5], "--small" in sys.argv)
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tensile")
    p.add_argument("device", nargs="?", default="cpu" if torch_kit.FAKE else "cuda", choices=("cuda", "cpu"))
    p.add_argument("--small", action="store_true", default=torch_kit.FAKE)
    p.add_argument("--json")
    args = p.parse_args()
    torch_kit.torch_here(args.device)
    runs = Runs(args.tensile, 60 if args.device == "cuda" else 600)
    more = ["--small"] if args.small else []
    for how, ways in [(how, FIRST) for how in OPTIMIZERS] if args.small else PASSES:
        for name in [NETWORKS[OPTIMIZERS.index(how)]] if args.small else NETWORKS:
            runs.compare(f"{name} {how}", [os.path.join(HERE, "torch_bridge.py"), "script", name, how, args.device, *more], ways)
            if args.json:
                with open(args.json, "w") as f:
                    json.dump(runs.rows, f, indent=1)
    finish(runs.rows)


if __name__ == "__main__":
    main()
