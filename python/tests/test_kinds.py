"""Kinds of iterations that come in turn, and iterations that are not looked at."""

import unittest

import torch
from scripts import Planner, differs, execute
from test_bits import at_random
from test_modes import script

from tensile import modes
from tensile.kinds import Kinds
from tensile.session import STEADY, UNSEEN


def nothing(number, iteration):
    """Returns a plan that moves nothing."""
    slots = iteration.planned()
    return {"limit_bytes": 0, "entry": [i for i, t in enumerate(slots) if t.persistent], "boundaries": []}


class Order(unittest.TestCase):
    def right(self, comes, after):
        """Returns which of the kinds that come after some are foretold."""
        order, found = Kinds(), []
        for i, kind in enumerate(comes):
            if i >= after:
                found.append(order.next() == kind)
            order.add(kind)
        return found

    def test_next(self):
        """What comes again and again in the same order is foretold from its third time on."""
        for period in "a", "ab", "aab", "aaab", "abc", "aaabaaaaab", "a" * 31 + "b":
            with self.subTest(period=period):
                self.assertTrue(all(self.right(period * 6, 3 * len(period))))

    def test_once(self):
        """What came once is not foretold."""
        self.assertEqual(self.right("aaaaa" + "b" + "a" * 20, 7), [True] * 19)
        order = Kinds()
        for kind in "a", "a", None:
            order.add(kind)
        self.assertEqual(order.next(), "a")
        order.add(None)
        self.assertEqual(order.next(), "a")
        order.add(None)
        self.assertIsNone(order.next())

    def test_unknown(self):
        """One that is not known is not foretold where it does not come, as all that it brings is a look in vain."""
        for epoch in "a" * 11 + "?", "a" * 10 + "??", "ab" * 5 + "a?", "abb" * 4 + "??":
            with self.subTest(epoch=epoch):
                order, found = Kinds(), ""
                for i, kind in enumerate(epoch * 8):
                    if i >= 2 * len(epoch) and order.next() is None:
                        found += kind
                    order.add(None if kind == "?" else kind)
                self.assertEqual(found.strip("?"), "")

    def test_forget(self):
        order, (a, b, c) = Kinds(), (object(), object(), object())
        for kind in [a, b] * 4:
            order.add(kind)
        order.replace(a, c)
        self.assertIs(order.next(), c)
        order.forget(c)
        self.assertIs(order.next(), b)
        self.assertTrue(order.steady(b, 1))


class Turns(unittest.TestCase):
    """Scripts of several kinds of iteration."""

    def setUp(self):
        torch.set_num_threads(1)

    def planned(self, forward, make=None, **options):
        want = execute(script, forward=forward, **options)
        p = Planner(make or at_random(3, 0.6))
        self.assertEqual(differs(want, execute(script, p, forward=forward, **options)), "")
        self.assertEqual(p.errors, [])
        return p, "".join(".P"[bool(plan)] for _, plan, _ in p.iterations)

    def test_turns(self):
        """Kinds that come in turn each have a plan after their third or fourth time."""
        for every in 2, 3, 5:
            with self.subTest(every=every):
                p, planned = self.planned(lambda i, model, x: model(x).tanh() if i % every == 1 else model(x),
                                          iterations=12 * every)
                self.assertEqual(planned[6 * every:], "P" * 6 * every)
                self.assertEqual(len({graph for graph, _, _ in p.iterations[6 * every:]}), 2)

    def test_second(self):
        """A kind is known after its second time, of which only the first ops were played: those that the one before it has,
        too. If it came alone each time, the one before it is expected next, else the same again."""
        for odd, want in ((lambda i: i > 5 and i % 4 == 2, "...PPP.PPP.PPP.PPPPPPPPPPPPPPP"),
                          (lambda i: i > 8, "...PPPPPP..PPPPPPPPPPPPPPPPPPP")):
            p, planned = self.planned(lambda i, model, x, odd=odd: model(x).tanh() if odd(i) else model(x), iterations=30)
            self.assertLessEqual(sum(a != b for a, b in zip(planned, want)), 1, planned)  # one is foretold a time later
            self.assertEqual(planned[:13], want[:13])

    def test_ends_early(self):
        """A kind of iteration may be the beginning of another."""
        def forward(i, model, x):
            out = model(x)
            for _ in range(3 * (i % 2)):
                out = out + 1
            return out
        _, planned = self.planned(forward, iterations=24)
        self.assertEqual(planned[12:], "P" * 12)

    def test_by_chance(self):
        """Of kinds that come by chance one has a plan."""
        odd = torch.randint(0, 4, (60,), generator=torch.Generator().manual_seed(1)).tolist()
        _, planned = self.planned(lambda i, model, x: model(x).tanh() if odd[i] == 0 else model(x), iterations=60)
        self.assertGreater(planned.count("P"), 20)

    def test_looks_away(self):
        """Where a plan moves nothing few iterations are looked at; those of another kind are found, and planned."""
        seen = []

        def forward(i, model, x):
            seen.append(any(type(m).__name__ == "Session" for m in stack()))
            return model(x).tanh() if i >= 60 else model(x)

        def stack():
            return [modes._get_dispatch_stack_at(n) for n in range(modes._len_torch_dispatch_stack())]

        p, planned = self.planned(forward, nothing, iterations=120)
        seen = "".join(".S"[s] for s in seen[120:])
        begin, away = 3 + STEADY, "." * UNSEEN
        self.assertEqual(seen[:begin + UNSEEN + 2], "S" * begin + away + "S" + ".")
        self.assertEqual(planned[3:60], "P" * 57)
        self.assertEqual(len(p.graphs), 3)  # of the first, of that beside others, of the other
        self.assertEqual(planned[-20:], "P" * 20)

    def test_looks_for_plans(self):
        """Another plan that comes while nothing is looked at is taken at once."""
        p = Planner(nothing)

        def change(i, model):
            if i == 20 and p.plans:
                p.plan = p.make(1, p.graphs[0])
                p.plan.update(number=2, graph=1)
                p.next.append(p.plan)
            return i
        want = execute(script, after=change, iterations=40)
        self.assertEqual(differs(want, execute(script, p, after=change, iterations=40)), "")
        self.assertEqual([plan for _, plan, _ in p.iterations][20:24], [1, 1, 2, 2])


if __name__ == "__main__":
    unittest.main()
