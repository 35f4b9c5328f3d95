"""Playback: the script's ops run as they come, and between them the plan's moves are made.

Each op is compared with the recorded iteration. The first that differs ends playback until the next boundary of
iterations: all that is away is brought back, and the script goes on as it would without a plan. So the plan never
decides what the script computes.
"""

import torch

from .away import moves
from .capture import digest
from .copies import Direct, Streams
from .events import Times, dropping
from .storages import (Tensor, Weak, arguments, emptied, generators, identity, leaves, lies, random_state, restored,
                       results, saved, set_random_state, storage_of, view)

OUT, DROP, FORGET, IN, AGAIN, RELEASE = range(6)


class Differs(Exception):
    """The script does something else than in the recorded iteration."""


class Changed(Exception):
    """A storage has more bytes than the plan counts with, or another one has its place."""


class Lent(Exception):
    """A storage that would move was lent before it came here."""


class Check:
    """One op as playback expects it: one of the recorded, or all pieces of one."""

    __slots__ = ("func", "call", "ins", "types", "places", "moves", "came", "before", "touches", "save", "random",
                 "fresh", "writes", "updates", "cut", "span", "whole")

    def __init__(self):
        self.cut = None  # of the first piece of an op: how that is cut, so that it runs in pieces
        self.span = 1  # recorded ops
        self.whole = None  # of the first piece of an op: all pieces


class Clock:
    """An op of a step of the plan that notes how long it takes."""

    __slots__ = ("player", "step", "call")

    def __init__(self, player, step, call):
        self.player, self.step, self.call = player, step, call

    def __call__(self, *args, **kwargs):
        times = self.player.times
        begun = times.begin()
        out = self.call(*args, **kwargs)
        times.end(begun, self.took)
        return out

    def took(self, ns):
        self.player.took[self.step] += ns


class Player:
    """Plays one recorded iteration back. Other threads may end that for good, under the lock.

    Storages that do not outlive the iteration may be smaller than they were. One that is larger, or another one in place of
    one that does, has the player sleep until the next iteration: it goes on comparing, and moves nothing.
    """

    other = None  # why what an op has made does not fit
    broke = None  # an exception of the work that follows an op
    calling = False  # an op of the script's, whose exceptions are the script's too

    def __init__(self, iteration, device, lock, lends):
        self.iteration, self.device, self.lock, self.lends = iteration, device, lock, lends
        self.over = False
        n = len(iteration.slots)
        self.graph, self.sizes = 0, {}  # number of the newest graph of it that was sent; number -> bytes of each slot
        self.plan = self.of = self.bytes = 0  # of the plan in force: its number, that of its graph, and its bytes
        self.asleep = False
        self.room = self.size = None  # bytes of each slot: as the plan counts them, and in this iteration
        self.grown = {}  # slot -> bytes, where those are more than in any iteration before
        self.grows = False  # this iteration is larger than any before
        self.bound = [0] * n  # per slot: the id of its storage
        self.weak = [None] * n
        self.strong = [None] * n
        self.now = [-1] * n  # version that the script has
        self.on = [-1] * n  # version on the device
        self.host = [-1] * n  # version on the host
        self.copies = (Streams if device.type == "cuda" else Direct)(iteration.slots)
        self.away = set()  # numbers of slots whose version on the device is not the script's
        self.saved = {}  # op of the graph -> its last arguments
        self.fixed = set()  # slots that turned out to be of one size for good
        self.written = set()  # slots that the script may have written by no op in this iteration
        self.carried = iteration.carried()
        self.made = {self.iteration.slot_of[s].number: (k, leaf) for k, r in enumerate(iteration.made_of[1][:iteration.tail])
                     for leaf, s in enumerate(r.outs) if s in r.fresh and s in iteration.slot_of}
        self.left = {}  # slot -> id, of what ops between the end of a step and the boundary have made
        self.last = [0] * n
        for g in iteration.groups:
            for t, v in g.writes():
                self.last[t.number] = max(self.last[t.number], v)
        for t in iteration.slots:
            if t.persistent:
                self.bound[t.number] = t.storage.id
                storage = t.storage.weak.get() if t.storage.weak else None
                self.weak[t.number] = Weak(storage) if storage is not None else None
                self.now[t.number] = self.on[t.number] = 0
        self.faults = 0
        self.program = None
        self.events = False  # of the allocator are taken
        self.took = None  # of each step of the plan, in nanoseconds, while that is measured
        self.times = Times(device)
        self.pos = 0
        self.load(None)

    def sent(self, number):
        """Records that the iteration, as it is now, is a graph of this number."""
        self.graph = number
        self.sizes[number] = [t.bytes for t in self.iteration.slots]

    # compiling

    def load(self, program, plan=None):
        """Takes a program and the plan that it was made of, or None for no plan; between iterations only."""
        it = self.iteration
        self.program, self.plan, self.of, self.bytes = program, 0, 0, 0
        if program is not None:
            self.plan, self.of, self.bytes = plan["number"], plan["graph"], plan.get("plan_bytes", 0)
        # a plan that moves something may have all it needs by what autograd saves; then nothing else moves
        unseen = it.saves is not None and it.saves.resident is not None
        self.moves = moves(it, self.device, self.bytes) if program is not None and (program.managed or unseen) else None
        self.followed = 0  # iterations with it
        self.begun = self.measured = 0  # and those of which the allocator's events were taken, and were all there
        self.touched = 0  # the most that the allocator had in one of these
        self.room = self.sizes.get(self.of) or [t.bytes for t in it.slots]
        self.size = list(self.room)
        managed = program.managed if program else set()
        again = program.again if program else set()
        n = len(it.groups)
        self.first = {}  # number of a slot -> the first op that has it
        for p, r in enumerate(it.records):
            for x in r.ins:
                if it.size[x]:
                    self.first.setdefault(it.slot_of[x].number, p)
        self.lasting = {self.bound[t.number] for t in it.slots if t.persistent}
        self.managed = {t.number for t in managed}
        self.managed.update(before for before, n in self.carried if n in self.managed)
        self.held = {t.number for t in program.held} if program else set()
        checks = []
        fresh_seen = set()
        begins = {g.at[0]: i for i, g in enumerate(it.groups) if g.at}
        ends = {g.at[-1]: i for i, g in enumerate(it.groups) if g.at}
        copied = {a[1].number for do in program.before for a in do if a[0] == "out"} if program else set()
        if program:
            copied.update(t.number for t, stays in program.enter.items() if not stays or t in program.copied)
        self.copies.reserve(copied if self.moves is None else ())
        self.steps = 0
        self.took, step_of = None, [0] * n
        self.times.forget()
        done = 0
        for p, r in enumerate(it.records):
            c = Check()
            c.func, c.random = r.func, r.random
            c.call = getattr(r.func, "_op", r.func)  # what an op does when it is called
            c.ins = [it.slot_of[s].number if it.size[s] else -1 for s in r.ins]
            c.came = tuple((leaf, it.slot_of[s].number) for s in self._came(p)
                           for leaf in [self._leaf(r, s)] if leaf >= 0)
            g = it.group_at[p]
            c.before = ()
            if p in begins:
                actions = []
                while done <= begins[p]:
                    if program:
                        actions += [self._compiled(program, done, a) for a in program.before[done]]
                    step_of[done] = self.steps
                    self.steps += 1
                    done += 1
                c.before = tuple(actions)
            c.touches = None
            if g is not None:
                c.touches = frozenset(x for x in c.ins if x in self.managed) or None
            c.save = g if g in again else None
            fresh = []
            for leaf, s in enumerate(r.outs):
                given = s.elsewhere and s in self._came(p) and s not in r.ins
                if (s in r.fresh or given) and it.size[s] and s not in fresh_seen:
                    fresh_seen.add(s)
                    fresh.append((leaf, it.slot_of[s].number, r.shapes[leaf]))
            c.fresh = tuple(fresh)
            c.writes = c.updates = ()
            if p in begins:
                c.updates = tuple(t.number for t in it.groups[g].updates if t.number in self.managed)
            if g is not None and p in ends:
                c.writes = tuple((t.number, v) for t, v in it.groups[g].writes() if t.number in self.managed)
            c.types = c.places = None
            if r.types is not None:
                c.types = r.types
                tensors = [i for i, t in enumerate(r.types) if issubclass(t, Tensor)]
                c.places = tuple((i, n) for i, n in zip(tensors, c.ins) if n >= 0)
            # what playback has to do beside comparing
            c.moves = bool(c.came or c.before or c.touches or c.save is not None or c.writes or any(
                n in self.managed for _, n, _ in c.fresh))
            checks.append(c)
        end = []
        while done <= n:
            if program:
                end += [self._compiled(program, done, a) for a in program.before[done]]
            self.steps += done < n
            done += 1
        self.pieces, self.end, self.ops = checks, tuple(end), len(checks)
        self.checks = self.usual = self._joined(checks)
        self.clocked = None
        self.step_of = step_of

    def _joined(self, checks):
        """Finds the pieces of ops, and returns the checks with one for all pieces where nothing moves between them."""
        joined, records, p = list(checks), self.iteration.records, 0
        while p < len(checks):
            cut = records[p].cut
            if cut is not None:
                first, n = checks[p], len(cut.counts)
                first.cut, first.whole = cut, self._whole(cut, checks[p:p + n])
                if all(c.save is None and (c is first or not c.before) for c in checks[p:p + n]):
                    joined[p] = first.whole
            p += 1 if cut is None else n
        return joined

    def _whole(self, cut, pieces):
        c, first = Check(), pieces[0]
        c.func, c.call, c.random, c.before, c.moves = first.func, first.call, first.random, first.before, True
        c.types = c.places = c.save = None
        c.span = len(pieces)
        c.ins = cut.whole([d.ins for d in pieces])
        c.came = tuple((c.ins.index(n), n) for d in pieces for _, n in d.came)
        c.touches = frozenset().union(*(d.touches or () for d in pieces)) or None
        c.writes, c.updates = (tuple(x for d in pieces for x in getattr(d, name)) for name in ("writes", "updates"))
        at = [sum(cut.counts[:k]) for k in range(len(pieces))]
        c.fresh = tuple((at[k] + leaf, n, shape) for k, d in enumerate(pieces) for leaf, n, shape in d.fresh)
        return c

    def _came(self, p):
        return [t.storage for t in self.iteration.arrivals[p]]

    @staticmethod
    def _leaf(r, s):
        return r.ins.index(s) if s in r.ins else -1

    def _compiled(self, program, i, a):
        if a[0] == "again":
            g = self.iteration.groups[a[1]]
            versions = dict(g.writes())
            self.steps += 1
            return (AGAIN, a[1], tuple((t.number, versions[t]) for t in a[2]), self.steps - 1)
        if a[0] == "drop":
            t = a[1]
            if (i, t) in program.remade:
                return (DROP, t.number)
            return (FORGET, t.number)
        return ({"out": OUT, "in": IN, "release": RELEASE}[a[0]], a[1].number)

    # iterations

    def opens(self, func, args, kwargs):
        """Reports whether an op may be the first of an iteration, by what is known of it before it has run."""
        c, r = self.pieces[0].whole or self.pieces[0], self.iteration.records[0]
        if func is not c.func or torch.is_grad_enabled() != r.grad:
            return False
        tensors = arguments(args, kwargs)
        try:
            ids = [identity(t) for t in tensors]
        except NotImplementedError:
            return False
        return len(ids) == len(c.ins) and all(
            n < 0 or not self.iteration.slots[n].persistent or self.bound[n] == i
            or self._replaces(n, t, i, range(c.span)) for t, i, n in zip(tensors, ids, c.ins))

    def came(self, k, func, args, out):
        """Is told what an op has made that it does not play, as the k-th at least since the end of a step; returns how many
        recorded ops that was, of those up to the boundary."""
        if k >= self.iteration.tail:
            return 1
        made, cut = results(out), self.pieces[self.ops - self.iteration.tail + k].cut
        counts = cut.counts if cut is not None and cut.fits(func, args) else (len(made),)
        for i, n in enumerate(counts):
            mine, made = made[:n], made[n:]
            self.left.update((m, identity(mine[leaf])) for m, (op, leaf) in self.made.items()
                             if op == k + i and leaf < len(mine))
        return len(counts)

    def clock(self, on):
        """Has the next iteration's steps measured, or no more."""
        if on and self.clocked is None:
            self.clocked = []
            for c, g in zip(self.pieces, self.iteration.group_at):
                if g is not None:
                    usual, c = c, Check()
                    for name in Check.__slots__:
                        setattr(c, name, getattr(usual, name))
                    c.call = Clock(self, self.step_of[g], usual.call)
                self.clocked.append(c)
        self.times.forget()
        self.checks = self.clocked if on else self.usual
        self.took = [0] * self.steps if on else None

    def begin(self, first, before=None, back=lambda i: None):
        """Starts an iteration; first says that the one before was not played to its end with this program. What the player
        before has away, or what back brings by its id, comes back only when this one needs it on the device, or is about to
        take it away itself."""
        self.asleep, self.grows = self.moves is not None, False
        self.size[:] = self.room
        self.written.clear()
        for n in list(self.copies.coming):
            if first or not self.iteration.slots[n].persistent:
                self.copies.use(n)
        if first:
            self._all_home()
            enter = self.program.enter.items() if self.program and not self.asleep else ()
            away = {before.bound[n] for n in before.away} if before is not None else ()
            for t, stays in sorted(enter, key=lambda e: self.bound[e[0].number] in away):  # what makes room comes first
                n = t.number
                if before is not None:
                    before.home(self.bound[n])
                back(self.bound[n])
                if not stays:
                    self.drop(n, False)
                elif t in self.program.copied:
                    self.out(n)
            if before is not None:
                before.leave()
        else:
            self.left = {n: self.bound[n] for n in self.made}
            weak = [(n, self.weak[before]) for before, n in self.carried if n in self.managed]
            for t in self.iteration.slots:
                n = t.number
                if t.persistent:
                    last = self.last[n]
                    self.on[n] = 0 if self.on[n] == last else -1
                    self.host[n] = 0 if self.host[n] == last else -1
                    self.now[n] = 0
                else:
                    if n in self.away:
                        self.bring(n)  # of the iteration before: the script still has it
                        self._use([n])
                    self.bound[n], self.weak[n], self.strong[n] = 0, None, None
                    self.now[n] = self.on[n] = self.host[n] = -1
            for n, w in weak:
                s = w.get() if w is not None else None
                if s is not None and s.nbytes() == self.room[n]:
                    self._keep(n, s)
            self.saved.clear()
            for t, stays in self.program.enter.items() if self.program and not self.asleep else ():
                if not stays:  # it has come home if the script has read it since the last op
                    self.drop(t.number, False)
        self.pos = 0

    def _all_home(self):
        """Begins with all that outlives iterations on the device, and nothing else."""
        for t in self.iteration.slots:
            n = t.number
            if t.persistent:
                self.now[n] = self.on[n] = 0
                self.host[n] = -1
            else:
                self.bound[n], self.weak[n], self.strong[n] = 0, None, None
                self.now[n] = self.on[n] = self.host[n] = -1

    def others(self, c, args, kwargs):
        """Reports whether an op has others than the storages expected, of those that outlive iterations. As these may lie
        otherwise, nothing tells what its pieces would do."""
        slots = self.iteration.slots
        try:
            return any(n >= 0 and slots[n].persistent and self.bound[n] != identity(t)
                       for t, n in zip(arguments(args, kwargs), c.ins))
        except NotImplementedError:  # a sparse one
            return True

    def run(self, c, func, args, kwargs):
        """Runs an op of the script; raises Differs, before it has run the op, if it is not the expected one."""
        if func is not c.func:
            raise Differs(f"op {self.pos} is {func}, was {c.func}")
        if not c.moves and c.types == tuple(map(type, args)) and all(
                self.bound[n] == identity(args[i]) for i, n in c.places):
            return self._plain(c, args, kwargs)
        tensors = []
        for a in args:
            if isinstance(a, Tensor):
                tensors.append(a)
            elif type(a) is list or type(a) is tuple:
                leaves(a, tensors)
        if kwargs:
            for a in kwargs.values():
                if isinstance(a, Tensor):
                    tensors.append(a)
                elif type(a) is list or type(a) is tuple:
                    leaves(a, tensors)
        bound = self.bound
        try:
            ids = [identity(t) for t in tensors]
        except NotImplementedError:  # a sparse one
            raise Differs(f"op {self.pos}, {func}, has other operands") from None
        if c.came:
            self._arrive(c, tensors, ids)
        ins = c.ins
        if len(ids) != len(ins):
            raise Differs(f"op {self.pos}, {func}, has other operands")
        for t, i, n in zip(tensors, ids, ins):
            if n >= 0 and bound[n] != i:
                if not self._replaces(n, t, i, range(self.pos, self.pos + c.span)):
                    raise Differs(f"op {self.pos}, {func}, has other operands")
                self._replace(n, t, i)
        if (c.before or c.touches) and not self.asleep:
            with self.lock:
                if self.over:
                    raise Differs("the plan has ended")
                self._moves(c)
        if c.save is not None and not self.asleep:
            self._save(c, func, args, kwargs)
        self.calling = True
        try:
            out = c.call(*args, **kwargs)
        except RuntimeError:
            away = self.away.intersection(c.ins)  # some views look at the size of their storage
            if not away:
                raise
            self.calling = False
            for n in away:
                self.faults += 1
                self.bring(n)
            self._use(away)
            self.calling = True
            out = c.call(*args, **kwargs)
        self.calling = False
        self.pos += c.span
        try:
            made = ((out,) if isinstance(out, Tensor) else results(out)) if c.fresh else ()
            for leaf, n, shape in c.fresh:
                if leaf >= len(made):
                    self.other = f"op {self.pos - 1}, {func}, makes less"
                    break
                t = made[leaf]
                if t.shape != shape:
                    self._sized(n, storage_of(t))
                i = bound[n] = identity(t)
                if i in ids:
                    self.other = f"op {self.pos - 1}, {func}, makes no storage of its own"
                if n in self.managed:
                    self._adopt(n, t)
            for n, v in c.writes:
                self.now[n] = self.on[n] = v
                self.away.discard(n)
        except Exception as e:
            self.broke = e
        return out

    def _moves(self, c):
        for a in c.before:
            self.act(a)
        if c.touches:
            if self.away and not c.touches.isdisjoint(self.away):
                for n in c.touches & self.away:
                    self.faults += 1
                    self.bring(n)
            if self.copies.coming:
                self._use(c.touches)
            for n in c.updates:
                self.copies.settle(n)

    def _plain(self, c, args, kwargs):
        """Runs an op, all of whose tensors are arguments of their own, and which touches nothing that moves."""
        bound = self.bound
        self.calling = True
        out = c.call(*args, **kwargs)
        self.calling = False
        self.pos += 1
        if c.fresh:
            try:
                made = (out,) if isinstance(out, Tensor) else results(out)
                for leaf, n, shape in c.fresh:
                    t = made[leaf]
                    if t.shape != shape:
                        self._sized(n, storage_of(t))
                    i = identity(t)
                    for _, m in c.places:
                        if bound[m] == i:
                            self.other = f"op {self.pos - 1}, {c.func}, makes no storage of its own"
                    bound[n] = i
            except Exception as e:
                self.broke = e
        return out

    def _sized(self, n, storage):
        """Records how many bytes a slot has in this iteration."""
        size = self.size[n] = storage.nbytes()
        if size > self.room[n]:
            if size > max(self.iteration.slots[n].bytes, self.grown.get(n, 0)):
                self.grown[n], self.grows = size, True
            if self.program is not None and not self.asleep:
                self.broke = Changed()

    def _adopt(self, n, tensor):
        s = storage_of(tensor)
        self._sized(n, s)
        self._keep(n, s)
        self._check_lent(n, s._cdata)

    def _check_lent(self, n, i):
        """Has a storage that something else than torch reads stay where it is: it may have been lent before it was seen."""
        if i in self.lends and not self.lends[i].expired():
            self.fixed.add(n)
            self.broke = Lent()

    def _keep(self, n, s):
        """Has a slot's storage from now on, which is on the device."""
        self.bound[n], self.weak[n] = s._cdata, Weak(s)
        self.strong[n] = s if n in self.held and not self.asleep else None
        self.now[n] = self.on[n] = 0
        self.host[n] = -1
        self.away.discard(n)

    def _arrive(self, c, tensors, ids):
        for leaf, n in c.came:
            if leaf >= len(tensors):
                raise Differs(f"op {self.pos}, {c.func}, has other operands")
            t = tensors[leaf]
            s = storage_of(t)
            i = ids[leaf]
            if n in self.managed and self.bound[n]:  # of the iteration before
                if self.bound[n] == i:
                    continue
                raise Differs(f"op {self.pos}, {c.func}, has other operands")
            elsewhere = self.iteration.slots[n].storage.elsewhere
            if lies(s, self.device) == elsewhere:
                raise Differs(f"op {self.pos}, {c.func}, has an operand on another device")
            if elsewhere:
                self.bound[n] = i
                continue
            self._sized(n, s)
            if i in self.lasting or any(self.bound[m] == i and m != n and self.weak[m] and not self.weak[m].expired()
                                        for m in self.managed):
                raise Differs(f"op {self.pos}, {c.func}, has other operands")
            self.bound[n] = i
            if n in self.managed:
                self._adopt(n, t)

    def _replaces(self, n, tensor, i, ops):
        """Reports whether another storage, by its id, may take the place of one that outlives iterations: it is as large,
        nothing else, and none before these ops of the iteration has touched the other. So it is where a state was loaded, or
        a parameter was given other data."""
        s, slot = storage_of(tensor), self.iteration.slots[n]
        return (slot.persistent and not slot.fixed and self.first[n] in ops and s.nbytes() == self.room[n]
                and lies(s, self.device) and i not in self.lasting
                and not any(b == i and w and not w.expired() for b, w in zip(self.bound, self.weak)))

    def _replace(self, n, tensor, i):
        """Lets a storage take the place of another one. Until the next iteration nothing moves."""
        with self.lock:
            if not self.asleep:
                self.sleep()
                self.broke = Changed()
            self.lasting.discard(self.bound[n])
            self.lasting.add(i)
            self.bound[n], self.weak[n] = i, Weak(storage_of(tensor))
            if n in self.managed:
                self._check_lent(n, i)

    def _save(self, c, func, args, kwargs):
        slots = self._slots_by_id(c)

        def key(tensor):
            n = slots.get(identity(tensor), -1)
            return n if n >= 0 and not self.iteration.slots[n].fixed else storage_of(tensor)

        g = self.iteration.groups[c.save]
        state = None
        if c.random:
            try:
                state = random_state(self.device.type, generators(args, kwargs))
            except RuntimeError:
                raise Differs(f"op {self.pos}, {func}, has a generator that does not tell its state") from None
        if self.pos == g.at[0]:
            self.saved[c.save] = []
        self.saved[c.save].append((func, saved(args, key), saved(kwargs, key), c, state))

    def _slots_by_id(self, c):
        return {self.bound[n]: n for n in c.ins if n >= 0}

    # moves

    def act(self, a):
        do, n = a[0], a[1]
        if do == OUT:
            self.out(n)
        elif do == DROP:
            self.drop(n, True)
        elif do == FORGET:
            self.drop(n, False)
        elif do == IN:
            if n in self.away:
                self.bring(n)
            if n in self.held:
                self.strong[n] = self._storage(n)
        elif do == AGAIN:
            if self.took is None:
                self.again(n, a[2])
            else:
                Clock(self, a[3], self.again)(n, a[2])
        else:
            self.strong[n] = None
            if self.weak[n] is not None and self.weak[n].expired():
                self._gone(n)

    def _gone(self, n):
        self.on[n] = -1
        self.away.discard(n)

    def _storage(self, n):
        w = self.weak[n]
        return w.get() if w is not None else None

    def out(self, n):
        if self.on[n] < 0 or self.on[n] == self.host[n]:
            return
        s = self._storage(n)
        if s is None:
            return
        self.host[n] = -1
        self.copies.out(n, s)
        self.host[n] = self.on[n]

    def drop(self, n, remade):
        """Takes a storage's memory away, if a copy holds what is in it or that can be made again."""
        if self.on[n] < 0 or n in self.fixed or remade and self.written and self._made_of_written(n):
            return
        if not remade:
            self.out(n)
        s = self._storage(n)
        if s is None:
            self._gone(n)
            return
        version, self.on[n] = self.on[n], -1
        self.away.add(n)
        self.copies.settle(n)
        if self.events:
            with dropping(s.nbytes()):
                gone = emptied(s)
        else:
            gone = emptied(s)
        if not gone:  # something else, such as numpy, shares its memory
            self.fixed.add(n)
            self.on[n] = version
            self.away.discard(n)

    def bring(self, n):
        """Gives the script its version of a slot back."""
        if self.on[n] == self.now[n]:
            self.away.discard(n)
            return
        s = self._storage(n)
        if s is None:
            self.away.discard(n)
            return
        if self.host[n] == self.now[n]:
            s.resize_(self.size[n])
            self.copies.fetch(n, s)
        else:
            made = self.make(n, self.now[n], {})
            if s.nbytes() != self.size[n]:
                s.resize_(self.size[n])
            view(s).copy_(view(made))
        self.on[n] = self.now[n]
        self.away.discard(n)

    def make(self, n, v, done):
        """Returns a storage with version v of a slot, which the caller only reads."""
        if self.on[n] == v:
            s = self._storage(n)
            if s is not None:
                self.copies.use(n)
                return s
        if (n, v) in done:
            return done[n, v]
        if self.host[n] == v:
            s = storage_of(torch.empty(self.size[n], dtype=torch.uint8, device=self.device))
            self.copies.fetch(n, s)
            self.copies.use(n)
            done[n, v] = s
            return s
        i = self._maker(n, v)
        if i is None or i not in self.saved:
            raise RuntimeError(f"tensile: {self.iteration.slots[n].name} is lost, which is a bug; nothing was computed "
                               "with it")
        for m, w, s in self._rerun(i, done):
            done[m, w] = s
        return done[n, v]

    def _maker(self, n, v):
        if not hasattr(self, "_makers"):
            self._makers = {(t.number, w): i for i, g in enumerate(self.iteration.groups) for t, w in g.writes()}
        return self._makers.get((n, v))

    def _made_of_written(self, n):
        """Reports whether a slot, or anything that it is made of, may have been written by no op."""
        found, left = {n}, [(n, self.now[n])]
        while left:
            i = self._maker(*left.pop())
            if i is not None:
                reads = [(t.number, v) for t, v in self.iteration.groups[i].reads.items()]
                left.extend(r for r in reads if r[0] not in found)
                found.update(m for m, _ in reads)
        return not found.isdisjoint(self.written)

    def _rerun(self, i, done, target=None):
        """Runs an op of the graph again; returns slots, versions and storages of what it makes.

        What it updates in place is a copy, but for slots in target.
        """
        g = self.iteration.groups[i]
        there = {}
        for t, v in g.reads.items():
            m = t.number
            if t in g.updates and not (target and m in target):
                there[m] = storage_of(view(self.make(m, v, done)).clone())
            else:
                there[m] = self.make(m, v, done)
        for m in target or ():
            self.copies.settle(m)
            self.on[m] = -1  # should the op not come to its end
            self.away.add(m)

        def storage(key):
            return there[key] if isinstance(key, int) else key

        for func, args, kwargs, c, state in self.saved[i]:
            now = [(g, g.get_state()) for g, _ in state or ()]
            try:
                set_random_state(state or ())
                out = results(func(*restored(args, storage), **restored(kwargs, storage)))
            finally:
                set_random_state(now)
            for leaf, m, _ in c.fresh:
                there[m] = storage_of(out[leaf])
        return [(t.number, v, there[t.number]) for t, v in g.writes()]

    def again(self, i, outputs):
        g = self.iteration.groups[i]
        for n, _ in outputs:
            if n in self.held:
                self.strong[n] = self._storage(n)
        updated = {t.number: v for t, v in g.updates.items()}
        wanted = [(n, v) for n, v in outputs if self.on[n] != self.now[n] and self.on[n] < v
                  and (n in self.away or n in self.held)]
        if not wanted:
            return
        inplace = {n for n, v in wanted if n in updated and self.on[n] == v - 1 and self._storage(n) is not None}
        made = self._rerun(i, {}, inplace)
        for n, v, s in made:
            if (n, v) not in wanted:
                continue
            if n not in inplace:
                mine = self._storage(n)
                if mine is None:
                    self.weak[n], self.strong[n] = Weak(s), s
                else:
                    self.copies.settle(n)
                    self.on[n] = -1
                    if mine.nbytes() != self.size[n]:
                        mine.resize_(self.size[n])
                    view(mine).copy_(view(s))
            self.on[n] = v
            if v == self.now[n]:
                self.away.discard(n)
            else:
                self.away.add(n)

    def tell(self, program, most):
        """Is told the most that the allocator of a CPU had in an iteration by a program; it keeps nothing."""
        if program is self.program:
            self.touched = most
            self.measured += 1

    def resident(self):
        """Returns the bytes that the script has on the device at the start of an iteration."""
        return self.iteration.held + sum(t.bytes for t in self.iteration.slots
                                         if (t.persistent or t.storage.born < self.iteration.start) and not t.fixed
                                         and t.number not in self.away)

    def home(self, storage=None, writes=False):
        """Brings all back that is away, or one storage, by its id. Where the script may write it by no op, a copy on the host
        holds no more what is in it, and what it was used for cannot be made again: that comes back as well."""
        written = [n for n, b in enumerate(self.bound) if storage is None or b == storage] if writes else ()
        if written:
            self.written.update(written)
            for n in [n for n in self.away if self.host[n] != self.now[n] and self._made_of_written(n)]:
                self.bring(n)
        if storage is None:
            slots, coming = sorted(self.away), self.copies.coming
        else:
            slots = [n for n in self.away if self.bound[n] == storage]
            coming = [n for n in (*slots, *self.copies.coming) if self.bound[n] == storage]
        for n in slots:
            self.bring(n)
        self._use(coming)
        for n in written:
            self.host[n] = -1

    def _use(self, slots):
        for n in [n for n in slots if n in self.copies.coming]:
            self.copies.use(n)

    def lent(self, i, plays):
        """Reports whether a storage, by its id, has a slot that was not known to stay where it is; from now on it does.
        Of storages that do not outlive an iteration that is known while it plays."""
        slots = self.iteration.slots
        bound = [n for n, b in enumerate(self.bound) if b == i and (plays or slots[n].persistent)]
        n = bound[-1] if bound else -1  # others had the id before
        if n < 0 or slots[n].fixed:
            return False
        self.fixed.add(n)
        return True

    def to_step(self):
        """Returns how many ops the step has yet to come to its end."""
        return self.ops - self.iteration.tail - self.pos

    def like(self, p, func):
        """Takes over, asleep, in the middle of an iteration that another player has begun, and reports whether it can: this
        one's has the same ops and operands up to there, and an op of this kind comes next, or by None the step's end."""
        its, mine = p.iteration, self.iteration
        if func is None:
            fits = p.pos == self.ops - mine.tail
        else:
            fits = p.pos < self.ops and self.pieces[p.pos].func is func
        if not fits or its.tail != mine.tail or digest(its.records[:p.pos]) != digest(mine.records[:p.pos]):
            return False
        of = {}  # slot of this one -> id
        for c, d in zip(p.pieces[:p.pos], self.pieces[:p.pos]):
            made = {leaf: n for leaf, n, _ in c.fresh}
            for n, m in (*zip(c.ins, d.ins), *((made.get(leaf, -1), m) for leaf, m, _ in d.fresh)):
                if n >= 0 and m >= 0:
                    of[m] = p.bound[n]
        if any(i != self.bound[m] for m, i in of.items() if mine.slots[m].persistent):
            return False
        p.leave()
        self._all_home()
        for m, i in of.items():
            self.bound[m] = i
        self.asleep, self.pos, self.checks = True, p.pos, self.pieces
        return True

    def sleep(self):
        """Moves nothing until the next iteration begins: all is back."""
        self.leave()
        self.asleep = True

    def leave(self):
        """Ends playback, in the middle of an iteration or after one: all is back, nothing is kept."""
        self.home()
        self.strong = [None] * len(self.strong)
        self.saved.clear()
        self.other = self.broke = None
