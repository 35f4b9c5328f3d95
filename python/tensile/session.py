"""The course of a script that has joined: recording, playback, and neither while it does something else."""

import os
import sys
import threading
import time
import traceback

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import modes
from .capture import Recorder, digest, first_difference, mark_fixed, written
from .copies import on_host
from .events import Events, Figures, highest
from .iteration import Iteration
from .load import load
from .player import Differs, Player
from .program import PlanError, Program
from .storages import Unsupported, Untyped, Weak, arguments, identity, resizable, storage_of, view


TRIES = 2
UNLIKE = 3  # pairs of iterations that were not alike, from which on it pauses before it looks again
STRANGE = 8  # backward passes, before each of which parameters had changed by no step, until it is passive
HIGHER = getattr(torch._ops, "HigherOrderOperator", ())
CLOCKED = 4  # which of the iterations of a plan is the first to have its steps measured


def fault(e):
    """Returns a line for an exception of this package's own work: what it is, and where it was raised."""
    at = traceback.extract_tb(e.__traceback__)[-1]
    return (f"{type(e).__name__} in its own work, which is a bug ({os.path.basename(at.filename)}, line {at.lineno}: "
            f"{' '.join(str(e).split())[:300]}); the script is not hurt: please report it")


def say(text):
    print("tensile: " + text, file=sys.stderr, flush=True)


class Session(TorchDispatchMode):
    """Sees all ops of the process's main thread.

    The planner is told of what happens: graph(number, iteration), applied(plan, iteration, error),
    iteration(...), passive(iteration, why, always). take() gives the newest plan that was not taken yet, or None;
    step(session) is called after each step of the optimizer, and may end the script.
    """

    supports_higher_order_operators = True  # such as torch.cond: else torch ends the script

    @classmethod
    def ignore_compile_internals(cls):  # else torch compiles nothing while it is on the stack
        return True

    samples = 32  # of so many iterations of a plan, the times of one's steps are measured
    measures = 2  # iterations of each plan in which the allocator's events are taken

    def __init__(self, parameters, optimizer, planner):
        super().__init__()
        self.parameters, self.optimizer, self.planner = parameters, optimizer, planner
        self.off = self.child = self.left = False
        self.inside = False  # ops are this session's own, though the mode is on
        self.hooks = None
        self.sees = False  # it is on torch's stack, and all hooks are there
        self.lock = threading.RLock()  # of what playback has where, which other threads may end
        self.phase = "forward"
        self.stepping = False  # an optimizer is making a step
        self.device = parameters[0].device if parameters else torch.device("cpu")
        self.figures = Figures(self.device) if self.device.type == "cuda" else None
        self.recorder = Recorder(self.device, self.figures)
        self.course = self._record
        self.stage = "look"
        self.cycle = None  # of the probed cycle: its first op's number, its digest and its records
        self.looked = None  # of the cycle before, where only two that are alike are worth a probe: the same
        self.unlike = 0  # how often two cycles in a row were not alike, since some were
        self.pause = 0  # steps until it looks again
        self.graphs = 0  # that were sent
        self.players = {}  # digest -> (number of the graph, player)
        self.player = self.number = None
        self.plan = 0  # number of the plan in force
        self.first = True  # the next iteration does not follow on a played one
        self.count = -1  # ops since the step's end, of a passive script that comes to a boundary; -1: none comes
        self.tries = 0  # beginnings of an iteration that may still turn out to be none, until the step's end
        self.aside = frozenset()  # while a loader runs: ids of the storages that playback moves
        self.thread = threading.get_ident()
        self.events, self.measured = None, 0  # of the allocator, and of how many iterations with the same plan
        self.followed = 0  # iterations begun with this plan
        self.steps = None  # nanoseconds of each step of the plan, as last measured, until they are sent
        self.loss = self.root = None
        self.trained = None  # ids of the parameters at the newest backward pass since a step
        self.foreign = False  # something else than a step has written one of them since
        self.strange = 0  # how often that was so before another backward pass
        self.marked = True  # there was a step since the boundary
        self.touched = self.reserved = 0  # the most that the allocator had and kept, as last measured
        self.retries = 0  # allocations of the newest iteration that failed and were tried again
        self.tight = False  # it was said that there were some
        self.failed = 0  # iterations in a row that were not the recorded one
        self.iterations = 0
        self.why = None  # how this iteration differed
        self.other = None  # how the first iteration that was another differed
        self.said = False  # that there was one
        self.reading = 0  # functions of torch that read memory without an op are running
        self.lent = False  # it was said that a tensor stays where it is
        self.begun = time.perf_counter_ns()
        os.register_at_fork(before=self._forks, after_in_child=self._forked)

    def _forks(self):
        if threading.get_ident() == self.thread:
            self.home()

    def _forked(self):
        self.off = self.child = True

    # ops

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.off or self.inside:
            return func(*args, **(kwargs or {}))
        if isinstance(func, HIGHER):
            self.stop(f"{func} runs ops that cannot be seen")
            return func(*args, **(kwargs or {}))
        if modes.below():  # a mode of torch's own, which traces: no op of an iteration
            self.home()
            return func(*args, **(kwargs or {}))
        return self.course(func, args, kwargs or {})

    def enter(self, hooks):
        """Begins to see ops."""
        self.hooks, self.sees = hooks, True
        modes.enter(self)

    def exit(self):
        """Leaves torch as it was, once no mode of the script is above this one, but for what tells of steps."""
        if self.sees and not self.stepping and modes.leave(self):
            self.sees = False
            self.hooks.rest()

    def compiled(self):
        """A function that torch compiles, or has compiled, is about to run."""
        if not self.off:
            with self.lock:
                self.stop("what torch compiles (torch.compile, torch.cond, flex_attention) has ops that cannot be seen")
        if threading.get_ident() == self.thread:
            self.exit()

    def knows(self, i):
        """Reports whether a storage is one that was recorded, or that a plan moves."""
        p = self.player
        return i in self.recorder.known or p is not None and any(
            p.bound[n] == i and p.weak[n] and not p.weak[n].expired() for n in p.managed)

    def met(self, name):
        """Another thread computes on what is known."""
        with self.lock:
            if not self.off:
                self.stop(f"the thread {name} computes on what the script trains, beside the one that has joined")

    def broken(self, e):
        """This package's own work has failed: it ends, and the script goes on."""
        why = fault(e)
        with self.lock:
            if not self.off:
                self.stop(why)

    def _look(self, func, args, kwargs):
        """Looks whether an op outside of a step writes a parameter: one of an optimizer that has not joined does."""
        if self.trained and self.phase == "forward":
            for t in written(func, args, kwargs):
                self.foreign |= t.layout == torch.strided and identity(t) in self.trained

    def _record(self, func, args, kwargs):
        recorder = self.recorder
        recorder.running = False
        try:
            self._look(func, args, kwargs)
            return recorder.run(func, args, kwargs, self.phase, self.stage == "probe")
        except Exception as e:
            if recorder.running:
                raise
            if isinstance(e, Unsupported):
                self.stop(str(e))
            else:
                self.broken(e)
            return recorder.ran[0] if recorder.ran else func(*args, **kwargs)
        finally:
            recorder.ran = None

    def _play(self, func, args, kwargs):
        p = self.player
        p.calling = False
        try:
            if p.pos < p.ops or self._next(p):
                out = p.run(func, args, kwargs)
                if p.broke is not None or p.other is not None:
                    self._amiss(p)
                return out
        except Differs as e:
            self._differs(str(e), func, args, kwargs)
            return func(*args, **kwargs)
        except Exception as e:
            if p.calling:
                raise
            self.broken(e)
            return func(*args, **kwargs)
        return self._pass(func, args, kwargs)

    def _next(self, p):
        """Ends one iteration and begins the next; False: what comes is none."""
        with self.lock:
            for a in p.end:
                p.act(a)
            if self.marked:
                self._boundary(False)
                return True
            self._lost("there was no step of the optimizer")
            return False

    def _differs(self, why, func, args, kwargs):
        try:
            self._lost(why)
            self._look(func, args, kwargs)
        except Exception as e:
            self.broken(e)

    def _amiss(self, p):
        """An op has run, and what it made is not what it was, or could not be looked at."""
        e, p.broke = p.broke, None
        try:
            if e is not None:
                raise e
            self._lost(p.other)
        except Exception as e:
            self.broken(e)

    def _pass(self, func, args, kwargs):
        try:
            self._look(func, args, kwargs)
            if self.count >= 0:
                p = self.player
                if self.count == p.iteration.tail or self.count > p.iteration.tail and p.opens(func, args, kwargs):
                    self._boundary(True)
                    self.course = self._play
                self.count += 1
        except Exception as e:
            self.broken(e)
        return func(*args, **kwargs) if self.off or self.course != self._play else self._play(func, args, kwargs)

    def _aside(self, func, args, kwargs):
        """Runs an op of a data loader, which is part of no iteration: what it touches stays where it is."""
        for t in arguments(args, kwargs):
            try:
                i = identity(t)
            except NotImplementedError:  # a sparse one
                continue
            s = self.recorder.known.get(i)
            if s is not None:
                s.stays = True
            if i in self.aside:
                self.stop("a data loader uses memory that the plan moves")
        return func(*args, **kwargs)

    def beside(self, run, args, kwargs):
        """Runs what is part of no iteration, such as a data loader."""
        course, self.course = self.course, self._aside
        inside, self.inside = self.inside, False
        p = self.player
        if p is not None and p.program is not None:
            self.aside = frozenset(p.bound[n] for n in p.managed)
        try:
            return run(*args, **kwargs)
        finally:
            self.aside = frozenset()
            self.inside = inside
            if self.course == self._aside:
                self.course = course

    def seen(self):
        """Reports whether ops that run here and now come to this session."""
        return not self.off and self.course != self._aside and threading.get_ident() == self.thread

    def load(self, run, args, kwargs):
        """Runs a data loader's next batch as one op of the iteration."""
        self.inside = True
        try:
            return self.course(load, (self, run, args, kwargs), {})[0].batch
        finally:
            self.inside = False

    # boundaries

    def _boundary(self, first):
        """Begins an iteration, with the newest plan."""
        p = self.player
        self.marked = False
        self._measure(False)
        if first and self.figures is not None:  # what came before is in no iteration
            self._figures()
        if p.took is not None and p.pos == p.ops:
            p.times.read()
            self.steps = p.took
        plan = self.planner.take()
        if plan is not None:
            first = self._apply(plan) or first
        p.begin(first)
        self._measure(True)
        if p.program is not None:
            self.followed += 1
            p.clock(self.followed % self.samples == CLOCKED)

    def _figures(self):
        """Measures what CUDA's allocator had at most since this was last called."""
        stats = self.figures.take()
        self.touched = stats["allocated_bytes"]["all"]["peak"]
        self.reserved = stats["reserved_bytes"]["all"]["peak"]
        return self.figures.failed(stats)

    def _measure(self, begins):
        """Measures what the allocator of a CPU has at most in an iteration, by its own events."""
        p = self.player
        if self.figures is not None:
            return
        if not begins:
            if self.events is not None:
                most, _ = highest(self.events.stop())
                if self.events.known and p.pos == p.ops:
                    self.touched = self.reserved = self.base + most  # a CPU's allocator keeps nothing
                self.events, p.measured = None, False
        elif self.measured < self.measures:
            self.measured += 1
            self.base = p.resident()
            self.events = Events().start()
            p.measured = self.events.known

    def _unmeasured(self):
        if self.events is not None and threading.get_ident() == self.thread:
            self.events.stop()
            self.events, self.player.measured = None, False

    def _apply(self, plan):
        """Takes a plan; reports whether another one is in force than before."""
        if plan["graph"] not in (0, self.number):
            self.planner.applied(plan, self.iterations, f"the script does graph {self.number} now")
            return False
        try:
            program = Program(self.player.iteration, plan) if plan["graph"] else None
        except PlanError as e:
            self.planner.applied(plan, self.iterations, str(e))
            return False
        self.player.leave()
        self.player.load(program)
        self.plan = plan["number"] if program else 0
        self.measured = self.followed = 0
        self.steps = None
        self._wall(plan["limit_bytes"])
        self.planner.applied(plan, self.iterations, None)
        return True

    def _wall(self, limit):
        """Has torch refuse what would make its allocator keep more than the limit; 0: it has none."""
        if self.device.type != "cuda":
            return
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        whole = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / whole) if limit else 1.0)

    def _lost(self, why):
        """Ends playback. If no step has begun since the last one's end, the iteration may still begin: what came
        instead was an evaluation, or the saving of a checkpoint."""
        self._unmeasured()
        p = self.player
        with self.lock:
            p.leave()
        self.course, self.count = self._pass, -1
        if self.tries and (p.pos <= p.iteration.opening or p.pos >= p.ops - p.iteration.tail):
            self.tries -= 1
            self.count = p.iteration.tail + 1
        self.why = self.why or why

    def mark(self):
        """The optimizer has made a step."""
        if self.child or self.left:
            return
        try:
            with modes.own():
                self._mark()
        except Exception as e:
            self.broken(e)
        if self.sees and not self.off and not modes.entered(self):
            self.stop("something has taken Tensile off torch's stack of modes")
        if self.off:
            self._unmeasured()
            self.exit()
        self.planner.step(self)

    def _mark(self):
        self.iterations += 1
        self.trained, self.foreign, self.strange, self.marked = None, False, 0, True
        now = time.perf_counter_ns()
        wall, self.begun = now - self.begun, now
        self.retries = self._figures() if self.figures is not None and self.course != self._record else 0
        if self.off:
            self.planner.iteration(self, 0, 0, wall)
            return
        if self.course == self._play:
            p = self.player
            if p.pos == p.ops - p.iteration.tail:
                self.failed, self.tries, self.why = 0, TRIES, None
                if self.retries and self.plan and not self.tight:
                    self.tight = True
                    say(f"iteration {self.iterations}: {self.retries} allocations failed at the limit and were tried "
                        "again; a kernel may have taken another way with less memory, to other bits, so such an "
                        "iteration does not count as planned, and the next plan leaves more free; a larger --memory "
                        "helps; this is said once")
                self.planner.iteration(self, self.number, self.plan, wall)
                return
            self._lost(f"the step ends at op {p.pos}, ended at op {p.ops - p.iteration.tail}")
        self.planner.iteration(self, 0, 0, wall)
        if self.pause:
            self.pause -= 1
            if not self.pause:
                self._again()
            return
        if self.course == self._pass:
            if self.why is not None:
                self.failed += 1
                self.passive(self.why)
                self.why = None
            self.tries = TRIES
            if self.other is not None and not self.said:  # the end of training is no reason to say so
                self.said = True
                say("an iteration was another than the recorded one, as with a smaller batch: it "
                    f"trained without the plan, and such iterations will ({self.other}); this is said once")
            if self.failed < 2:
                self.count = 0
                return
            self._again()
            return
        self._recorded()

    def _again(self):
        """Records from the next op on, after some that were not recorded."""
        self.failed, self.looked = 0, None
        self.stage, self.course = "look", self._record
        self.recorder.resume()

    def _unlike(self, before, records):
        """Two cycles in a row were not alike. A script of no steady shape is looked at ever more seldom."""
        self.unlike += 1
        if self.unlike < UNLIKE:
            self._probe()
            return
        if self.unlike == UNLIKE and not self.players:
            why = f"no two iterations in a row were alike: {first_difference(before, records)}"
            self.passive(why)
            say(f"{why}; it trains without a plan until two are, and looks for that ever more seldom; batches of one "
                "size help")
        self.pause, self.cycle = 2 ** (self.unlike - UNLIKE), None
        self.course, self.count = self._pass, -1

    def _probe(self):
        self.stage = "probe"
        self.recorder.sum(list(self.recorder.known.values()))

    def _unseen(self):
        """Reports whether something that is no op writes a parameter; whatever else it writes stays where it is."""
        self.recorder.compare(list(self.recorder.known.values()))
        found, self.recorder.unseen = self.recorder.unseen, []
        trained = {identity(p): p for p in self.parameters}
        for s in found:
            if s.id in trained:
                self.stop(f"something that is no op of torch has written {self._called(trained[s.id])}, as an "
                          "optimizer in C++ does: make it an op by torch.library (custom_op)")
                return True
        if found and not self.lent:
            self.lent = True
            say(f"a tensor of {found[0].bytes} bytes stays where it is, as something that is no op of torch has "
                "written it, and so do others like it; this is said once")
        return False

    def _recorded(self):
        if self.stage == "probe" and self._unseen():
            return
        begun, records = self.recorder.cycle()
        key = digest(records)
        ids = {s.id for r in records for s in r.ins + r.outs}
        if key in self.players and self.players[key][1].lasting <= ids:
            self._return(key)
        elif self.stage == "look":
            if self.unlike < UNLIKE or self.looked is not None and self.looked[0] == key:
                self._probe()
            elif self.looked is None:
                self.looked = key, records
            else:
                self._unlike(self.looked[1], records)
        elif self.stage == "probe":
            self.cycle, self.stage = (begun, key, records), "check"
        elif self.cycle[1] == key:
            mark_fixed({s for r in records for s in r.ins + r.outs})
            made = Iteration(key, self.cycle[2], records, begun, [identity(p) for p in self.parameters])
            self.graphs += 1
            self.players[key] = self.graphs, Player(made, self.device, self.lock)
            self.planner.graph(self.players[key][0], made)
            self._return(key)
        else:
            self._unlike(self.cycle[2], records)

    def _return(self, key):
        number, player = self.players[key]
        if player is not self.player and self.player is not None:
            self.player.load(None)
            self.plan, self.steps = 0, None
        self.number, self.player = number, player  # with its plan, if it is the one that was followed before
        self.cycle, self.unlike = None, 0
        self.course, self.count, self.tries = self._pass, 0, TRIES

    # what the mode does not see

    def home(self, reads=None):
        """Brings back what is away: what reads memory without an op finds it there. It may tell which tensor or storage."""
        if self.off or self.course != self._play:
            return
        if isinstance(reads, Untyped):
            one = reads._cdata
        elif type(reads) in (torch.Tensor, torch.nn.Parameter) and reads.layout == torch.strided:
            one = identity(reads)
        else:
            one = None
        try:
            with self.lock, modes.own():
                self.player.home(one)
        except Exception as e:
            self.broken(e)

    def read(self):
        """Brings all back for something else than torch that reads addresses, and has it stay until the next step or
        the next iteration: ops in between would move it."""
        if not self.off and self.course == self._play and threading.get_ident() == self.thread:
            try:
                with modes.own():
                    self._lost("memory is read by its address")
            except Exception as e:
                self.broken(e)

    def lend(self, memory, name):
        """Leaves the memory of a tensor or a storage where it is from now on: something else than torch is going to
        read it, or to write it, of which no op tells."""
        if self.off or threading.get_ident() != self.thread or memory.device != self.device:
            return
        self.home(memory)
        if self.reading:
            return
        try:
            i = memory._cdata if isinstance(memory, Untyped) else identity(memory)
        except NotImplementedError:  # a sparse one, of which nothing moves
            return
        s = self.recorder.known.get(i)
        if s is not None:
            s.stays = s.unseen = True
        plays = self.player if self.course == self._play else None
        for key in [key for key, (_, p) in self.players.items() if p.lent(i, p is plays)]:
            if self.players.pop(key)[1] is self.player:  # with ops that may read something else when they run again
                with modes.own():
                    self._anew()
        self._stays(memory, f"{name}() gives its address away")

    def _anew(self):
        """Has iterations recorded anew from the next step on, without a plan until then."""
        if self.course == self._play:
            self._lost("")
        self.why, self.count, self.failed = None, -1, 2

    def _called(self, tensor):
        """Returns what a person calls a tensor or a storage."""
        if isinstance(tensor, Untyped):
            return f"a tensor of {tensor.nbytes()} bytes"
        i = identity(tensor)
        kind = "parameter" if any(identity(p) == i for p in self.parameters) else "tensor"
        return f"a {kind} of shape {' x '.join(map(str, tensor.shape)) or '1'}"

    def _stays(self, tensor, why):
        """Says once that a tensor stays where it is."""
        if not self.lent:
            self.lent = True
            say(f"{self._called(tensor)} stays where it is, as {why}, and so do others like it; kernels that are ops "
                "by torch.library (triton_op, custom_op) let a plan move them; this is said once")

    def rest(self):
        """Takes from the device what is trained, with gradients and what the optimizer keeps; returns the copies."""
        self.home()
        away = {}
        trained = {id(p): p for g in self.optimizer.param_groups for p in g["params"]}
        trained.update((id(p), p) for p in self.parameters)
        try:
            with modes.own():
                for p in trained.values():
                    kept = self.optimizer.state.get(p, {}).values()
                    for t in (p, p.grad, *(v for v in kept if isinstance(v, torch.Tensor))):
                        if t is None or t.layout != torch.strided or t.device != self.device:
                            continue
                        s = storage_of(t)
                        if identity(t) in away or not s.nbytes() or not resizable(s):
                            continue
                        away[identity(t)] = s, on_host(s.nbytes()).copy_(view(s))
                        s.resize_(0)
        except BaseException:
            self.wake(away)
            raise
        return away

    def wake(self, away):
        """Brings back what rest has taken."""
        with modes.own():
            for s, copy in away.values():
                s.resize_(copy.numel())
                view(s).copy_(copy)

    def trains(self, module):
        """Reports whether a module has parameters of the model."""
        mine = {id(p) for p in self.parameters}
        return any(id(p) in mine for p in module.parameters())

    def trained_by(self, optimizer):
        """Reports whether an optimizer that the script has made takes the place of the one that joined."""
        mine = {id(p) for p in self.parameters}
        return not self.child and any(id(p) in mine for g in optimizer.param_groups for p in g["params"])

    def began_at(self, tensors):
        """A backward pass begins at one tensor, or several: one number is a loss."""
        if not self.off and not self.stepping:
            self.strange += self.foreign
            self.trained, self.foreign = {identity(p) for p in self.parameters}, False
            if self.strange == STRANGE:
                self.stop("something else than the optimizer that joined trains the parameters: join with the one "
                          "whose steps end iterations")
        if isinstance(tensors, torch.Tensor) and tensors.numel() == 1 and not self.off:
            self.root = identity(tensors), Weak(storage_of(tensors))

    def told(self, tensor, value):
        """The script has read a number."""
        if self.root is not None and not self.off and identity(tensor) == self.root[0] and isinstance(value, float):
            self.loss = value

    def passive(self, why):
        if self.other is None:
            self.other = why
        self.planner.passive(self.iterations, why, False)

    def stop(self, why):
        """Ends all: the script goes on without a plan."""
        self._end()
        say(f"passive from now on: {why}")
        self.planner.passive(self.iterations, why, True)

    def leave(self):
        """Ends all as the script wants it: what it does from now on nobody sees."""
        self._end()
        self.left = True
        if self.hooks is not None:
            self.exit()
            self.hooks.undo()
        if not self.child:
            self.planner.left(self)

    def _end(self):
        try:
            if self.player is not None:
                self._unmeasured()
                with self.lock, modes.own():
                    self.player.leave()
        finally:
            self.off = True
            for _, p in self.players.values():
                p.over = True
