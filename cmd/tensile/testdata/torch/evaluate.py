"""Prints the outputs, in evaluation, of a class of scripts/onnx-cases.py with the weights in a safetensors file.

usage: evaluate.py CLASS FILE.safetensors < INPUT.json
"""

import importlib.util
import json
import math
import os
import struct
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def networks():
    path = os.path.join(HERE, "..", "..", "..", "..", "scripts", "onnx-cases.py")
    spec = importlib.util.spec_from_file_location("cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tensors(path):
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(size)), f.read()
    header.pop("__metadata__", None)
    for name, x in header.items():
        begin, end = x["data_offsets"]
        yield name, torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).reshape(x["shape"])


def main(name, path):
    model = getattr(networks(), name)()
    saved = dict(tensors(path))
    state = model.state_dict()
    for key, value in state.items():
        if value.is_floating_point():
            state[key] = saved[key]  # every key is wanted, in the shape that load_state_dict takes
    model.load_state_dict(state)
    model.eval()
    x = torch.tensor(json.load(sys.stdin))
    if hasattr(model, "words"):
        x = x.long()
    x = x.reshape((x.numel() // math.prod(model.shape[1:]),) + model.shape[1:])
    with torch.enable_grad():  # without it the encoder takes another path
        json.dump(model(x).reshape(-1).tolist(), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
