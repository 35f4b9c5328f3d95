"""An iteration as a graph for the planner, and as the list of ops that playback compares the script with."""

LEAST = 1024  # bytes of the smallest storage that moves on the CPU


class Slot:
    """A storage's part in an iteration: each iteration may have another storage in it."""

    __slots__ = ("number", "storage", "bytes", "persistent", "fixed", "until", "last", "role", "name")


class Group:
    """Ops of the script that are one op of the graph; one without ops is the arrival of a storage from outside."""

    __slots__ = ("name", "at", "reads", "makes", "updates", "once", "random", "scratch", "ns", "phase")

    def __init__(self, name, phase):
        self.name, self.phase = name, phase
        self.at = []  # positions of its ops
        self.reads, self.updates = {}, {}  # slot -> version before the op
        self.makes = []  # slots
        self.once = self.random = False
        self.scratch = self.ns = 0

    def writes(self):
        """Returns slots and the versions that they have after the op."""
        return [(s, 0) for s in self.makes] + [(s, v + 1) for s, v in self.updates.items()]


class Iteration:
    """One iteration of a script, or the largest of those that differ in the sizes of storages alone.

    first and second are the records of two cycles that do the same. A cycle goes from the end of a step of the
    optimizer to the end of the next; begun is the number of the first op of the second one, there is what lived then. If
    that follows the first one at once, and each iteration is like it, the iteration goes from the boundary with the
    fewest bytes carried on to the next; else it is the second cycle.
    """

    def __init__(self, key, first, second, begun, there=(), parameters=(), alone=True, saves=None):
        n = len(first)
        self.key, self.length, self.alone = key, n, alone
        self.saves = saves  # what autograd has saved in the second cycle; None: it was not seen whole
        self.made_of = first, second, begun, there, parameters
        everyone = dict.fromkeys(s for r in first + second for s in r.ins + r.outs)
        self._sizes(first, second)
        if alone:
            self.tail = self._boundary(everyone, begun, first)  # ops between the step's end and the boundary
            self.start, self.end = begun - n + self.tail, begun + self.tail
            # what was found by probing one cycle is true of both
            self.records = first[self.tail:] + second[:self.tail]
        else:
            self.tail, self.start, self.end, self.records = 0, begun, begun + n, second
        self.opening = next((p for p, r in enumerate(self.records) if r.phase != "forward"), n)  # ops before backward
        self._facts(first, second)
        # what is another storage in the second cycle than at the same place of the first goes round: it does not last
        self.moving = {s for a, b in zip(first, second) for x, y in zip(a.ins + a.outs, b.ins + b.outs) if x is not y
                       for s in (x, y)}
        self.slots, self.slot_of = [], {}
        self._slots(everyone, there, parameters)
        self.groups = []
        self._groups()
        self._lifetimes()

    def carried(self):
        """Returns which storage of the iteration before each is that comes from there, if that one was like this: numbers
        of slots, the one that it had there first."""
        first, second = self.made_of[:2]
        if not self.alone:
            return []
        found = []
        for p, came in enumerate(self.arrivals[:self.length - self.tail]):
            a, b = first[p + self.tail], second[p + self.tail]
            for t in came:
                before = self.slot_of.get((b.ins + b.outs)[(a.ins + a.outs).index(t.storage)])
                if not t.fixed and t.storage.born < self.start and before not in (None, t):
                    found.append((before.number, t.number))
        return found

    def among_others(self):
        """Returns the same iteration where others may come before it and after it."""
        return Iteration(self.key, *self.made_of, alone=False, saves=self.saves) if self.tail else self

    def grow(self, sizes):
        """Makes slots as large as they turned out to be: slot's number -> bytes. What ops use beside them grows alike."""
        for g in self.groups:
            if g.scratch:
                g.scratch = int(g.scratch * max((sizes[t.number] / t.bytes for t in (*g.reads, *g.makes, *g.updates)
                                                 if t.number in sizes), default=1))
        for n, size in sizes.items():
            t = self.slots[n]
            if not t.persistent and not t.storage.elsewhere and t.fixed:
                self.held += size - t.bytes
            t.bytes = size

    def _sizes(self, first, second):
        """Has each storage be as large as what is at its place in the other cycle."""
        self.size = {}
        for a, b in zip(first, second):
            for x, y in zip(a.ins + a.outs, b.ins + b.outs):
                size = max(x.bytes, y.bytes)
                self.size[x] = max(size, self.size.get(x, 0))
                self.size[y] = max(size, self.size.get(y, 0))

    def _boundary(self, everyone, begun, records):
        """Returns how many ops after the end of a step the fewest bytes are alive; the earliest such place, between pieces
        of no op."""
        n = len(records)
        change = [0] * (n + 1)
        alive = 0
        for s in everyone:
            if s.elsewhere:
                continue
            if s.born < begun and (s.died is None or s.died > begun):
                alive += self.size[s]
            elif begun <= s.born < begun + n:
                change[s.born - begun + 1] += self.size[s]
            if s.died is not None and begun < s.died <= begun + n and (s.died > s.born):
                change[s.died - begun] -= self.size[s]
        best, place = alive, 0
        for p in range(1, n):
            alive += change[p]
            if alive < best and (records[p].cut is None or records[p].cut is not records[p - 1].cut):
                best, place = alive, p
        return place

    def _facts(self, first, second):
        for a, b in zip(first, second):
            for r in a, b:
                r.random, r.once = a.random or b.random, a.once or b.once
                r.empty, r.overwrites = a.empty or b.empty, a.overwrites or b.overwrites
                r.looks = a.looks or b.looks
                r.scratch = max(a.scratch, b.scratch)
                r.probed = True
            written = {i for x in (a, b) for i, s in enumerate(x.ins) if s in x.writes}
            for r in a, b:
                r.writes |= {r.ins[i] for i in written}
            a.ns = b.ns = min(a.ns, b.ns)

    def _carried(self, s):
        return (not s.elsewhere and s not in self.moving and s.born < self.start
                and (s.died is None or s.died > self.end))

    def _slots(self, everyone, there, parameters):
        used = dict.fromkeys(s for r in self.records for s in r.ins + r.outs)
        self.held = 0
        for s in dict.fromkeys((*everyone, *there)):
            if s not in used and s.born < self.start and (s.died is None or s.died > self.start):
                self.held += 0 if s.elsewhere else self.size.get(s, s.bytes)
        parameters = set(parameters)
        for s in used:
            if self.size[s] == 0:
                continue
            t = Slot()
            t.number, t.storage, t.bytes, t.persistent = len(self.slots), s, self.size[s], self._carried(s)
            t.fixed = s.stays
            t.role = ("parameter" if s.id in parameters else "state") if t.persistent else ""
            t.name = f"{t.role or 's'}{t.number}"
            if t.fixed and not s.elsewhere:
                self.held += t.bytes
            self.slots.append(t)
            self.slot_of[s] = t

    def _groups(self):
        version = {}  # slot -> its version now
        restless = {s for r in self.records for s in r.writes if s.stays}
        restless |= {s for r in self.records for s in r.ins + r.outs if s.unseen}
        known = {t.storage for t in self.slots if t.persistent}
        came = []  # from outside, since the last op
        for t in self.slots:
            if not t.fixed and not t.persistent and t.storage.born < self.start:
                self._arrive(t.storage, "forward", version)  # of the iteration before
        self.group_at = [None] * self.length
        self.arrivals = [()] * self.length
        for p, r in enumerate(self.records):
            new = [s for s in dict.fromkeys(r.ins + [o for o in r.outs if o not in r.fresh])
                   if self.size[s] and s not in known]
            self.arrivals[p] = tuple(self.slot_of[s] for s in new)
            known.update(new)
            known.update(s for s in r.fresh if self.size[s])
            came += [s for s in new if not s.stays and s.born >= self.start]
            if r.view():
                continue
            name = str(r.func)
            makes = [self.slot_of[s] for s in dict.fromkeys(r.outs) if s in r.fresh and self.size[s] and not s.stays]
            updates = [self.slot_of[s] for s in r.writes if self.size[s] and not s.stays]
            updates.sort(key=lambda t: t.number)
            reads = [self.slot_of[s] for s in dict.fromkeys(r.ins + r.outs)
                     if self.size[s] and not s.stays and s not in r.fresh]
            g = self._joined(r, came, makes, updates, reads)
            if g is None:
                for s in came:
                    self._arrive(s, r.phase, version)
                g = Group(name, r.phase)
                g.once = r.once or any(s in restless for s in r.ins) or bool(r.writes & restless)
                g.makes = makes
                g.updates = {t: version.get(t, 0) for t in updates}
                for t in makes:
                    version[t] = 0
                for t, v in g.updates.items():
                    version[t] = v + 1
                self.groups.append(g)
            else:
                g.name += " " + name
                g.once = False
            came = []
            for t in reads:
                if t not in g.makes:
                    g.reads.setdefault(t, g.updates[t] if t in g.updates else version.get(t, 0))
            g.random |= r.random
            g.scratch = max(g.scratch, r.scratch)
            g.ns += r.ns
            g.at.append(p)
            self.group_at[p] = len(self.groups) - 1

    def _arrive(self, s, phase, version):
        g = Group("arrive", phase)
        g.once = True
        g.makes.append(self.slot_of[s])
        version[self.slot_of[s]] = 0
        self.groups.append(g)

    def _joined(self, r, came, makes, updates, reads):
        """Returns the last group if the op only updates what that has made: together they are one pure op."""
        if not self.groups or came or makes or not updates or r.once:
            return None
        g = self.groups[-1]
        if not g.at or g.updates or not set(updates) <= set(g.makes) or g.phase != r.phase:
            return None
        if g.once and not (r.overwrites and set(g.makes) == set(updates)):
            return None
        if g.random and r.random:
            return None
        return g

    def _lifetimes(self):
        n = len(self.groups)
        for t in self.slots:
            t.until, t.last = 0, -1
        for i, g in enumerate(self.groups):
            for t in list(g.reads) + g.makes + list(g.updates):
                t.last = i
        starts = [g.at[0] if g.at else None for g in self.groups]
        for i in range(n - 1, -1, -1):
            if starts[i] is None:
                starts[i] = starts[i + 1]
        for i, g in enumerate(self.groups):
            for t in g.makes:
                t.role = "activation" if g.phase == "forward" else "gradient"
        for t in self.slots:
            if t.persistent or t.fixed or t.last < 0:
                continue
            died = t.storage.died
            until = n
            if died is not None and died <= self.end:
                until = next((i for i in range(t.last + 1, n) if starts[i] >= died - self.start), n)
            if until > t.last + 1:
                t.until = until

    def planned(self):
        """Returns the slots that are storages of the graph, in its order."""
        return [t for t in self.slots if not t.fixed and t.last >= 0]

    def graph(self, name):
        """Returns the graph in Tensile's JSON form."""
        storages, tensors, ops = [], [], []
        ids, tensor_of = {}, {}

        def tensor(t, v):
            if (t, v) not in tensor_of:
                tensor_of[t, v] = len(tensors)
                tensors.append({"id": len(tensors), "name": t.name, "storage": ids[t], "version": v,
                                "shape": [t.bytes], "dtype": "uint8"})
            return tensor_of[t, v]

        for t in self.planned():
            ids[t] = len(storages)
            s = {"id": ids[t], "name": t.name, "role": t.role, "bytes": t.bytes}
            if t.until:
                s["until"] = t.until
            storages.append(s)
        for i, g in enumerate(self.groups):
            op = {"id": i, "name": g.name[:200], "kind": "opaque",
                  "inputs": [tensor(t, v) for t, v in g.reads.items()],
                  "outputs": [tensor(t, v) for t, v in g.writes()], "phase": g.phase, "forward": -1}
            attrs = {}
            if g.scratch:
                attrs["scratch"] = g.scratch
            if g.once:
                attrs["once"] = True
            if attrs:
                op["attrs"] = attrs
            ops.append(op)
        return {"name": name, "storages": storages, "tensors": tensors, "ops": ops}

    def latencies(self):
        return [g.ns for g in self.groups]
