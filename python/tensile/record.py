"""python -m tensile.record [-o FILE.json] train.py [args]: writes the graph of one iteration of a script.

The script runs until two iterations have done the same, and ends then. It need not call tensile.join: without it,
the first optimizer that it makes is the one whose steps end iterations.
"""

import argparse
import os
import runpy
import sys

import tensile
from tensile.link import hello, line, recorded
from tensile.session import say


class Writer:
    """A planner that writes the first graph and ends the script."""

    def __init__(self, path, name):
        self.path, self.name, self.done, self.why = path, name, False, None
        self.device = "cpu"

    def graph(self, number, iteration):
        with open(self.path, "wb") as f:
            f.write(line("hello", hello(self.device)))
            f.write(line("graph", recorded(number, iteration, self.name)))
        say(f"{self.path}: {len(iteration.groups)} ops, {len(iteration.planned())} storages")
        self.done = True

    def step(self, session):
        if self.done:
            raise SystemExit(0)

    def take(self):
        return None

    def applied(self, plan, iterations, error):
        pass

    def iteration(self, session, graph, plan, wall):
        self.device = session.device.type

    def left(self, session):
        pass

    def passive(self, iterations, why, always):
        if always:
            raise SystemExit(f"tensile: cannot record: {why}")


def main(argv):
    parser = argparse.ArgumentParser(prog="python -m tensile.record", description="Write the graph of one iteration.")
    parser.add_argument("-o", "--output", help="file (default: the script's name with .json)")
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    a = parser.parse_args(argv)
    name = os.path.splitext(os.path.basename(a.script))[0]
    writer = Writer(a.output or name + ".json", name)
    tensile._recording = writer
    _watch_optimizers(writer)
    sys.argv = [a.script] + a.args
    sys.path[0] = os.path.dirname(os.path.abspath(a.script))
    try:
        runpy.run_path(a.script, run_name="__main__")
    finally:
        tensile.leave()
    if not writer.done:
        raise SystemExit("tensile: the script ended before two iterations did the same: no graph")


def _watch_optimizers(writer):
    import torch

    init = torch.optim.Optimizer.__init__

    def made(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if tensile._session is None:
            tensile.start([p for g in self.param_groups for p in g["params"]], self, writer)

    torch.optim.Optimizer.__init__ = made


if __name__ == "__main__":
    main(sys.argv[1:])
