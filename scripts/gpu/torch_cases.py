"""torch_cases.py TENSILE: what training scripts do beside plain steps, each alone and joined in 60 % of what it takes, with the same bits: half
precision with GradScaler and without, gradients of several batches, checkpoint, a DataLoader with workers, state that is saved and loaded,
and an optimizer of a library of its own, written in Triton, which writes parameters by their addresses."""

import copy
import io
import os
import sys

import torch_bridge
import torch_kit

SMALL = torch_kit.FAKE
COUNT = 16


class Case:
    """A network in training; a case has the network that it likes, and overrides what it does otherwise."""
    name = "resnet50"
    size = None if SMALL else 32

    def __init__(self, torch, device):
        self.torch, self.device = torch, device
        self.model, make = torch_kit.network(torch, device, self.name, self.size, SMALL)
        self.batch = make()
        self.optimizer = self.make_optimizer()

    def make_optimizer(self):
        return self.torch.optim.Adam(self.model.parameters())

    def data(self):
        return (t.to(self.device, copy=True) for t in self.batch)

    def loss(self):
        x, y = self.data()
        return self.torch.nn.functional.cross_entropy(self.model(x), y)

    def iteration(self, i):
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss.item()


class BFloat16(Case):
    """autocast to bfloat16"""
    def loss(self):
        with self.torch.autocast(self.device, self.torch.bfloat16):
            return super().loss()


class Float16(Case):
    """autocast to float16 with GradScaler, some of whose steps are left out"""
    def __init__(self, torch, device):
        super().__init__(torch, device)
        self.scaler = torch.amp.GradScaler(device, init_scale=2.0**18, growth_interval=5)

    def iteration(self, i):
        self.optimizer.zero_grad()
        with self.torch.autocast(self.device, self.torch.float16):
            loss = self.loss()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()


class Accumulation(Case):
    """gradients of four batches to a step"""
    size = None if SMALL else 16

    def iteration(self, i):
        self.optimizer.zero_grad()
        losses = []
        for _ in range(4):
            loss = self.loss() / 4
            loss.backward()
            losses.append(loss.item())
        self.optimizer.step()
        return losses


class Checkpoint(Case):
    """torch.utils.checkpoint around each block"""
    name = "gpt2"
    size = None if SMALL else 4

    def __init__(self, torch, device):
        from torch.utils.checkpoint import checkpoint
        super().__init__(torch, device)
        for block in self.model.blocks:
            block.forward = lambda x, f=block.forward: checkpoint(f, x, use_reentrant=False)


class Loader(Case):
    """a DataLoader with workers, whose batches are pinned"""
    def __init__(self, torch, device):
        super().__init__(torch, device)
        data = torch.utils.data.TensorDataset(*(torch.cat([t, t.flip(0)]) for t in self.batch))
        self.loader = torch.utils.data.DataLoader(data, len(data) // 2, shuffle=True, num_workers=2 if SMALL else 4,
                                                  pin_memory=device == "cuda", persistent_workers=True)
        self.turn = iter(())

    def data(self):
        got = next(self.turn, None)
        if got is None:  # the next epoch
            self.turn = iter(self.loader)
            got = next(self.turn)
        return (t.to(self.device, non_blocking=True) for t in got)


class State(Case):
    """state_dict saved by torch.save, and loaded again some steps later"""
    def iteration(self, i):
        if i == 9:
            self.kept = io.BytesIO()
            self.torch.save([self.model.state_dict(), self.optimizer.state_dict()], self.kept)
        if i == 12:
            self.kept.seek(0)
            model, optimizer = self.torch.load(self.kept)
            self.model.load_state_dict(model)
            self.optimizer.load_state_dict(copy.deepcopy(optimizer))
        return super().iteration(i)


class Triton(Case):
    """SGD with momentum by a Triton kernel, which gets addresses: parameters, gradients and momentum stay where they are"""
    name = "gpt2"
    size = None if SMALL else 4

    def make_optimizer(self):
        if self.device == "cpu":
            os.environ["TRITON_INTERPRET"] = "1"
        try:
            import triton_sgd
        except ImportError as e:
            torch_kit.skip(f"no Triton: {e}")
        return triton_sgd.SGD(self.model.parameters(), 0.01)


CASES = {"bfloat16": BFloat16, "float16": Float16, "accumulation": Accumulation, "checkpoint": Checkpoint, "loader": Loader, "state": State,
         "triton": Triton}


def script(name):
    torch, device = torch_kit.torch_here()
    torch_kit.deterministic(torch)
    case = CASES[name](torch, device)
    torch_kit.train(torch, device, case.model, case.optimizer, case.iteration, COUNT)


def main():
    if sys.argv[1] == "script":
        return script(sys.argv[2])
    _, device = torch_kit.torch_here()
    runs = torch_bridge.Runs(sys.argv[1], 30 if device == "cuda" else 600)
    for name in CASES:  # what it needs is what it had alone, where torch's allocator says that
        runs.compare(name, [os.path.abspath(__file__), "script", name], ("alone", "60%") if device == "cuda" else ("alone", "none", "60%"))
    torch_bridge.finish(runs.rows)


if __name__ == "__main__":
    main()
