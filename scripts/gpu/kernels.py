"""kernels.py [once]: the kernels of tensile against torch's, for the distinct products, convolutions and the slowest others of ResNet-50
(batch 16) and GPT-2 small (8 x 1024): milliseconds of the GPU by events, on random data in three sets of memory, the median of 30. Torch has
float32 without TF32, TF32 and bfloat16. once: only launches of ours, for ncu. Without torch it times ours alone."""

import json
import os
import statistics
import sys

import card
from cuda import Driver, Error

FAKE = card.FAKE
KINDS = ("conv2d", "matmul", "linear", "softmax", "batch_norm", "layer_norm", "relu", "add", "adam", "gelu")
TURNS = 3 if FAKE else 30


def wanted(op):
    return any(k in op["kind"] for k in KINDS)


def work(op):
    """An order of how much an op does."""
    return op["count"] * sum(launch["grid"][0] * len(launch["args"]) for launch in op["launches"])


def ours(d, op, modules, stream):
    run = card.Run(d, op, modules, 1 if FAKE else 3, stream)
    begin, end = d.event(), d.event()
    took = []
    try:
        for _ in range(TURNS + 3):
            d.EventRecord(begin, stream)
            run()
            d.EventRecord(end, stream)
            d.sync(stream)
            took.append(d.ms(begin, end))
    finally:
        run.close()
    return statistics.median(took[3:])


def torch_call(torch, op, dtype):
    """What torch computes for the op, on its shapes: functions over three sets of memory, or None."""
    F, kind, a = torch.nn.functional, op["kind"], op["attrs"] or {}
    sets = [[torch.rand(shape or [1], device="cuda").sub_(0.5).to(dtype) for shape in op["in"]] for _ in range(3)]
    if kind.startswith("conv2d"):
        more = (a.get("stride") or [1, 1], a.get("pad") or [0, 0])
        back = torch.ops.aten.convolution_backward
        rest = (*more, [1, 1], False, [0, 0], 1)
        made = torch.empty(op["out"][0], device="cuda", dtype=dtype)
        return [{"conv2d": lambda s=s: F.conv2d(s[0], s[1], None, *more),
                 "conv2d_dx": lambda s=s: back(s[0], made, s[1], None, *rest, [True, False, False]),
                 "conv2d_dw": lambda s=s: back(s[1], s[0], made, None, *rest, [False, True, False])}.get(kind) for s in sets]
    simple = {"relu": lambda s: F.relu(s[0]), "add": lambda s: s[0] + s[1], "softmax": lambda s: F.softmax(s[0], -1),
              "gelu": lambda s: F.gelu(s[0]), "linear": lambda s: F.linear(*s), "linear_dx": lambda s: s[0] @ s[1],
              "matmul": lambda s: (s[0].mT if a.get("transpose_a") else s[0]) @ (s[1].mT if a.get("transpose_b") else s[1]),
              "linear_dw": lambda s: s[0].mT @ s[1] if s[0].shape[1] == op["out"][0][0] else s[1].mT @ s[0]}
    f = simple.get(kind)
    if not f or list(f(sets[0]).shape) != op["out"][0]:
        return None
    return [lambda s=s: f(s) for s in sets]


def theirs(torch, op, setting):
    dtype = torch.bfloat16 if setting == "bf16" else torch.float32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = setting == "tf32"
    calls = torch_call(torch, op, dtype)
    if not calls or not calls[0]:
        return None
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    took = []
    with torch.no_grad():
        for i in range(TURNS + 3):
            begin.record()
            calls[i % 3]()
            end.record()
            end.synchronize()
            took.append(begin.elapsed_time(end))
    return statistics.median(took[3:])


def main(once):
    d = Driver()
    modules = {name: d.load(ptx, log=False)[0] for name, ptx in card.texts()}
    stream = d.stream()
    nets = ("lenet",) if FAKE else ("resnet50", "gpt2")
    if once:
        for name in nets:
            for op in card.ops(name):
                if wanted(op):
                    run = card.Run(d, op, modules, 1, stream)
                    run()
                    d.sync(stream)
                    run.close()
        return
    torch = None
    if not FAKE:
        try:
            import torch
            torch.cuda.init()
            torch.backends.cudnn.benchmark = True
        except Exception as e:  # ours are timed all the same
            print(f"@ torch: {e}")
            torch = None
        d.CtxSetCurrent(d.context)
        d.warm()
    totals, failed, rows = {}, 0, []
    for name in nets:
        ops = sorted(filter(wanted, card.ops(name)), key=work, reverse=True)
        for op in ops[:4 if FAKE else 40]:
            row = {"net": name, "kind": op["kind"], "name": op["name"], "count": op["count"], "in": op["in"], "out": op["out"]}
            try:
                row["ours"] = ours(d, op, modules, stream)
                for setting in ("fp32", "tf32", "bf16") if torch else ():
                    got = theirs(torch, op, setting)
                    if got is not None:
                        row[setting] = got
                        key = (name, setting)
                        mine, other = totals.get(key, (0, 0))
                        totals[key] = mine + op["count"] * row["ours"], other + op["count"] * got
            except (Error, RuntimeError) as e:
                row["error"] = str(e)[:200]
                failed += 1
                if failed == 1:
                    print(f"@ {op['kind']} {op['in']}: {row['error']}")
                if isinstance(e, Error):
                    rows.append(row)
                    break  # an error of a launch is sticky
            rows.append(row)
            print(json.dumps(row), flush=True)
    with open("kernels.json", "w") as f:
        json.dump(rows, f, indent=1)
    for (name, setting), (mine, other) in totals.items():
        print(f"@ {name}: ours {mine:.2f} ms, torch {setting} {other:.2f} ms, ratio {mine / other:.2f}")
    rows = [r for r in rows if "ours" in r]
    for r in sorted(rows, key=lambda r: r["ours"] * r["count"], reverse=True)[:24]:
        print(f"@ {r['net']} {r['kind']} {'x'.join(map(str, r['out'][0]))} x{r['count']}: {r['ours']:.4f} ms"
              + "".join(f", {s} {r[s]:.4f} ({r['ours'] / r[s]:.1f} x)" for s in ("fp32", "tf32", "bf16") if s in r))
    if failed or not rows:
        sys.exit(f"{failed} ops failed" if failed else "no op was timed")


if __name__ == "__main__":
    main(sys.argv[1:] == ["once"])
