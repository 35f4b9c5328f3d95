"""What is no op of torch writes tensors: kernels by their addresses, and code in C++ of which no hook hears."""

import contextlib
import ctypes
import io
import random
import unittest

import torch
from plans import random_plan, shelved
from scripts import Planner, differs, execute
from tensile.storages import identity, lent_storages, storage_of

torch.set_num_threads(1)

ADDRESSES = {"data_ptr": lambda t: t.data_ptr(), "storage": lambda t: t.storage().data_ptr(),
             "C++": lambda t: torch._C.StorageBase.data_ptr(storage_of(t))}


def add(to, rate, what, way):
    """Adds to a tensor of floats, by its address."""
    size = to.numel()
    out = (ctypes.c_float * size).from_address(ADDRESSES[way](to))
    more = what.detach().reshape(-1).tolist()
    for i in range(size):
        out[i] += rate * more[i]


class Raw(torch.optim.Optimizer):
    """An optimizer of a library of its own: it writes what is in written by addresses, and the rest by ops."""

    def __init__(self, params, way, written, begins=0):
        super().__init__(params, dict(lr=0.05))
        self.way, self.written, self.begins, self.steps = way, written, begins, 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        way = self.way if self.steps > self.begins else None
        for p in (p for g in self.param_groups for p in g["params"] if p.grad is not None):
            moment = self.state[p].setdefault("moment", torch.zeros_like(p))
            if way and "moment" in self.written:
                add(moment, 0.5, p.grad, way)
            else:
                moment.add_(p.grad, alpha=0.5)
            if way and "parameter" in self.written:
                add(p, -0.05, moment, way)
            else:
                p.add_(moment, alpha=-0.05)


def script(run, way, written, begins=0, iterations=18):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.ReLU(), torch.nn.Linear(32, 24), torch.nn.ReLU(),
                                torch.nn.Linear(24, 16))
    optimizer = Raw(model.parameters(), way, written, begins)
    run.join(model, optimizer)
    for _ in range(iterations):
        x = torch.randn(16, 24)
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


def by_address(run, iterations=16):
    """A kernel writes an activation by its address, which an op reads that could run again."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.Linear(32, 24), torch.nn.Linear(24, 16))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    run.join(model, optimizer)
    for _ in range(iterations):
        x = torch.randn(16, 24)
        optimizer.zero_grad()
        h = model[0](x)
        mask = torch.ones_like(h)
        twice = mask * 2
        add(mask, 1.0, torch.arange(h.numel()) % 3, "data_ptr")
        h = model[1](h * mask) * twice[:, :24]  # which is kept for the backward pass
        loss = model[2](h).pow(2).mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


# As safetensors.torch does: it asks whether tensors share memory, and reads it.
READER = """
def save(tensors):
    return [(t.storage().data_ptr() == t.data_ptr(), ctypes.string_at(t.data_ptr(), 4 * t.numel())) for t in tensors]
"""


def saving(run, saved, every=5, iterations=24):
    """A script that saves its state in between, and once in the middle of an iteration."""
    package = {"__name__": "safetensors.torch", "ctypes": ctypes}
    exec(READER, package)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.Tanh(), torch.nn.Linear(32, 24), torch.nn.Tanh(),
                                torch.nn.Linear(24, 16))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    run.join(model, optimizer)
    for i in range(iterations):
        loss = model(torch.randn(16, 24)).pow(2).mean()
        optimizer.zero_grad()
        if i == 8:
            saved.append(package["save"](list(model.parameters())))
        loss.backward()
        optimizer.step()
        if i % every == every - 1:
            moments = [s["momentum_buffer"] for s in optimizer.state.values()]
            saved.append(package["save"](list(model.parameters()) + moments))
        yield loss.item()


class Unseen(unittest.TestCase):
    def trains(self, script, make, **options):
        """Checks that a script comes to its bits under plans; returns the planner, and the lines that were said."""
        want = execute(script, **options)
        p, said = Planner(make), io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(differs(want, execute(script, p, **options)), "")
        return p, said.getvalue().splitlines()

    def test_written_by_address(self):
        """What an optimizer writes by data_ptr() stays where it is; the rest moves, and one line says so."""
        for seed in range(3):
            with self.subTest(seed=seed):
                p, said = self.trains(script, lambda _, it: random_plan(it, random.Random(seed), 0.5)[0],
                                      way="data_ptr", written=("parameter", "moment"))
                self.assertTrue(p.iterations[-1][1], "no plan is followed")
                self.assertEqual(len(p.graphs), 1)
                self.assertEqual([len(said), p.lines], [1, []])
                self.assertRegex(said[0], r"^tensile: a \w+ of shape 32 x 24 stays where it is, as data_ptr\(\) gives "
                                 "its address away, .*triton_op")

    def test_address_given_while_a_plan_is_followed(self):
        """The plan ends there, and what is recorded then has another."""
        for way in "data_ptr", "storage":
            for make in (lambda _, it: random_plan(it, random.Random(1), 0.9)[0], lambda _, it: shelved(it)):
                with self.subTest(way=way):
                    p, said = self.trains(script, make, way=way, written=("parameter",), begins=6)
                    self.assertTrue(p.iterations[5][1] and p.iterations[-1][1], "no plan is followed")
                    self.assertEqual([len(p.graphs), len(said)], [2, 1])

    def test_saved_by_address(self):
        """What safetensors reads by addresses is there, and it moves on afterwards."""
        for make in (lambda _, it: random_plan(it, random.Random(1), 0.9)[0], lambda _, it: shelved(it)):
            saved = []
            p, said = self.trains(saving, make, saved=saved)
            half = len(saved) // 2
            self.assertEqual(saved[:half], saved[half:])
            self.assertEqual([len(p.graphs), [line for line in said if "stays where it is" in line]], [1, []])
            self.assertGreaterEqual(sum(1 for _, plan, _ in p.iterations if plan), 18)
            self.assertTrue(p.iterations[-1][1], "no plan is followed")

    def test_activation(self):
        for seed in range(3):
            with self.subTest(seed=seed):
                p, _ = self.trains(by_address, lambda _, it: random_plan(it, random.Random(seed), 0.9)[0])
                self.assertTrue(p.iterations[-1][1], "no plan is followed")

    def test_parameter_written_by_what_nothing_sees(self):
        """The script is passive, in a line that names the parameter, before there is a plan."""
        p, said = self.trains(script, lambda _, it: random_plan(it, random.Random(1), 0.9)[0], way="C++",
                              written=("parameter",))
        self.assertEqual([len(said), len(p.plans), len(p.lines)], [1, 0, 1])
        self.assertRegex(said[0], "passive from now on: something that is no op of torch has written a parameter of "
                         "shape 32 x 24.*custom_op")

    def test_state_written_by_what_nothing_sees(self):
        """It stays where it is, in one line; the rest moves."""
        for seed in range(3):
            with self.subTest(seed=seed):
                p, said = self.trains(script, lambda _, it: random_plan(it, random.Random(seed), 0.9)[0], way="C++",
                                      written=("moment",))
                self.assertTrue(p.iterations[-1][1], "no plan is followed")
                self.assertEqual([len(said), p.lines], [1, []])
                self.assertRegex(said[0], "a tensor of 3072 bytes stays where it is")


def network():
    return torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(3)))


class TestLent(unittest.TestCase):
    """What something else has the address of before the script joins stays where it is; nothing else does."""

    def found(self, model):
        ids = lent_storages(model.parameters())
        return [name for name, p in model.named_parameters() if identity(p) in ids]

    def test_nothing(self):
        model = network()
        alias, state = model[0].weight.data, model.state_dict()
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        self.assertEqual(self.found(model), [])
        model(torch.ones(2, 8)).sum().backward()
        model[2].weight = model[1].weight
        self.assertEqual([self.found(model), len(state), alias.numel()], [[], 6, 64])

    def test_dlpack(self):
        model = network()
        capsule = torch.utils.dlpack.to_dlpack(model[1].weight.detach())
        self.assertEqual(self.found(model), ["1.weight"])
        del capsule
        self.assertEqual(self.found(model), [])

    def test_numpy(self):
        model = network()
        try:
            array = model[1].bias.detach().numpy()
        except RuntimeError as e:
            self.skipTest(str(e))
        self.assertEqual(self.found(model), ["1.bias"])
        del array
        self.assertEqual(self.found(model), [])

    def test_buffer_of_an_array(self):
        model, buffer = network(), torch.zeros(64)
        model[0].weight.data = buffer.view(8, 8)
        try:
            array = buffer.numpy()
        except RuntimeError as e:
            self.skipTest(str(e))
        self.assertEqual([self.found(model), array.size], [["0.weight"], 64])


if __name__ == "__main__":
    unittest.main()
