"""Runs the scripts of ../shared/torch2 (cases.py and more.py) alone, joined, within 60 % of what that touched, with random
plans, and with random moves of what autograd saves, and prints a line for each:

    python matrix.py TENSILE [name...]

TENSILE is the binary. The scripts start in a server that forks, in which torch is imported once. At the end a line counts
them: those that end otherwise than alone ("crash"), have other bits, had more than their limit ("over"), had a plan in 8 of 10
iterations after the tenth ("planned"), and were passive. The exit status is 1 if one has crashed, has other bits, has passed its
limit without a line, or was not planned and is not in UNPLANNED.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CASES = os.path.join(ROOT, "..", "shared", "torch2")
SEEDS = 2
AFTER = 10  # iterations, from which on ten are looked at
SHARE = 0.6
LIMIT_S = 300  # of one script

UNPLANNED = {  # why -> the scripts that have no plan in 8 of 10 iterations after the tenth
    "what torch compiles is planned for by what it saves alone, which is too little here":
        "compile_inplace_before compile_inplace_after compile_sub compile_wrapped_after compile_wrapped_joined "
        "compile_inductor_after compile_loss compile_opt cond_hop passive_then_compile",
    "training over several processes": "ddp fsdp2",
    "a sparse tensor has no storage": "sparse_embedding",
    "no two iterations are alike": "lbfgs lstm_packed",
    "the floor is above 60 %, as one op needs more": "orthogonal sdpa_math sdpa_flash conv_bn",
    "other ops begin at the twelfth, as the model gets another type, and have a plan from the fourth of them on":
        "todtype_after",
}

# Runs one script in the server; as h.py does, and prints which of its iterations had a plan.
CASE = """
import json, os, random, sys
import h
old, each = h.join, []
def join(model, optimizer):
    old(model, optimizer)
    if h._joined and not each:
        each.append(None)
        planner = h._joined[0].planner
        told = planner.iteration
        def iteration(session, graph, plan, wall):
            each.append(bool(graph and plan and session.player.program is not None))
            return told(session, graph, plan, wall)
        planner.iteration = iteration
h.join = join
if os.environ.get("CASE_SAVED"):
    from tensile import away
    draw = random.Random(int(os.environ["CASE_RAND"]))
    def choose(iteration, kind, slots, most):
        return [c for c in away.candidates(iteration, kind, slots) if draw.random() < 0.7]
    away.choose = choose
    graph = h.Rand.graph
    def planned(self, number, iteration):
        graph(self, number, iteration)
        self.next["plan_bytes"] = 1
    h.Rand.graph = planned
if __name__ == "__main__":
    import cases, more
    try:
        h.main({**cases.C, **more.M})
    finally:
        print("EACH " + json.dumps(each[1:]), flush=True)
"""


class Runner:
    """The server, and how scripts are started in it."""

    def __init__(self, tensile):
        self.tensile = tensile
        self.dir = tempfile.TemporaryDirectory()
        self.script = os.path.join(self.dir.name, "case.py")
        with open(self.script, "w") as f:
            f.write(CASE)
        self.path = os.path.join(self.dir.name, "socket")
        self.env = dict(os.environ, OMP_NUM_THREADS="1", PROJECT=ROOT, PYTHONPATH=f"{CASES}:{ROOT}/python",
                        PYTHONDONTWRITEBYTECODE="1", TORCHINDUCTOR_CACHE_DIR=f"{self.dir.name}/inductor",
                        CASE_SERVER=self.path)
        self.server = subprocess.Popen([sys.executable, os.path.join(CASES, "server.py"), self.path], env=self.env,
                                       stdout=subprocess.PIPE, text=True)
        self.server.stdout.readline()

    def close(self):
        self.server.kill()
        self.server.wait()
        self.server.stdout.close()
        self.dir.cleanup()

    def run(self, name, *command, **env):
        """Returns the exit status, what h.py printed, which iterations had a plan, Tensile's lines and all of stderr."""
        client = [sys.executable, "-S", "-E", os.path.join(CASES, "client.py"), self.script, name]
        if name.startswith("spawn"):  # whose children import the script that was started, which is the server's
            client = [sys.executable, self.script, name]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            p = subprocess.Popen([*command, *client], env=dict(self.env, **env), stdout=out, stderr=err,
                                 cwd=self.dir.name)
            try:
                status = p.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
                status = "timeout"
            out.seek(0)
            err.seek(0)
            lines, err = out.read().splitlines(), err.read()
        found = {k: json.loads(line[len(k) + 1:]) for line in lines for k in ("RESULT", "EACH")
                 if line.startswith(k + " ")}
        return status, found.get("RESULT"), found.get("EACH", []), [
            line[9:] for line in err.splitlines() if line.startswith("tensile: ")], err

    def joined(self, name, *options):
        """Returns what run does, and the report."""
        report = os.path.join(self.dir.name, "report.json")
        if os.path.exists(report):
            os.remove(report)
        done = self.run(name, self.tensile, "join", "--report", report, *options, "--", CASE_JOIN="1")
        try:
            with open(report) as f:
                return (*done, json.load(f))
        except (OSError, ValueError):
            return (*done, {})


def ends(status, result, err, alone):
    """Returns how a run ended that it alone does not: '' or a word of a crash."""
    if result is None or status != alone[0] or result["err"] != alone[1]["err"]:
        last = (result or {}).get("err") or next((line for line in reversed(err.splitlines())
                                                 if re.match(r"\w*(Error|Exception)|Fatal", line)), "")
        return f"status {status} {last}".strip()[:200]
    return ""


def bits(result, alone):
    if result["hash"] == alone["hash"]:
        return ""
    return "@" + str(next((i for i, (a, b) in enumerate(zip(alone["each"], result["each"])) if a != b), "state"))


def look(runner, name):
    """Runs one script in all ways, and returns what was found."""
    row = {"case": name, "crash": [], "bits": [], "over": False, "planned": None, "of": None, "lines": []}
    status, alone, _, _, err = runner.run(name)
    row["alone"] = alone["err"] if alone else f"status {status}"
    if alone is None:
        row["crash"].append(f"alone: status {status}")
        return row

    def take(way, done):
        status, result, each, lines, err = done[:5]
        crash = ends(status, result, err, (alone_status, alone))
        if crash:
            row["crash"].append(f"{way}: {crash}")
        elif bits(result, alone):
            row["bits"].append(f"{way}: {bits(result, alone)}")
        return result, each, lines

    alone_status = status
    done = runner.joined(name)
    result, each, lines = take("joined", done)
    report = done[5]
    need = report.get("touched_bytes") or report.get("plan_bytes") or report.get("claim_bytes") or 0
    row["need"] = need
    if need:
        limit = int(need * SHARE)
        done = runner.joined(name, "--memory", str(limit), "--anyway")
        result, each, lines = take("60 %", done)
        report = done[5]
        row["limit"], row["touched"] = limit, report.get("touched_bytes")
        row["over"] = (report.get("touched_bytes") or 0) > limit
        row["silent"] = row["over"] and not any("MORE THAN THE LIMIT" in line for line in lines)
    row["hooks"] = report.get("hooks_iterations", 0)
    window = each[AFTER:AFTER + 10]
    row["planned"], row["of"], row["all"] = sum(window), len(window), f"{sum(each)}/{len(each)}"
    row["lines"] = lines
    row["passive"] = [line for line in lines if line.startswith("passive")]
    for seed in range(1, SEEDS + 1):
        take(f"random {seed}", runner.run(name, CASE_RAND=str(seed)))
        take(f"saved {seed}", runner.run(name, CASE_RAND=str(seed), CASE_SAVED="1"))
    return row


def text(row):
    parts = [f"{row['case']:30}"]
    parts += ["CRASH " + c for c in row["crash"]] + ["BITS " + b for b in row["bits"]]
    if row["over"]:
        parts.append(f"OVER {row['touched']}/{row['limit']}")
    if row["of"] is not None:
        parts.append(f"planned {row['planned']}/{row['of']} ({row['all']}), {row['hooks']} by hooks")
    if row["alone"]:
        parts.append(f"alone: {row['alone'][:80]}")
    parts += [line[:150] for line in row["lines"] if not planned(row) and "is in force" not in line][:2]
    return " | ".join(parts)


def planned(row):
    return bool(row["of"]) and row["planned"] >= 0.8 * row["of"]


def main():
    runner = Runner(os.path.abspath(sys.argv[1]))
    rows = []
    try:
        names = sys.argv[2:]
        if not names:
            listed = subprocess.run([sys.executable, "-c", "import cases, more; print(*cases.C, *more.M)"], check=True,
                                    env=runner.env, capture_output=True, text=True)
            names = listed.stdout.split()
        for name in names:
            rows.append(look(runner, name))
            print(text(rows[-1]), flush=True)
    finally:
        runner.close()
    reasons = {name: why for why, names in UNPLANNED.items() for name in names.split()}
    wrong = [f"{r['case']} passed its limit without a line" for r in rows if r.get("silent")]
    wrong += [f"{r['case']} was not planned" for r in rows if not r["alone"] and not planned(r) and r["case"] not in reasons]
    for line in wrong:
        print("WRONG " + line)
    count = {"crash": sum(bool(r["crash"]) for r in rows), "bits": sum(bool(r["bits"]) for r in rows),
             "over": sum(r["over"] for r in rows), "planned": sum(map(planned, rows)),
             "passive": sum(bool(r.get("passive")) for r in rows)}
    print(f"{len(rows)} scripts: " + ", ".join(f"{k} {v}" for k, v in count.items()))
    sys.exit(bool(count["crash"] or count["bits"] or wrong))


if __name__ == "__main__":
    main()
