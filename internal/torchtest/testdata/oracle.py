"""Trains graphs with torch and prints how far Tensile's results, and torch's in float32, are from torch's in float64.

Each argument is a folder with graph.json, what Tensile began with, read and made (data.bin, index.json), and way: "graph", the graph's
own ops, or the name of a network in networks.py. A line of JSON per folder is printed.
"""

import json
import math
import sys

import torch

import networks
import graph_ops

torch.set_num_threads(1)


def read(folder):
    """Named tensors: data.bin holds float64 one after the other, index.json where each begins and its shape."""
    with open(folder + "/index.json") as file:
        index = json.load(file)
    with open(folder + "/data.bin", "rb") as file:
        flat = torch.frombuffer(bytearray(file.read()), dtype=torch.float64)
    return {name: flat[begin:begin + math.prod(shape)].reshape(shape) for name, (begin, *shape) in index.items()}


def optimizer(graph, parameters):
    """torch's optimizer with the attributes of the graph's updates, which all parameters share."""
    updates = [op for op in graph["ops"] if op["phase"] == "optimize"]
    a = updates[0].get("attrs", {})
    assert all(op.get("attrs", {}) == a and op["kind"] == updates[0]["kind"] for op in updates)
    if updates[0]["kind"] == "adam":
        return torch.optim.Adam(parameters, a["learning_rate"], (a.get("beta1", 0), a.get("beta2", 0)), a["epsilon"])
    return torch.optim.SGD(parameters, a["learning_rate"], a.get("momentum", 0))


def train(graph, way, given, dtype):
    """Returns losses, the first iteration's gradients, and what is persistent in the end, under the names that given has."""
    roles = {s["id"]: s["role"] for s in graph["storages"]}
    names = {s["name"]: s["id"] for s in graph["storages"] if s["role"] in ("input", "parameter", "state")}
    values = {s: given["start.%d" % s].to(dtype, copy=True) for s, role in roles.items() if role in ("parameter", "state")}
    parameters = [s for s, role in roles.items() if role == "parameter"]
    for s in parameters:
        values[s] = torch.nn.Parameter(values[s])
    o = optimizer(graph, [values[s] for s in parameters])
    found, iteration = {}, 0
    while "double.loss.%d" % iteration in given:
        at = lambda kind: {int(k.split(".")[2]): v.to(dtype) for k, v in given.items() if k.startswith("%s.%d." % (kind, iteration))}
        values.update(at("input"))
        masks = at("mask")
        if way == "graph":
            loss = graph_ops.interpret(graph, values, masks)
        else:
            by_name = {name: values[s] for name, s in names.items() if s in values}
            masks = {op["name"]: masks[op["id"]] for op in graph["ops"] if op["id"] in masks}
            loss = getattr(networks, way)(networks.Given(by_name, masks))
        o.zero_grad()
        loss.backward()
        found["loss.%d" % iteration] = loss.detach().reshape(1)
        if iteration == 0:
            found.update({"gradient.%d" % s: values[s].grad.clone() for s in parameters})
        o.step()
        iteration += 1
    moments = {"m": ("momentum_buffer", "exp_avg"), "v": ("exp_avg_sq",)}
    for s in parameters:
        found["end.%d" % s] = values[s].detach()
        name = graph["storages"][s]["name"]
        for suffix, keys in moments.items():
            if name + "." + suffix in names:
                state = o.state[values[s]]
                found["end.%d" % names[name + "." + suffix]] = next(state[k] for k in keys if k in state)
    for s, role in roles.items():
        if role == "state":  # what is left are running statistics
            found.setdefault("end.%d" % s, values[s])
    return found


def main():
    for folder in sys.argv[1:]:
        with open(folder + "/graph.json") as file:
            graph = json.load(file)
        with open(folder + "/way") as file:
            way = file.read()
        given = read(folder)
        exact, single = train(graph, way, given, torch.float64), train(graph, way, given, torch.float32)
        rows = []
        for key, want in exact.items():
            kind, number = key.split(".")
            distance = lambda x: float(torch.linalg.vector_norm(x.to(torch.float64).reshape(-1) - want.reshape(-1)))
            storage = {"name": key, "role": "output"} if kind == "loss" else graph["storages"][int(number)]
            rows.append({"kind": kind, "name": storage["name"], "role": storage["role"],
                         "size": distance(given["start." + number] if kind == "end" else torch.zeros_like(want)),
                         "double": distance(given["double." + key]), "single": distance(given["single." + key]),
                         "torch": distance(single[key])})
        print(json.dumps(rows), flush=True)


main()
