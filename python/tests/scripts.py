"""Small training scripts, as functions of a run: each yields the loss of an iteration."""

import atexit
import gc
import io
import os
import sys
import unittest

import torch
import torch._dynamo  # which the first optimizer imports else
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from tensile import hooks  # noqa: E402
from tensile.session import Session  # noqa: E402

gc.freeze()  # what torch is made of is many objects: each join and each collection would look at all
atexit.register(gc.unfreeze)


def settle():
    """Frees what earlier tests have left in circles, and has collections pass over the rest."""
    gc.collect()
    gc.freeze()


LONG = bool(os.environ.get("TENSILE_LONG"))  # whether tests run at full length, as Go's do with -long
long = unittest.skipUnless(LONG, "long: make test-all runs it")


class Planner:
    """Takes plans from a function of the iteration, and notes what it is told."""

    def __init__(self, make=None):
        self.make = make
        self.iterations, self.graphs, self.errors, self.lines, self.plans = [], [], [], [], []
        self.next = []  # plans that were not taken yet

    def graph(self, number, iteration):
        self.graphs.append(iteration)
        plan = self.make(number, iteration) if self.make else None
        if plan is not None:
            plan["graph"] = number
            plan["number"] = len(self.plans) + 1
            self.plans.append(plan)
            self.next.append(plan)

    def take(self):
        return self.next.pop(0) if self.next else None

    def step(self, session):
        pass

    def applied(self, plan, iterations, error):
        if error:
            self.errors.append(error)

    def iteration(self, session, graph, plan, wall):
        self.iterations.append((graph, plan, session.touched))

    def passive(self, iterations, why, always):
        self.lines.append(why)

    def left(self, session):
        pass


class Run:
    """A run of a script: its model and optimizer join a planner, or nothing."""

    def __init__(self, planner=None):
        self.planner, self.session = planner, None

    def join(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        if self.planner is not None:
            self.session = Session(list(model.parameters()), optimizer, self.planner)
            self.session.enter(hooks.install(self.session))

    def leave(self):
        if self.session is not None:
            session, self.session = self.session, None
            session.leave()

    def state(self):
        """Returns all bits: of weights, buffers and the optimizer."""
        into = []

        def walk(value):
            if isinstance(value, torch.Tensor):
                into.append(value.detach().clone())
            elif isinstance(value, dict):
                for key in value:
                    walk(value[key])
            elif isinstance(value, (list, tuple)):
                for v in value:
                    walk(v)
            else:
                into.append(value)

        walk(self.model.state_dict())
        walk(self.optimizer.state_dict())
        into.append(torch.get_rng_state())
        return into


def execute(script, planner=None, **options):
    """Runs a script to its end; returns losses and state."""
    torch.manual_seed(7)
    run = Run(planner)
    try:
        losses = [loss for loss in script(run, **options)]
        run.leave()
        return losses, run.state()
    finally:
        run.leave()


def differs(a, b):
    """Returns what differs between two results of execute, or ''."""
    if a[0] != b[0]:
        return "losses differ from iteration %d on" % next(
            (i for i, (x, y) in enumerate(zip(a[0], b[0])) if x != y), min(len(a[0]), len(b[0])))
    if len(a[1]) != len(b[1]):
        return "there is other state"
    for x, y in zip(a[1], b[1]):
        if isinstance(x, torch.Tensor) and not torch.equal(x, y) or not isinstance(x, torch.Tensor) and x != y:
            return "state differs"
    return ""


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
        nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
        nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Dropout(0.1),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.layers(self.embed(x)).mean(1))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(12, 32, 2, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


NETWORKS = {
    "cnn": (cnn, lambda: torch.randn(8, 3, 12, 12)),
    "encoder": (Encoder, lambda: torch.randint(0, 50, (8, 12))),
    "lstm": (LSTM, lambda: torch.randn(32, 5, 12)),
}
OPTIMIZERS = {
    "adam": lambda p: torch.optim.Adam(p, foreach=False),
    "foreach": lambda p: torch.optim.Adam(p, foreach=True),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
}


def plain(run, network="cnn", optimizer="adam", iterations=10, none=True, between=None, scale=None, batch=None):
    """A loop; between(i) is called after each iteration, scale(i, loss) changes a loss, batch(i) a batch's size."""
    make, inputs = NETWORKS[network]
    model = make()
    o = OPTIMIZERS[optimizer](model.parameters())
    run.join(model, o)
    for i in range(iterations):
        x = inputs()
        y = torch.randint(0, 10, (len(x),))
        if batch:
            x, y = x[:batch(i)].clone(), y[:batch(i)].clone()
        o.zero_grad(set_to_none=none)
        loss = F.cross_entropy(model(x), y)
        if scale:
            loss = scale(i, loss)
        loss.backward()
        o.step()
        yield loss.item()
        if between:
            between(run, i)


def checkpointed(run, iterations=10):
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(3)
    a, b = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 32)), nn.Linear(32, 10)
    model = nn.ModuleList([a, b])
    o = torch.optim.Adam(model.parameters())
    run.join(model, o)
    for _ in range(iterations):
        x, y = torch.randn(16, 32, requires_grad=True), torch.randint(0, 10, (16,))
        o.zero_grad(set_to_none=True)
        loss = F.cross_entropy(b(checkpoint(a, x)), y)
        loss.backward()
        o.step()
        yield loss.item()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return 2 * x * grad


def custom(run, iterations=10):
    model = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10))
    o = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    run.join(model, o)
    for _ in range(iterations):
        x, y = torch.randn(16, 32), torch.randint(0, 10, (16,))
        o.zero_grad(set_to_none=True)
        a = Square.apply(model[0](x))
        for layer in model[1:]:
            a = layer(Square.apply(a))
        loss = F.cross_entropy(a, y)
        loss.backward()
        o.step()
        yield loss.item()


def autocast(run, iterations=10):
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    o = torch.optim.Adam(model.parameters())
    run.join(model, o)
    for _ in range(iterations):
        x, y = torch.randn(16, 32), torch.randint(0, 10, (16,))
        o.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x)
        loss = F.cross_entropy(out.float(), y)
        loss.backward()
        o.step()
        yield loss.item()


def accumulation(run, iterations=10):
    model = cnn()
    o = torch.optim.Adam(model.parameters())
    run.join(model, o)
    schedule = torch.optim.lr_scheduler.StepLR(o, 3, 0.5)
    for _ in range(iterations):
        o.zero_grad(set_to_none=False)
        total = 0.0
        for _ in range(2):
            x, y = torch.randn(4, 3, 12, 12), torch.randint(0, 10, (4,))
            loss = F.cross_entropy(model(x), y) / 2
            loss.backward()
            total += loss.item()
        o.step()
        schedule.step()
        yield total


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return torch.full((32,), i / 40.0), i % 10


def epochs(run, workers=0, epochs=3, batch=8):
    """A DataLoader, evaluation between epochs."""
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))
    o = torch.optim.Adam(model.parameters())
    run.join(model, o)
    loader = torch.utils.data.DataLoader(Numbers(), batch, shuffle=True, num_workers=workers)
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            o.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            o.step()
            yield loss.item()
        model.eval()
        with torch.no_grad():
            for x, y in torch.utils.data.DataLoader(Numbers(), 20):
                yield (model(x).argmax(1) == y).float().mean().item()


def saving(run, into, iterations=12):
    model = cnn()
    o = torch.optim.Adam(model.parameters())
    run.join(model, o)
    for i in range(iterations):
        x, y = torch.randn(8, 3, 12, 12), torch.randint(0, 10, (8,))
        o.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        o.step()
        yield loss.item()
        if i % 5 == 4:
            with io.BytesIO() as f:
                torch.save({"model": model.state_dict(), "optimizer": o.state_dict()}, f)
                into.append(f.getvalue())
