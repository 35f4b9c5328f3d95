"""Random small programs under random plans, plans that are not valid, and ops that lie."""

import copy
import random
import unittest

import torch
from torch import nn

import scripts
from plans import random_plan
from scripts import Planner, differs, execute


def program(run, seed=0, iterations=8):
    """Views, updates in place in chains, randomness, weights used twice, as the seed says."""
    choose = random.Random(seed)
    model = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])
    o = choose.choice([torch.optim.Adam, torch.optim.SGD])(model.parameters(), lr=0.01)
    run.join(model, o)
    ops = [choose.randrange(9) for _ in range(choose.randint(3, 10))]
    layers = [choose.randrange(3) for _ in ops]
    for _ in range(iterations):
        o.zero_grad(set_to_none=True)
        a = torch.randn(12, 16)
        kept = a
        for op, n in zip(ops, layers):
            if op == 0:
                a = model[n](a)
            elif op == 1:
                a = torch.relu_(a * 2)
            elif op == 2:
                a = torch.dropout(a, 0.3, True)
            elif op == 3:
                a = a.t().contiguous().t()
            elif op == 4:
                a = torch.cat([a[:, 8:], a[:, :8]], 1)
            elif op == 5:
                a = (a + 1).mul_(0.5).add_(torch.rand_like(a)).sub_(1)
            elif op == 6:
                a = a + kept
            elif op == 7:
                a = torch.tanh(a).reshape(6, 32)[:, ::2].reshape(-1).repeat(2).view(12, 16)
            else:
                kept = a
                a = a.clone().fill_diagonal_(0.1)
        loss = model[0](a).pow(2).mean()
        loss.backward()
        o.step()
        yield loss.item()


class Programs(unittest.TestCase):
    def test_random_programs(self):
        followed, seeds = 0, 12 if scripts.LONG else 3
        for seed in range(seeds):
            want = execute(program, seed=seed)
            p = Planner(lambda number, iteration: random_plan(iteration, random.Random(seed), 0.5)[0])
            self.assertEqual(differs(want, execute(program, p, seed=seed)), "", f"seed {seed}")
            self.assertEqual(p.errors, [], f"seed {seed}")
            followed += sum(1 for _, plan, _ in p.iterations if plan)
        self.assertGreaterEqual(followed, seeds * 4)

    def test_mutated_plans(self):
        """A plan with an action less, twice or elsewhere is refused, or costs faults: the bits stay."""
        want = execute(scripts.plain, iterations=7)
        outcomes = set()
        for seed in range(16 if scripts.LONG else 3):
            choose = random.Random(seed)

            def make(number, iteration):
                plan = copy.deepcopy(random_plan(iteration, choose, 0.5)[0])
                b = choose.choice(plan["boundaries"])
                a = choose.choice(b["do"])
                how = choose.randrange(3)
                if how == 0:
                    b["do"].remove(a)
                elif how == 1:
                    b["do"].append(dict(a))
                else:
                    b["do"].remove(a)
                    choose.choice(plan["boundaries"])["do"].append(a)
                return plan

            p = Planner(make)
            self.assertEqual(differs(want, execute(scripts.plain, p, iterations=7)), "", f"seed {seed}")
            outcomes.add("refused" if p.errors else "followed")
        self.assertEqual(outcomes, {"refused", "followed"})

    def test_writes_that_the_schema_does_not_tell(self):
        """Batch norm writes its running statistics, and its schema does not say so."""
        p = Planner()
        execute(scripts.plain, p, iterations=4)
        group = next(g for g in p.graphs[0].groups if "native_batch_norm.default" in g.name)
        self.assertEqual(sorted(t.bytes for t in group.updates), [64, 64])  # mean and variance of 16 channels

    def test_what_may_run_twice(self):
        p = Planner()
        execute(scripts.plain, p, iterations=4)
        groups = p.graphs[0].groups
        drawn = [g for g in groups if g.random]
        self.assertTrue(drawn)
        self.assertFalse([g.name for g in drawn if g.once])
        self.assertTrue(next(g for g in groups if "native_batch_norm.default" in g.name).updates)


if __name__ == "__main__":
    unittest.main()
