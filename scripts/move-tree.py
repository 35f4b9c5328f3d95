#!/usr/bin/env python3
"""Moves the packages into sixteen folders (HOUSE.md, section 4) and rewrites what names them: imports, comments,
paths in tests, Makefile, scripts and pages. Run once at the root of a clean checkout; it does nothing where the
folders have moved."""
import os, re, subprocess

MOVES = [line.split() for line in """
external/sidecar executor/sidecar
onnx/cases bench/onnxcases
agent executor/agent
autodiff graph/autodiff
calibrate bench/calibrate
checkpoint data/checkpoint
cost graph/cost
deploy scripts/deploy
explain scheduler/explain
external models/external
lease device/lease
live observe/live
metrics observe/metrics
report observe/report
top observe/top
internal/page observe/page
internal/web observe/web
onnx models/onnx
passes models/passes
planner scheduler/planner
pool plan/pool
program plan/program
reduce executor/reduce
simulate controller/simulate
task models/task
timeline executor/timeline
weights data/weights
workload models/workload
internal/bus wire/bus
internal/leader wire/leader
internal/localbus wire/localbus
internal/recording wire/recording
internal/limit wire/limit
internal/clock wire/clock
internal/journal wire/journal
internal/backup wire/backup
internal/local controller/local
internal/replay scheduler/replay
internal/bayes scheduler/bayes
internal/randjobs scheduler/randjobs
internal/randgraph models/randgraph
internal/smallnet models/smallnet
internal/randplan plan/randplan
internal/npztest data/npztest
internal/rooted data/rooted
internal/ptx device/ptx
internal/fakecuda device/cuda/fakecuda
internal/cudaabi device/cuda/cudaabi
internal/lifelock device/lifelock
internal/text graph/text
internal/invariants graph/invariants
""".strip().splitlines()]
NEW = dict(MOVES)


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def moved(path):
    """The path below the root after the move."""
    parts = path.split("/")
    for n in range(len(parts), 0, -1):
        head = "/".join(parts[:n])
        if head in NEW:
            return "/".join([NEW[head]] + parts[n:])
    return path


before = run("git", "ls-files").split("\n")
folders = {"/".join(p.split("/")[:n]) for p in before for n in range(1, p.count("/") + 1)}
for old, new in MOVES:
    if os.path.isdir(old):
        os.makedirs(os.path.dirname(new), exist_ok=True)
        run("git", "mv", old, new)

OLDS = sorted(NEW, key=len, reverse=True)
ANY = "|".join(re.escape(o) for o in OLDS)
IMPORT = re.compile(r'"tensile/((?:%s)(?:/[A-Za-z0-9_/]*)?)"' % ANY)
# A path from the root: after a quote, a space, a bracket, "./" or "tensile/", never after a letter or another folder.
ROOTED = re.compile(r"(?<![A-Za-z0-9_./$<>{}-])(\./|tensile/)?((?:%s))/(?=[A-Za-z0-9_.*-])" % ANY)
WHOLE = re.compile(r"(?<![A-Za-z0-9_./-])(%s)(?![A-Za-z0-9_/-])" % "|".join(o for o in OLDS if "/" in o))
DOTTED = re.compile(r"\./(%s)(?![A-Za-z0-9_/-])" % ANY)
RELATIVE = re.compile(r'"((?:\.\./)+)([A-Za-z0-9_][A-Za-z0-9_./-]*)?"|"((?:\.\./)*\.\.)"(?!,)')
JOINED = re.compile(r'filepath\.Join\(((?:"\.\.", )+)("(?:[A-Za-z0-9_.-]+)"(?:, "[A-Za-z0-9_.-]+")*)')
LINK = re.compile(r"\]\(((?:\.\./)+)([A-Za-z0-9_./-]+)(#[^)]*)?\)")
# Text that looks like a path of ours and is none, and files in which ".." is what is tested.
OTHER = re.compile(r'"onnx/(node|light)"|onnx/backend|deploy/tensile-controller|"\.\./tensile"')
KEEP = {"checkpoint/identity_test.go", "internal/rooted/files_test.go", "lease/process/hostile_test.go"}


def rooted(m):
    lead, old = m.group(1) or "", m.group(2)
    return lead + NEW[old] + "/"


def relative(path, target, ups):
    """A path that was relative to the old folder of a file, relative to its new one."""
    old_dir = os.path.dirname(path)
    full = os.path.normpath(os.path.join(old_dir, "../" * ups, target))
    if full.startswith(".."):  # beside the project: the shared folder
        rest = full.lstrip("./")
        new_dir = os.path.dirname(moved(path))
        return "../" * (new_dir.count("/") + 2) + rest
    top = full.split("/")[0]
    if full != "." and full not in before and full not in folders and os.path.dirname(full) not in folders:
        return None
    return os.path.relpath(moved(full), os.path.dirname(moved(path)))


TEXT = (".go", ".md", ".sh", ".py", ".yml", ".yaml", ".json", ".txt", ".c", ".h", ".cu", ".js", ".html", ".service",
        ".txtar", ".toml", ".xsl")
for path in before:
    new = moved(path)
    if not path or not os.path.isfile(new) or os.path.islink(new) or path.startswith("bench/results/"):
        continue
    name = os.path.basename(path)
    if not (name.endswith(TEXT) or name in ("Makefile", "NOTICE", "Containerfile", ".gitignore", "run", "go.mod")):
        continue
    if "testdata/" in path and not name.endswith((".go", ".py")) and path not in ("internal/mutants/survivors.txt",):
        continue
    try:
        was = open(new, encoding="utf-8").read()
    except UnicodeDecodeError:
        continue
    text = was
    if name.endswith(".go"):
        text = IMPORT.sub(lambda m: '"tensile/' + moved(m.group(1)) + '"', text)

        def turned(m):
            if m.group(3) is not None:
                got = relative(path, "", m.group(3).count(".."))
            else:
                got = relative(path, m.group(2) or "", m.group(1).count("../"))
                if m.group(2) == "tensile":
                    got = None
            return m.group(0) if got is None else '"' + got + '"'

        if name.endswith("_test.go") and path not in KEEP:
            text = RELATIVE.sub(turned, text)

            def joined(m):
                target = "/".join(p.strip('"') for p in m.group(2).split(", "))
                got = relative(path, target, m.group(1).count(".."))
                if got is None:
                    return m.group(0)
                return "filepath.Join(" + ", ".join('"%s"' % p for p in got.split("/"))
            text = JOINED.sub(joined, text)
    held = []
    text = OTHER.sub(lambda m: held.append(m.group(0)) or "\0%d\0" % (len(held) - 1), text)
    if name.endswith(".md"):
        def linked(m):
            got = relative(path, m.group(2), m.group(1).count("../"))
            return m.group(0) if got is None else "](" + got + (m.group(3) or "") + ")"
        text = LINK.sub(linked, text)
    text = WHOLE.sub(lambda m: NEW[m.group(1)], text)
    text = ROOTED.sub(rooted, text)
    text = re.sub("\0(\\d+)\0", lambda m: held[int(m.group(1))], text)
    text = WHOLE.sub(lambda m: NEW[m.group(1)], text)
    if not name.endswith(".go") or "mutants" in path:
        text = DOTTED.sub(lambda m: "./" + NEW[m.group(1)], text)
    if text != was:
        open(new, "w", encoding="utf-8").write(text)
