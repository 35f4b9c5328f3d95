"""Compares ways to train a PyTorch model in less memory: the most bytes that the allocator has, and user and system CPU
time.

    python torch_ways.py TENSILE NET [BLOCKS] [ITERATIONS]

NET is as in torch_blocks.py; checkpoints are those of transformers (resnet50 has none). Each way is a process of its
own; blocks of ITERATIONS (5) alternate between all, BLOCKS (30) times after one that is left out. Tensile trains by hooks
and by a look at each op, each within the peak of every way that has less than plain (on a CPU save_on_cpu has not: it
keeps what it is given). A row has the peak, the mean of the blocks' ratios to plain with its 95 % interval, and whether the
losses are those of plain, or of compiled where that is so. Nothing else should run meanwhile.
"""

import contextlib
import json
import math
import os
import resource
import statistics
import sys
import tempfile

from torch_blocks import Process, network

COMPILED = {"compiled": None, "budget .5": 0.5, "budget .2": 0.2}  # activation_memory_budget
ALONE = ["plain", "checkpoint", "save_on_cpu", *COMPILED]


def child(name, way):
    """Trains as many iterations as each line of stdin says, and prints CPU seconds, losses, and the peak since the begin."""
    import torch

    import tensile
    from tensile import saved
    from tensile.events import Events, highest
    events = Events().start() if way in ALONE else None
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model, loss = network(name, torch)
    around = contextlib.nullcontext
    if way == "checkpoint":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.train()
    elif way == "save_on_cpu":
        around = torch.autograd.graph.save_on_cpu
    elif way in COMPILED:
        if COMPILED[way] is not None:
            torch._functorch.config.activation_memory_budget = COMPILED[way]
        model.compile(backend="aot_eager_decomp_partition")
    elif way == "ops":
        saved.AVAILABLE = False  # so that each op is looked at
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    if way not in ALONE:
        tensile.join(model, optimizer)
    done = 0
    print("ready", flush=True)
    for line in sys.stdin:
        begun, losses = resource.getrusage(resource.RUSAGE_SELF), []
        for _ in range(int(line)):
            optimizer.zero_grad()
            with around():
                out = loss(done)
            out.backward()
            optimizer.step()
            losses.append(out.item())
            done += 1
        end = resource.getrusage(resource.RUSAGE_SELF)
        peak, events = highest(events.stop())[0] if events else 0, None
        print(json.dumps([end.ru_utime + end.ru_stime - begun.ru_utime - begun.ru_stime, losses, peak]), flush=True)


def main():
    tensile, name, blocks, iterations = (sys.argv[1:] + ["30", "5"][len(sys.argv) - 3:])[:4]
    blocks, iterations = int(blocks), int(iterations)
    script = [sys.executable, os.path.abspath(__file__), "child", name]
    ways = [w for w in ALONE if w != "checkpoint" or name != "resnet50"]
    processes = {w: Process([*script, w]) for w in ways}
    first = {w: p.block(iterations) for w, p in processes.items()}
    peaks = {w: peak for w, (_, _, peak) in first.items()}
    with tempfile.TemporaryDirectory() as reports:
        joined = {}
        for like in [w for w in ways if peaks[w] < 0.99 * peaks["plain"]]:
            for way in "hooks", "ops":
                row = f"{way} at {like}"
                joined[row] = os.path.join(reports, row)
                processes[row] = Process([tensile, "join", "--memory", str(peaks[like]), "--anyway", "--report", joined[row],
                                          "--", *script, way])
                first[row] = processes[row].block(iterations)
        losses = {w: list(found) for w, (_, found, _) in first.items()}
        seconds = {w: [] for w in processes}
        for n in range(blocks + 1):
            order = list(processes)
            for w in order[n % len(order):] + order[:n % len(order)]:
                cpu, found, _ = processes[w].block(iterations if n else 20)  # the first: recording and planning
                losses[w] += found
                if n:
                    seconds[w].append(cpu)
        for p in processes.values():
            p.close()
        for w, path in joined.items():
            with open(path) as f:
                told = json.load(f)
            peaks[w] = told["touched_bytes"]
            if not told["planned_iterations"]:
                print(f"{w}: no plan meets the limit: {told}", file=sys.stderr)
    print(f"{name}, {blocks} blocks of {iterations}\n{'way':24} {'MiB':>8} {'ratio':>7}  95 % interval    same losses")
    for w in processes:
        ratios = [a / b for a, b in zip(seconds[w], seconds["plain"])]
        mean, half = statistics.mean(ratios), 1.96 * statistics.stdev(ratios) / math.sqrt(len(ratios))
        same = losses[w] == losses["compiled" if w in COMPILED else "plain"]
        print(f"{w:24} {peaks[w] / 2 ** 20:8.1f} {mean:7.3f}  {mean - half:.3f} to {mean + half:.3f}  "
              f"{'yes' if same else 'no'}")


if __name__ == "__main__":
    if sys.argv[1] == "child":
        child(*sys.argv[2:4])
    else:
        main()
