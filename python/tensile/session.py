"""The course of a script that has joined: recording, playback, and neither while it does something else."""

import functools
import os
import sys
import threading
import time
import traceback

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import modes, pieces, saved
from .capture import Recorder, TooLarge, digest, first_difference, mark_fixed
from .copies import on_host
from .events import Figures, Peaks
from .iteration import Iteration
from .kinds import Kinds
from .load import load
from .player import Changed, Differs, Lent, Player
from .program import PlanError, Program
from .segments import Segments
from .storages import (Unsupported, Untyped, Weak, arguments, identity, lent_storages, random_state, resizable,
                       set_random_state, storage_of, view, written)


TRIES = 2
UNLIKE = 6  # recorded iterations in a row that were like none before, from which on it pauses before it looks again
KEPT = 8  # newest recorded iterations that may come again, and as many kinds that are planned for
STRANGE = 8  # backward passes, before each of which parameters had changed by no step, from which on these end iterations
DETACH = torch.ops.aten.detach.default  # no op of an iteration: torch saves results by it where no hook is told of that
HIGHER = torch._ops.HigherOrderOperator
STEADY = 6  # iterations in a row by a plan that moves nothing, after which ops are not looked at
UNSEEN = 31  # iterations that are not looked at then, before the next that is
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
    iteration(...), passive(iteration, why, always). take() gives a plan that was not taken yet, or None;
    step(session) is called after each step of the optimizer, and may end the script. A planner whose plans
    come meanwhile has the newest that was not taken as plan.
    """

    supports_higher_order_operators = True  # such as torch.cond: else torch ends the script

    @classmethod
    def ignore_compile_internals(cls):  # else torch compiles nothing while it is on the stack
        return True

    samples = 32  # the steps of one in this many iterations of a plan are timed
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
        self.probes = False  # the cycle that is recorded
        self.waits = False  # what is recorded may still turn out to come before an iteration that is known
        self.cut = None  # how the op is cut whose pieces run
        self.cycles = {}  # digest -> first op's number, records and whether it was probed, of those that may come again
        self.before = None  # records of the last one that was recorded
        self.unlike = 0  # how many in a row were like none before
        self.pause = 0  # steps until it looks again
        self.graphs = 0  # that were sent
        self.kinds, self.order = [], Kinds()  # players, each of a kind of iteration, and how they follow each other
        self.player = self.coming = None  # of this iteration, and of the next
        self.unknown = False  # what comes is recorded from the next step on
        self.unseen = 0  # iterations that come before one that is looked at, while the mode is off the stack
        self.first = True  # the next iteration does not follow on a played one
        self.count = -1  # ops since the step's end, of a passive script that comes to a boundary; -1: none comes
        self.tried = set()  # players that this iteration has turned out not to be of
        self.tries = 0  # beginnings of an iteration that may still turn out to be none, until the step's end
        self.aside = frozenset()  # while a loader runs: ids of the storages that playback moves
        self.thread = threading.get_ident()
        self.notes, self.saver, self.room = saved.Notes(self), saved.Saver(self), saved.Room(self)
        self.segments = None  # what records iterations whose ops cannot be seen; None: they can
        self.peaks = Peaks()
        self.profiling = False  # the script has a profiler of torch
        self.steps = None  # number of a plan and nanoseconds of each of its steps, as last measured, until they are sent
        self.loss = self.root = None
        self.trained = None  # ids of the parameters at the newest backward pass since a step
        self.foreign = False  # something else than a step has written one of them since
        self.strange = 0  # how often that was so before another backward pass
        self.unstepped = False  # something else than steps trains them
        self.marked = True  # there was a step since the boundary
        self.touched = self.reserved = 0  # the most that the allocator had and kept, as last measured
        self.retries = 0  # allocations of the newest iteration that failed and were tried again
        self.tight = False  # it was said that there were some
        self.iterations = 0
        self.why = None  # how this iteration differed
        self.other = None  # how the first iteration that was another differed
        self.said = False  # that there was one
        self.reading = 0  # functions of torch that read memory without an op are running
        self.lent = False  # it was said that a tensor stays where it is
        self.begun = time.perf_counter_ns()
        self.wall = self.limit = 0  # nanoseconds of the newest iteration, and bytes that the newest plan may have
        os.register_at_fork(before=self._forks, after_in_child=self._forked)

    @property
    def plan(self):
        """Number of the plan in force for iterations of the kind that comes; 0: none."""
        return self.player.plan if self.player is not None else 0

    @property
    def number(self):
        """Number of the graph of that kind; None: there is none."""
        return self.player.graph if self.player is not None else None

    def _forks(self):
        if threading.get_ident() == self.thread:
            self.home()

    def _forked(self):
        self.off = self.child = True
        self.saver.moves = None

    # ops

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.off and self.peaks.taken:  # another thread has ended all
            self._events(False)
        if self.off or self.inside or func is DETACH:
            return func(*args, **(kwargs or {}))
        if isinstance(func, HIGHER):
            self.stop(f"{func} runs ops that cannot be seen")
            return func(*args, **(kwargs or {}))
        if modes.below():  # a mode of torch's own, which traces: no op of an iteration
            self.home()
            return func(*args, **(kwargs or {}))
        return self._run(func, args, kwargs or {})

    def _run(self, func, args, kwargs):
        return self._within(func, args, kwargs) if self.limit else self.course(func, args, kwargs)

    def _within(self, func, args, kwargs):
        """Runs an op. One that has found no memory runs again, once, when all that may has gone; not one that writes, which may
        have written by half."""
        if not self._makes_room():
            return self.course(func, args, kwargs)
        draws = torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())
        before = random_state(self.device.type) if draws else ()
        failed = False
        try:
            out = self.course(func, args, kwargs)
        except torch.OutOfMemoryError as e:
            if isinstance(e, TooLarge) or not self.unplanned() or written(func, args, kwargs) or not self.room.clear():
                raise
            failed = True
        if failed:  # out here, where nothing holds what the op has made before it failed
            set_random_state(before)
            out = self.course(func, args, kwargs)
        self.room.used.made(out)
        return out

    def _makes_room(self):
        return bool(self.limit) and self.unplanned() or bool(self.room.used.gone)

    def _ready(self, func, args, kwargs):
        """An op is about to run: what it uses is brought back, if it is away where there is no plan."""
        if not self._makes_room():
            return
        try:
            self.room.used.ready(func, args, kwargs)
        except torch.OutOfMemoryError:
            raise
        except Exception as e:
            self.broken(e)

    def enter(self, hooks):
        """Begins to see ops."""
        self.hooks, self.sees = hooks, True
        modes.enter(self)
        self._take()
        self.room.begin()
        self.look_at_saved()

    def unplanned(self):
        """Reports whether the iteration that runs, or comes, has no plan."""
        if self.off or self.unseen or self.course == self._saved:
            return False
        p = None
        if self.course == self._play or self.course == self._pass and self.count >= 0:
            p = self.coming or self.player
        return p is None or p.program is None or self.segments is not None

    def find_lent(self):
        """Looks which storages something else than ops reads or writes already: these stay where they are."""
        try:
            with modes.own():
                self.recorder.lent.update(lent_storages(self.parameters))
        except Exception as e:
            self.broken(e)

    def exit(self):
        """Leaves torch as it was, once no mode of the script is above this one, but for what tells of steps."""
        if self.sees and not self.stepping and threading.get_ident() == self.thread and modes.leave(self):
            self.sees = False
            self.look_at_saved()
            self.hooks.rest()

    def _look_away(self):
        """Leaves the stack for some iterations where a plan moves nothing: each op costs nothing then."""
        p = self.player
        if (self.course == self._play and p.program is not None and not p.managed and not self.stepping
                and not self.unstepped and p.followed >= STEADY and self.order.steady(p, STEADY) and modes.leave(self)):
            self._events(False)
            self.course, self.unseen = self._unlooked, UNSEEN

    def _look_again(self):
        modes.enter(self)
        self.course, self.count, self.tries, self.unseen = self._pass, 0, TRIES, 0
        if self.unknown:
            self._again()

    def _unlooked(self, func, args, kwargs):
        return func(*args, **kwargs)

    def _saved(self, func, args, kwargs):
        """The course of an iteration that is played by what autograd saves: ops are not looked at."""
        return func(*args, **kwargs)

    def look_at_saved(self, on=True):
        """Has this session told of what autograd saves while that is recorded, or played back."""
        if threading.get_ident() == self.thread:
            notes = self.recording() or self.limit and self.unplanned()
            hooks = self.notes if notes else self.saver if self.course == self._saved else None
            saved.enter(hooks if on and self.sees and not self.off else None)

    def _choose_way(self):
        """At the end of a step: the iteration that comes is played by what autograd saves, if its kind can be."""
        plays = self.course == self._play
        if not plays and self.player is not None:  # before that the limit is not kept
            with self.lock, modes.own():
                self._take()
        p = self.coming or self.player if plays or self.course == self._pass and self.count == 0 else None
        if p is not None and torch._C._current_graph_task_id() != -1:
            p.moves = None  # a step within a backward pass, where torch undoes what is done to its stacks
        if p is None or p.moves is None or self.unstepped:
            if self.segments is None and not modes.entered(self):
                modes.enter(self)
            self.notes.begin()
            self.room.begin()
            self.look_at_saved()
            if self.segments is not None and self.course in (self._segment, self._unlooked):
                self.segments.begin()
            return
        with self.lock, modes.own():
            if plays:
                self.player.leave()
            self.room.used.home()
            self.player, self.coming, self.course, self.marked = p, None, self._saved, False
            self.tried.clear()
            if self.figures is not None:
                self._figures()
            else:
                self.touched = self.reserved = p.touched
            self._measure(p, p.moves.resident)
            p.followed += 1
        modes.leave(self)
        self.saver.begin(p.moves)
        self.look_at_saved()

    def compiled(self):
        """A function that torch compiles, or has compiled, is about to run. Its ops cannot be seen, but what it saves can."""
        if not saved.AVAILABLE:
            if not self.off:
                with self.lock:
                    self.stop("what torch compiles (torch.compile, torch.cond, flex_attention) has ops that cannot be seen")
            self.exit()
            return
        if self.off or self.segments is not None:
            return
        try:
            if threading.get_ident() != self.thread:
                with self.lock:
                    self.stop("another thread runs what torch compiles, whose ops cannot be seen")
                return
            with self.lock, modes.own():
                self.segments = Segments(self)
                self._events(False)
                self.room.used.home()
                if self.player is not None:
                    self.player.leave()
                    self.saver.moves = None
                self.kinds, self.order, self.player, self.coming = [], Kinds(), None, None
                self.cycles, self.before, self.unlike, self.pause = {}, None, 0, 0
                self.course, self.count, self.unseen, self.unknown = self._unlooked, -1, 0, True
                self.room.begin()
            modes.leave(self)
        except Exception as e:
            self.broken(e)

    def recording(self):
        return self.course in (self._record, self._segment)

    def _segment(self, func, args, kwargs):
        """The course of an iteration that is recorded by what autograd saves."""
        return func(*args, **kwargs)

    def knows(self, i):
        """Reports whether a storage is one that was recorded, or that a plan moves."""
        p = self.player
        return i in self.recorder.known or p is not None and any(
            p.bound[n] == i and p.weak[n] and not p.weak[n].expired() for n in p.managed)

    def met(self, name, tensors, writes):
        """Another thread, which has the lock, is about to compute on what is known: it finds that at home. That it writes
        something nobody here would notice later."""
        if not self.off and writes:
            self.stop(f"the thread {name} writes what the script trains, beside the one that has joined")
        for t in tensors:
            self.home(t)

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

    def _pieces(self, cut, func, args, kwargs):
        """Runs an op in pieces, each as an op of its own."""
        self.cut, outs = cut, []
        try:
            for part in cut.parts(args):
                outs.append(func(*part, **kwargs) if self.off else self._run(func, part, kwargs))
        finally:
            self.cut = None
        return pieces.joined(outs)

    def _record(self, func, args, kwargs):
        recorder = self.recorder
        recorder.running = False
        try:
            self.waits &= self.phase == "forward"
            cut = None
            if self.waits and self.player.opens(func, args, kwargs):
                self.waits = False
                self._boundary(True)
                self.course = self._play
            elif self.cut is None:
                cut = pieces.cut(func, args, kwargs, self.device)
            if cut is None and self.course == self._record:
                self._look(func, args, kwargs)
                recorder.running = True
                self._ready(func, args, kwargs)
                recorder.running = False
                return recorder.run(func, args, kwargs, self.phase, self.probes, self.cut)
        except Exception as e:
            if recorder.running or isinstance(e, TooLarge):
                raise
            if isinstance(e, Unsupported):
                self.stop(str(e))
            else:
                self.broken(e)
            return recorder.ran[0] if recorder.ran else func(*args, **kwargs)
        finally:
            recorder.ran = None
        return self._play(func, args, kwargs) if cut is None else self._pieces(cut, func, args, kwargs)

    def _play(self, func, args, kwargs):
        p, cut = self.player, None
        p.calling = False
        try:
            if p.pos < p.ops or self._next(p, func):
                p = self.player
                p.calling = False
                c = p.checks[p.pos]
                if c.cut is not None and self.cut is None:
                    if p.asleep or p.others(c.whole, args, kwargs):
                        c = c.whole
                    elif c.cut.fits(func, args):
                        cut = c.cut
                if cut is None:
                    if p.program is None or self.room.used.gone:
                        p.calling = True
                        self._ready(func, args, kwargs)
                        p.calling = False
                    out = p.run(c, func, args, kwargs)
                    if p.broke is not None or p.other is not None:
                        self._amiss(p)
                    return out
        except Differs as e:
            if self._other(p, func):
                return self._play(func, args, kwargs)
            return self._differs(str(e), func, args, kwargs)
        except Exception as e:
            if p.calling:
                raise
            self.broken(e)
            return func(*args, **kwargs)
        return self._pass(func, args, kwargs) if cut is None else self._pieces(cut, func, args, kwargs)

    def _other(self, p, func=None):
        """Looks for another kind of iteration that the one that plays turns out to be, as an op comes, or the step ends."""
        try:
            with self.lock:
                self.tried.add(p)
                for q in self.kinds:
                    if not p.over and q not in self.tried and q.like(p, func):
                        self.peaks.forget()
                        self.player = q
                        return True
        except Exception as e:
            self.broken(e)
        return False

    def _next(self, p, func):
        """Ends one iteration and begins the next, or goes on as a longer kind of iteration; False: what comes is none."""
        with self.lock:
            if not p.asleep:
                for a in p.end:
                    p.act(a)
            if self.marked:
                self._boundary(False)
                return True
            if self._other(p, func):
                return True
            self._lost("there was no step of the optimizer")
            return False

    def _differs(self, why, func, args, kwargs):
        try:
            self._lost(why, True)
        except Exception as e:
            self.broken(e)
        return func(*args, **kwargs) if self.off else self.course(func, args, kwargs)

    def _amiss(self, p):
        """An op has run, and what it made is not what it was, or could not be looked at."""
        e, p.broke = p.broke, None
        try:
            if isinstance(e, Lent):
                self._anew_without([p])
                return
            if p.other is None and isinstance(e, Changed):
                self.peaks.forget()
                with self.lock:
                    p.sleep()
                return
            if p.other is None:
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
        except Exception as e:
            self.broken(e)
        if not self.off and self.course == self._play:
            return self._play(func, args, kwargs)
        if self.stepping and self.cut is None and self._makes_room():
            cut = pieces.cut(func, args, kwargs, self.device)
            if cut is not None:
                return self._pieces(cut, func, args, kwargs)
        self._ready(func, args, kwargs)
        out = func(*args, **kwargs)
        try:
            if not self.off and self.count >= 0:
                self.count += self.player.came(self.count, func, args, out)
        except Exception as e:
            self.broken(e)
        return out

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
        self._ready(func, args, kwargs)
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
        blind = self._aside, self._unlooked, self._saved, self._segment
        return not self.off and self.course not in blind and threading.get_ident() == self.thread

    def load(self, run, args, kwargs):
        """Runs a data loader's next batch as one op of the iteration."""
        self.inside = True
        try:
            return self.course(load, (self, run, args, kwargs), {})[0].batch
        finally:
            self.inside = False

    # boundaries

    def _boundary(self, first):
        """Begins an iteration of the kind that comes next, with its newest plan."""
        with self.lock:
            self._begin(first)

    def _begin(self, first):
        p = self.player
        self.marked = False
        self.tried.clear()
        if p.pos != p.ops:
            self.peaks.forget()
        if first and self.figures is not None:  # what came before is in no iteration
            self._figures()
        if p.took is not None and p.pos == p.ops and not p.asleep and p.size == p.room:
            p.times.read()
            self.steps, p.took = (p.plan, p.took), None
        first = first or p.asleep
        if p.grown and not p.grows:  # else the next may be larger still
            self._grow(p)
        first = p in self._take() or first
        q, self.coming = self.coming or p, None
        if q is not p:
            self.player = q
            q.begin(True, p, self.room.used.back)
        else:
            q.begin(first, None, self.room.used.back)
        if q.program is None:
            q.checks = q.pieces if self.room.used.gone else q.usual
        if self.figures is None:
            self.touched = self.reserved = q.touched
        self._measure(q, q.resident())
        if q.program is not None:
            self.room.home()
            q.followed += 1
            q.clock(q.followed % self.samples == CLOCKED)

    def _take(self):
        """Takes the plans that have come; returns the players that have another one in force now."""
        changed = []
        while (plan := self.planner.take()) is not None:
            changed.append(self._apply(plan))
        return changed

    def _figures(self):
        """Measures what CUDA's allocator had at most since this was last called."""
        stats = self.figures.take()
        self.touched = stats["allocated_bytes"]["all"]["peak"]
        self.reserved = stats["reserved_bytes"]["all"]["peak"]
        return self.figures.failed(stats)

    def _measure(self, p, resident):
        """An iteration begins, which has some bytes then and is to be measured on a CPU if few of its plan were."""
        if self.figures is not None or not self.peaks.taken:
            return
        tell = None
        if self._measures(p):
            p.begun += 1
            # the first tells the end of nothing that was there before, which the allocator knows from then on
            tell = functools.partial(p.tell, p.program) if p.begun > 1 else None
        self.peaks.begin(resident, tell)

    def _measures(self, p):
        """Reports whether an iteration is to be measured: not all that are begin and end as they should."""
        return p.measured < self.measures and p.begun < 4 * self.measures

    def _span(self):
        """At the end of a step: takes the allocator's events up to the next one's, if an iteration is to be measured."""
        p = self.coming or self.player
        plays = self.course in (self._play, self._saved) or self.course == self._pass and self.count >= 0
        self._events(plays and self.figures is None and not self.off and not self.unseen and not self.profiling
                     and (self._measures(p) or self.peaks.open()))

    def profiled(self, on):
        """The script profiles from now on, or no more. Torch has one profiler at a time, and the script's comes first."""
        self.profiling = on
        try:
            if on:
                self._events(False)
        except Exception as e:
            self.broken(e)

    def _events(self, on):
        if on or self.peaks.events is not None:
            self.peaks.span(on)
            for p in self.kinds:
                p.events = self.peaks.taken

    def _grow(self, p):
        """An iteration was larger than all of its kind before: it is planned for anew."""
        p.iteration.grow(p.grown)
        p.grown = {}
        self._send(p)
        if p.program is None:
            p.load(None)  # with room for that

    def _send(self, p):
        self.graphs += 1
        p.sent(self.graphs)
        self.planner.graph(self.graphs, p.iteration)

    def _apply(self, plan):
        """Takes a plan, and returns the player that has another one in force now than before; 0 is a graph of all."""
        of = plan["graph"]
        p = next((p for p in self.kinds if of in p.sizes), None) if of else self.player
        if of and p is None:
            self.planner.applied(plan, self.iterations, f"no iteration is of graph {of} any more")
            return None
        try:
            program = Program(p.iteration, plan) if of else None
        except PlanError as e:
            self.planner.applied(plan, self.iterations, str(e))
            return None
        limit = plan["limit_bytes"]
        for q in list(self.kinds):
            if of and q is not p and not (q.program is not None and 0 < limit < q.bytes):
                continue
            if q is self.player:
                q.leave()
            q.load(program if q is p else None, plan)
        if not limit:
            self.room.used.home()
        self.limit = limit
        self.recorder.room = self.room.fits if limit else None
        self.recorder.most_bytes = limit if plan.get("strict") else 0
        if self.kinds:  # before that, what cannot go has to fit, too
            self._wall(limit)
        self.planner.applied(plan, self.iterations, None)
        return p

    def _wall(self, limit):
        """Has torch refuse what would make its allocator keep more than the limit; 0: it has none."""
        if self.device.type != "cuda":
            return
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        whole = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / whole) if limit else 1.0)

    def _lost(self, why, rest=False):
        """Ends playback, and may have the rest of the iteration recorded. If no step has begun since the last one's end, the
        iteration may still begin: what came instead was an evaluation, or the saving of a checkpoint."""
        self.peaks.forget()
        p = self.player
        with self.lock:
            p.leave()
        self.course, self.count = self._pass, -1
        if self.tries and (p.pos <= p.iteration.opening or p.pos >= p.ops - p.iteration.tail):
            self.tries -= 1
            self.count = p.iteration.tail + 1
        self.why = self.why or why
        if rest and torch.is_grad_enabled() and p.pos < p.ops and len(self.kinds) < KEPT and self.unlike < UNLIKE:
            self.course, self.waits = self._record, self.count >= 0
            self.notes.whole = False
            self.recorder.follow(p)
            self._probe(bool(self.order.runs) and self.order.runs[-1][0] is None)

    def mark(self):
        """The optimizer has made a step."""
        if self.child or self.left:
            return
        by_saved = self.course == self._saved
        try:
            with modes.own():
                self._mark()
                self._span()
        except Exception as e:
            self.broken(e)
        if (self.sees and not self.off and not self.unseen and not by_saved and self.segments is None
                and not modes.entered(self)):
            self.stop("something has taken Tensile off torch's stack of modes")
        if self.off:
            self.exit()
        self.planner.step(self)
        if self.off:
            return
        if self.segments is not None:
            pass
        elif not self.unseen:
            self._look_away()
        elif self.unseen == 1 or self.unknown or getattr(self.planner, "plan", None) is not None:
            self._look_again()
        else:
            self.unseen -= 1
        if self.sees and not self.unseen:
            try:
                self._choose_way()
            except Exception as e:
                self.broken(e)

    def _mark(self):
        self.iterations += 1
        self.trained, self.foreign, self.strange, self.marked = None, False, 0, True
        now = time.perf_counter_ns()
        wall, self.begun = now - self.begun, now
        self.wall = wall
        self.retries = self._figures() if self.figures is not None and not self.recording() else 0
        if self.off:
            self.planner.iteration(self, 0, 0, wall)
            return
        if self.unseen:
            self.planner.iteration(self, self.player.of, self.player.plan, wall)
            return
        if self.segments is not None and self.course != self._saved:
            self._mark_segments(wall)
            return
        if self.course == self._saved:
            if self._mark_saved(wall):
                return
        elif self.course == self._play:
            if self.player.to_step():
                self._other(self.player)
            p = self.player
            if not p.to_step():
                self.tries, self.why = TRIES, None
                plan = 0 if p.asleep else p.plan
                if not p.graph:
                    self._send(p)
                if plan:
                    self._say_retries()
                self.planner.iteration(self, p.of if plan else p.graph, plan, wall)
                self.order.add(p)
                self._expect()
                return
            with torch.enable_grad():
                self._lost(f"the step ends at op {p.pos}, ended at op {p.ops - p.iteration.tail}", True)
        self.planner.iteration(self, 0, 0, wall)
        self.tries = TRIES
        if self.why is not None:
            self.passive(self.why)
            self.why = None
            if self.other is not None and not self.said:  # the end of training is no reason to say so
                self.said = True
                say("an iteration was another than those that were recorded: it trained without a plan, and so do others "
                    f"until one like them has been recorded twice ({self.other}); this is said once")
        if self.course == self._record:
            self._recorded()
            return
        self.order.add(None)
        self._expect()

    def _mark_saved(self, wall):
        """A step ends an iteration that was played by what autograd saves; reports whether it was as recorded."""
        self.why = self.saver.end()
        p, found = self.player, self.saver.grown
        m = p.moves
        self.course, self.count, self.tries = self._pass, 0, TRIES
        if self.why is None and found:
            self.peaks.forget()
            p.grown = m.grown(found)
            if p.grown:
                self._grow(p)
        if self.why is None:
            m.doubts = 0
            self._say_retries()
            self.planner.iteration(self, p.graph if found else p.of, 0 if found else p.plan, wall)
            self.order.add(p)
            self._expect()
            return True
        self.peaks.forget()
        m.doubts += 1
        if m.doubts == saved.DOUBTS:
            p.moves = None
        return False

    def _mark_segments(self, wall):
        """A step ends an iteration whose ops cannot be seen, and that was played by no plan."""
        self.tries = TRIES
        p = self.player if self.course == self._pass and self.count == 0 else None
        self.planner.iteration(self, p.graph if p is not None else 0, 0, wall)
        if self.course == self._segment:
            self.segments.cut()
            if self.segments.stop():
                self._recorded()
                return
            self.recorder.resume(())
            self.notes.begin()
        elif self.course == self._unlooked:
            self.segments.stop()
        self.order.add(p)
        self._expect()

    def _say_retries(self):
        if self.retries and not self.tight:
            self.tight = True
            say(f"iteration {self.iterations}: {self.retries} allocations failed at the limit and were tried "
                "again; a kernel may have taken another way with less memory, to other bits, so such an "
                "iteration does not count as planned, and the next plan leaves more free; a larger --memory "
                "helps; this is said once")

    def _expect(self):
        """Has the kind of iteration that comes next played, or recorded if it is not known yet."""
        self.pause = max(0, self.pause - 1)
        kind = self.order.next() if self.kinds else None
        if self.unknown or kind is None and not self.pause and len(self.kinds) < KEPT:
            self._again()
        elif kind is None:  # it comes to be known later, or never
            self._let_pass()
        elif self.course == self._play:
            self.coming = kind
        else:
            self.player, self.course, self.count = kind, self._pass, 0

    def _let_pass(self):
        """Lets an iteration pass that is of no kind that is known."""
        if self.course == self._play:
            self._lost("")
        self.why, self.course, self.count, self.waits = None, self._pass, -1, False

    def _again(self):
        """Records from the next op on, after some that were not recorded."""
        self.unknown = False
        if not self.recording():
            self._let_pass()
            self.course, self.waits = self._record, False
            if self.segments is not None:
                self.course = self._segment if self.segments.warm else self._unlooked
            self.recorder.resume([p.grad for p in self.parameters if p.grad is not None])
        self._probe(bool(self.kinds))

    def _probe(self, on):
        """Has the next cycle probed, or recorded only."""
        self.probes = on and self.segments is None
        if self.probes:
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
        """A cycle was recorded. One that comes a second time, of which one was probed, is a kind of iteration from now on."""
        self.waits = False
        if self.probes and self._unseen():
            return
        begun, records, there = self.recorder.cycle()
        saves = self.notes.take()
        key, probed = digest(records), all(r.probed for r in records)
        ids = {s.id for r in records for s in r.ins + r.outs}
        known = next((p for p in self.kinds if p.iteration.key == key and p.lasting <= ids), None)
        earlier = self.cycles.pop(key, None)
        first, before, self.before = self.before is None, self.before, records
        if known is not None:
            self._return(known)
        elif earlier is not None and (probed or earlier[2]) and (saves is not None or self.segments is None):
            self._made(key, earlier, begun, records, there, saves)
        else:
            self.cycles[key] = begun, records, probed
            while len(self.cycles) > KEPT:
                self.cycles.pop(next(iter(self.cycles)))
            self.order.add(None)
            self.unlike += not first and earlier is None
            if earlier is None and self.unlike >= UNLIKE and (self.unlike - UNLIKE) % 2 == 0:
                self._unlike(before, records)
            elif self.kinds:
                self._expect()
            else:
                self._probe(earlier is not None or not probed and self.unlike < UNLIKE)

    def _unlike(self, before, records):
        """Too many cycles in a row were like none before. A script of no steady shape is looked at ever more seldom, for two
        iterations each time."""
        if self.unlike == UNLIKE and not self.kinds:
            why = f"no two iterations were alike: {first_difference(before, records)}"
            self.passive(why)
            say(f"{why}; it trains without a plan until two are, and looks for that ever more seldom")
        self.pause = 2 ** ((self.unlike - UNLIKE) // 2) + 1
        self._expect()

    def _made(self, key, earlier, begun, records, there, saves):
        """A cycle has come again: it is a kind of iteration."""
        mark_fixed({s for r in records for s in r.ins + r.outs})
        old = next((p for p in self.kinds if p.iteration.key == key), None)
        if old is not None:  # it trained something else
            self.kinds.remove(old)
            self.order.forget(old)
        alone = not self.kinds and earlier[0] + len(records) == begun and self.segments is None
        if not self.kinds:
            self.order = Kinds()  # those before were of this kind, or of one that was not looked for yet
        made = Iteration(key, earlier[1], records, begun, there, [identity(p) for p in self.parameters], alone,
                         saves)
        for i, p in enumerate(self.kinds):
            if p.iteration.tail:
                self.kinds[i] = q = Player(p.iteration.among_others(), self.device, self.lock, self.recorder.lent)
                self.order.replace(p, q)
                self._send(q)
        player = Player(made, self.device, self.lock, self.recorder.lent)
        self.kinds.append(player)
        if self.order.runs and self.order.runs[-1][0] is not None:  # the one before came alone, as this one does
            self.order.single.add(player)
        self._send(player)
        self._return(player)

    def _return(self, player):
        """The cycle that was recorded is of a kind that is known."""
        self.unlike, self.pause = 0, 0
        self.order.add(player)
        self.player = player
        self.course, self.count, self.tries = self._pass, 0, TRIES
        self._expect()

    # what the mode does not see

    def home(self, reads=None, writes=False):
        """Brings back what is away: what reads memory without an op, or writes it, finds it there. It may tell which tensor or
        storage."""
        if self.off or self.course != self._play and not self.room.used.gone:
            return
        if isinstance(reads, Untyped):
            one = reads._cdata
        elif type(reads) in (torch.Tensor, torch.nn.Parameter) and reads.layout == torch.strided:
            one = identity(reads)
        else:
            one = None
        try:
            with self.lock, modes.own():
                if one is None:
                    self.room.used.home()
                else:
                    self.room.used.back(one)
                if self.course == self._play:
                    self.player.home(one, writes)
        except Exception as e:
            self.broken(e)

    def read(self):
        """Brings all back for something else than torch that reads addresses, and has it stay until the next step or
        the next iteration: ops in between would move it."""
        if threading.get_ident() == self.thread and self.room.used.gone:
            self.home()
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
        if self.reading or self.segments is not None:  # where nothing moves that anything else can read
            return
        try:
            i = memory._cdata if isinstance(memory, Untyped) else identity(memory)
        except NotImplementedError:  # a sparse one, of which nothing moves
            return
        self.recorder.lend(i, memory if isinstance(memory, Untyped) else storage_of(memory))
        plays = self.player if self.course == self._play else None
        self._anew_without([p for p in self.kinds if p.lent(i, p is plays)])
        self._stays(memory, f"{name}() gives its address away")

    def _anew_without(self, kinds):
        """Forgets kinds of iterations whose ops may read something else when they run again."""
        for p in kinds:
            self.kinds.remove(p)
            self.order.forget(p)
            if p is self.player or p is self.coming:
                with modes.own():
                    self._anew()

    def _anew(self):
        """Has iterations recorded anew from the next step on, without a plan until then."""
        if self.course != self._saved and (self.course != self._record or self.waits):
            self._let_pass()
        self.coming, self.unknown = None, True

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

    def lasting(self):
        """Returns what is trained, with gradients and what the optimizer keeps, where it can move."""
        found = {id(p): p for g in self.optimizer.param_groups for p in g["params"]}
        found.update((id(p), p) for p in self.parameters)
        kept = [(p, p.grad, *self.optimizer.state.get(p, {}).values()) for p in found.values()]
        return [t for ts in kept for t in ts if isinstance(t, torch.Tensor) and t.layout == torch.strided
                and t.device == self.device]

    def rest(self):
        """Takes from the device what is trained, with gradients and what the optimizer keeps; returns the copies. Other
        threads that compute on what is known wait until it wakes."""
        self.lock.acquire()
        self.home()
        away = {}
        try:
            with modes.own():
                for t in self.lasting():
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
        try:
            with modes.own():
                for s, copy in away.values():
                    s.resize_(copy.numel())
                    view(s).copy_(copy)
        finally:
            self.lock.release()

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
            if self.unstepped and (self.foreign or self.course == self._play and not self.player.to_step()):
                self.mark()  # what plays is not looked at: its writes are among its ops
            elif self.strange == STRANGE:
                self.unstepped = True
                why = ("something else than the optimizer that joined trains the parameters: an iteration ends where a "
                       "backward pass begins")
                self.passive(why)
                say(why)
                self.mark()
            self.trained, self.foreign = {identity(p) for p in self.parameters}, False
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
        self._events(False)
        self.left = True
        if self.hooks is not None:
            self.exit()
            self.hooks.undo()
        if not self.child:
            self.planner.left(self)

    def _end(self):
        try:
            with self.lock, modes.own():
                self.room.used.home()
            if self.player is not None:
                self.peaks.forget()
                with self.lock, modes.own():
                    self.player.leave()
        finally:
            self.off, self.saver.moves = True, None
            for p in self.kinds:
                p.over = True
