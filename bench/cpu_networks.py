"""The networks of `tensile bench cpu` for PyTorch: `export FOLDER BEGIN...` writes those whose names begin so as ONNX
files, and `time NAME THREADS STEPS PROFILED` trains one and prints the milliseconds of processor and wall time of a step
as JSON, and those of each op in as many steps more under the profiler."""

import importlib.util
import json
import sys
import time

for package in "torch", "onnx", "numpy":
    if importlib.util.find_spec(package) is None:
        sys.exit(f"it has no {package}: name an interpreter that has torch, onnx and numpy")

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv(i, o, k, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, k, stride, k // 2, bias=False), nn.BatchNorm2d(o))


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride):
        super().__init__()
        self.a, self.b, self.c = conv(i, width, 1), conv(width, width, 3, stride), conv(width, 4 * width, 1)
        self.skip = conv(i, 4 * width, 1, stride) if stride > 1 or i != 4 * width else nn.Identity()

    def forward(self, x):
        return F.relu(self.c(F.relu(self.b(F.relu(self.a(x))))) + self.skip(x))


def resnet50():
    layers, i = [conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for block in range(count):
            layers.append(Bottleneck(i, 64 << stage, 2 if stage and not block else 1))
            i = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 10))


def vgg16():
    layers, i = [], 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(i, width, 3, padding=1), nn.ReLU()]
            i = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096),
                         nn.ReLU(), nn.Dropout(), nn.Linear(4096, 10))


class Dense(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.a = nn.Sequential(nn.BatchNorm2d(i), nn.ReLU(), nn.Conv2d(i, 128, 1, bias=False))
        self.b = nn.Sequential(nn.BatchNorm2d(128), nn.ReLU(), nn.Conv2d(128, 32, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat([x, self.b(self.a(x))], 1)


def densenet121():
    layers, i = [conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            layers.append(Dense(i))
            i += 32
        layers += [nn.BatchNorm2d(i), nn.ReLU()]
        if stage < 3:
            layers += [nn.Conv2d(i, i // 2, 1, bias=False), nn.AvgPool2d(2, ceil_mode=False) if stage < 2 else nn.Identity()]
            i //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 10))


class Block(nn.Module):
    def __init__(self, width, heads, causal, before):
        super().__init__()
        self.heads, self.causal, self.before = heads, causal, before
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.drop = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.1)

    def attend(self, x):
        n, s, w = x.shape
        q, k, v = self.qkv(x).reshape(n, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.drop(self.out(y.transpose(1, 2).reshape(n, s, w)))

    def feed(self, x):
        return self.drop(self.down(F.gelu(self.up(x))))

    def forward(self, x):
        if self.before:
            x = x + self.attend(self.n1(x))
            return x + self.feed(self.n2(x))
        x = self.n1(x + self.attend(x))
        return self.n2(x + self.feed(x))


class Text(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.words, self.places = nn.Embedding(1000, 128), nn.Parameter(torch.randn(64, 128) * 0.02)
        self.blocks = nn.Sequential(*(Block(128, 4, causal, causal) for _ in range(4)))
        self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 1000)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.words(ids) + self.places)))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.head = nn.Embedding(1000, 128), nn.LSTM(128, 128, 2, batch_first=True), nn.Linear(128, 1000)

    def forward(self, ids):
        return self.head(self.lstm(self.words(ids))[0])


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.places = nn.Conv2d(3, 192, 8, 8), nn.Parameter(torch.randn(64, 192) * 0.02)
        self.blocks = nn.Sequential(*(Block(192, 3, False, True) for _ in range(6)))
        self.norm, self.head = nn.LayerNorm(192), nn.Linear(192, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.blocks(x)).mean(1))


def image(n, size):
    return lambda: (torch.randn(n, 3, size, size), torch.randint(10, (n,)))


def text(n, length):
    return lambda: (torch.randint(1000, (n, length)), torch.randint(1000, (n, length)))


NETWORKS = {
    "resnet50, 32 px": (resnet50, image(8, 32)), "resnet50, 96 px": (resnet50, image(8, 96)),
    "vgg16, 32 px": (vgg16, image(8, 32)), "gpt, 4 x 128": (lambda: Text(True), text(8, 64)),
    "bert, 4 x 128": (lambda: Text(False), text(8, 64)), "lstm, 2 x 128": (LSTM, text(16, 35)),
    "vit, 6 x 192, 64 px": (ViT, image(8, 64)), "densenet121, 64 px": (densenet121, image(8, 64)),
}


def export(folder, *begin):
    names = []
    for number, (name, (make, data)) in enumerate(NETWORKS.items()):
        if begin and not name.startswith(begin):
            continue
        torch.manual_seed(number)
        x, _ = data()
        file = f"{folder}/{number}.onnx"
        torch.onnx.export(make().train(), x, file, dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, opset_version=18, input_names=["x"], output_names=["y"])
        names.append({"name": name, "file": file, "batch": x.shape[0]})
    if not names:
        sys.exit(f"no network begins with {' or '.join(begin)}: choose among {'; '.join(NETWORKS)}")
    print(json.dumps(names))


def measure(name, threads, steps, profiled):
    torch.set_num_threads(threads)
    make, data = NETWORKS[name]
    model, (x, labels) = make().train(), data()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def passes():
        optimizer.zero_grad()
        F.cross_entropy(model(x).flatten(0, -2), labels.flatten()).backward()

    for _ in range(2):
        passes()
        optimizer.step()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(steps):
        passes()
        optimizer.step()
    took = {"cpu_ms": (time.process_time() - cpu) * 1e3 / steps, "wall_ms": (time.perf_counter() - wall) * 1e3 / steps}
    ops, took["ops"] = {}, {}
    for _ in range(profiled):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            passes()
        wall = time.perf_counter()
        optimizer.step()
        ops["optimizer"] = ops.get("optimizer", 0) + (time.perf_counter() - wall) * 1e6
        for op in profile.key_averages():
            if op.key.startswith("aten::"):
                ops[op.key] = ops.get(op.key, 0) + op.self_cpu_time_total
    for op, microseconds in ops.items():
        took["ops"][op] = microseconds / 1e3 / profiled
    print(json.dumps(took))


if sys.argv[1] == "export":
    import warnings
    warnings.simplefilter("ignore")
    export(*sys.argv[2:])
else:
    measure(sys.argv[2], *map(int, sys.argv[3:]))
