"""Trains a network alone or joined, and prints losses and the bits it ends with: NETWORK [plain] [interrupt] [leave FILE].

With leave it leaves after it has followed a plan, and ends when it has read the file."""

import hashlib
import os
import signal
import sys

import tensile
import torch
from torch import nn


def planned(newest):
    """Tells whether the graph was planned, first of all or after what was claimed for it."""
    return newest is not None and (newest["graph"] or newest["number"] > 1)


torch.manual_seed(0)
torch.set_num_threads(1)
own = torch.Generator().manual_seed(1)
if sys.argv[1] == "cnn":
    layers = [nn.Conv2d(3, 8, 3, padding=1)]
    for _ in range(6):
        layers += [nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3, padding=1)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters())
    shape = 8, 3, 24, 24
else:
    layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 3), nn.Flatten(), nn.Linear(24 * 32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    shape = 8, 24, 32
link = None
if "plain" not in sys.argv:
    tensile.join(model, optimizer)
    link = tensile._session.planner
if "interrupt" in sys.argv:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has started the test in the background
try:
    for i in range(12):
        if i == 8 and "leave" in sys.argv and link:
            tensile.leave()
        x, y = torch.randn(shape, generator=own), torch.randint(0, 10, (shape[0],), generator=own)
        optimizer.zero_grad(set_to_none=True)
        out = model(x)
        if i == 9 and "interrupt" in sys.argv:
            out.register_hook(lambda grad: os.killpg(0, signal.SIGINT))  # as a terminal does
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        print(loss.item())
        while link and link.sock and tensile._session.number and not planned(link.newest):
            link._read(None)
    if "leave" in sys.argv:
        with open(sys.argv[-1]) as f:
            f.read()
except KeyboardInterrupt:
    print("interrupted")
state = hashlib.sha256()
for v in model.state_dict().values():
    state.update(v.numpy().tobytes())
for s in optimizer.state_dict()["state"].values():
    for k in sorted(s):
        state.update(torch.as_tensor(s[k]).numpy().tobytes())
print(state.hexdigest())
sys.exit(7 if "interrupt" in sys.argv else 0)
