"""torch_bridge.py TENSILE [DEVICE]: three networks alone and joined in 60 % of what they need, on a GPU or a cpu: the bits under
deterministic algorithms, the most that torch's allocator had beside the plan, ms per iteration. The package tensile is in python
beside this file, or in PYTHONPATH."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = 40


def network(name, torch):
    nn = torch.nn
    if name == "cnn":
        layers = [nn.Conv2d(3, 64, 3, padding=1)]
        for _ in range(12):
            layers += [nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.Conv2d(64, 64, 3, padding=1)]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)), (16, 3, 64, 64)
    if name == "encoder":
        layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.1, batch_first=True)
        return nn.Sequential(nn.TransformerEncoder(layer, 6), nn.Flatten(), nn.Linear(64 * 256, 10)), (16, 64, 256)

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(256, 256, 2, batch_first=True), nn.Linear(256, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])
    return Last(), (64, 32, 256)


def train(name, device, join):
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch

    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    model, shape = network(name, torch)
    model = model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    if join:
        import tensile

        tensile.join(model, optimizer)
    losses, times = [], []
    for _ in range(COUNT):
        begun = time.perf_counter()
        x, y = torch.randn(shape).to(device), torch.randint(0, 10, shape[:1]).to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.perf_counter() - begun)
    bits = hashlib.sha256(repr(losses).encode())
    for v in model.state_dict().values():
        bits.update(v.cpu().numpy().tobytes())
    print(json.dumps({"bits": bits.hexdigest(), "ms": 1000 * sorted(times[COUNT // 2:])[COUNT // 4]}))


def run(words):
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join([os.path.join(HERE, "python"), env.get("PYTHONPATH", "")])
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with status {done.returncode}")
    return json.loads(done.stdout)


def joined(binary, name, device, limit):
    with tempfile.TemporaryDirectory() as d:
        report = os.path.join(d, "report.json")
        words = [binary, "join", "--report", report] + (["--memory", str(limit)] if limit else [])
        got = run(words + ["--", sys.executable, __file__, "train", name, device, "join"])
        with open(report) as f:
            return got, json.load(f)


def main(binary, device):
    for name in "cnn", "encoder", "lstm":
        alone = run([sys.executable, __file__, "train", name, device, "alone"])
        _, free = joined(binary, name, device, 0)
        got, report = joined(binary, name, device, free["touched_bytes"] * 60 // 100)
        print(f"{name}: allocated {report['touched_bytes']}, planned {report['plan_bytes']}, reserve {report['reserve_bytes']}, "
              f"alone {free['touched_bytes']}; {got['ms']:.2f} ms, alone {alone['ms']:.2f} ms; "
              f"{report['planned_iterations']} planned iterations, {report['faults']} faults", flush=True)
        if got["bits"] != alone["bits"]:
            sys.exit(f"{name}: other bits than alone")
        if not report["planned_iterations"]:
            sys.exit(f"{name}: no plan was followed")


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(sys.argv[2], sys.argv[3], sys.argv[4] == "join")
    else:
        main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cuda")
