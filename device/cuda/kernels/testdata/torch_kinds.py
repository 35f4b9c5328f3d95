"""Compares what the kernels made of single ops with torch in float64. Prints a line for each case: the largest distance
of an element, relative to the larger of 1 and the largest element, and what has it."""

import json
import os
import sys

import torch

here = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(here, *[".."] * 4, "internal", "torchtest", "testdata"))
from graph_ops import ops, max_pool  # noqa: E402

ops["max_pool_indices"] = max_pool


def tensor(x):
    return torch.tensor(x["data"], dtype=torch.float64).reshape(x["shape"])


def optimizer(case, w):
    a = case["attrs"]
    if case["kind"] == "adam":
        return torch.optim.Adam([w], a["learning_rate"], (a["beta1"], a["beta2"]), a["epsilon"])
    return torch.optim.SGD([w], a["learning_rate"], a["momentum"])


def updated(case):
    w = tensor(case["in"][0]).requires_grad_()
    o = optimizer(case, w)
    for step in case["steps"]:
        w.grad = tensor(step)
        o.step()
    return w


def compared(case):
    """Yields what the kernels made, what torch makes, and a name."""
    if case.get("steps"):
        yield case["out"][0], updated(case), "w"
        return
    x = [tensor(i).requires_grad_() for i in case["in"]]
    y = ops[case["kind"]](case["attrs"], *x)
    y = [y] if torch.is_tensor(y) else list(y)[:len(case["out"])]
    for i, got in enumerate(case["out"]):
        yield got, y[i], f"y{i}"
    if not case.get("grads"):
        return
    at = [i for i, g in enumerate(case["grads"]) if g["shape"]]
    dy = [tensor(d).reshape(v.shape) for d, v in zip(case["dout"], y)]
    grads = torch.autograd.grad(y, [x[i] for i in at], dy)
    for i, want in zip(at, grads):
        yield case["grads"][i], want, f"dx{i}"


with open(sys.argv[1]) as f:
    for case in json.load(f):
        worst = (0.0, "nothing")
        for got, want, name in compared(case):
            want = want.detach().reshape(-1)
            got = torch.tensor(got["data"], dtype=torch.float64)
            assert got.shape == want.shape, (case["kind"], name, got.shape, want.shape)
            far = ((got - want).abs().max() / max(1.0, float(want.abs().max()))).item()
            worst = max(worst, (far if far == far else float("inf"), name))
        print(*worst)
