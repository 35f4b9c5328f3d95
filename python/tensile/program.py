"""A plan compiled for playback: checked against the iteration, and put between the ops of the script."""


class PlanError(Exception):
    """The plan cannot be carried out; the text says why in one line."""


class Program:
    """What playback does before each op of the graph.

    before[i] lists actions before op i, before[n] those at the end of the iteration: ("out", slot), ("drop", slot),
    ("in", slot), ("again", op, slots to put back), ("release", slot). enter lists, per slot that outlives iterations
    and that the plan touches, whether it is on the device at the start.
    """

    def __init__(self, iteration, plan):
        self.iteration = iteration
        groups = iteration.groups
        n = len(groups)
        slots = iteration.planned()
        self.before = [[] for _ in range(n + 1)]
        last = -1
        for b in plan.get("boundaries", ()):
            at = b["before"]
            if not last < at <= n:
                raise PlanError(f"boundary before op {at} after that before op {last}, of {n} ops")
            last = at
            for a in b["do"]:
                self.before[at].append(self._action(a, slots, groups))
        entry = plan.get("entry") or []
        if any(not 0 <= s < len(slots) or not slots[s].persistent for s in entry):
            raise PlanError("entry names a storage that does not outlive the iteration")
        self.entry = {slots[s] for s in entry}
        self.again = {a[1] for do in self.before for a in do if a[0] == "again"}
        moved = {a[1] for do in self.before for a in do if a[0] in ("out", "drop", "in")}
        self.enter = {t: t in self.entry for t in slots if t.persistent and (t in moved or t not in self.entry)}
        self.held = set()  # slots whose storages playback keeps alive itself
        for i in self.again:
            self.held.update(t for t in list(groups[i].reads) + [t for t, _ in groups[i].writes()] if not t.persistent)
        self.managed = set(self.enter) | moved | self.held
        for i in self.again:
            self.managed.update(groups[i].reads)
        self.remade = set()  # (op, slot) of drops before that op, after which the slot is made again
        self._release()
        self._check()

    def _action(self, a, slots, groups):
        do = a.get("do")
        if do in ("out", "drop", "in"):
            s = a.get("storage")
            if not isinstance(s, int) or not 0 <= s < len(slots):
                raise PlanError(f"{do} of storage {s}, of {len(slots)}")
            return (do, slots[s])
        if do != "again":
            raise PlanError(f"action {do!r} is not known")
        i = a.get("op")
        if not isinstance(i, int) or not 0 <= i < len(groups):
            raise PlanError(f"op {i} again, of {len(groups)}")
        if groups[i].once:
            raise PlanError(f"op {i} ({groups[i].name}) cannot run again")
        writes = [t for t, _ in groups[i].writes()]
        outputs = a.get("outputs") or range(len(writes))
        if any(not 0 <= o < len(writes) for o in outputs):
            raise PlanError(f"op {i} has no outputs {list(outputs)}")
        return ("again", i, tuple(writes[o] for o in outputs))

    def _release(self):
        """Puts a release behind the last need of each content of a slot that playback keeps."""
        groups = self.iteration.groups
        made = {}  # slot -> place of the last need of its content
        places = []

        def end(t):
            if t in made:
                places.append((made.pop(t), t))

        for i in range(len(groups) + 1):
            for j, a in enumerate(self.before[i]):
                if a[0] in ("in", "out") and a[1] in made:
                    made[a[1]] = (i, j + 1)
                elif a[0] == "again":
                    for t in groups[a[1]].reads:
                        if t in made:
                            made[t] = (i, j + 1)
                    for t in a[2]:
                        if t in self.held:
                            if t in groups[a[1]].makes:
                                end(t)
                            made[t] = (i, j + 1)
            if i < len(groups):
                for t, _ in groups[i].writes():
                    if t in self.held:
                        made[t] = (i + 1, 0)
                for t in groups[i].reads:
                    if t in made:
                        made[t] = (i + 1, 0)
        for t in list(made):
            end(t)
        for (i, j), t in sorted(places, key=lambda p: p[0], reverse=True):
            self.before[i].insert(j, ("release", t))

    def _check(self):
        """Walks through an iteration: nothing that is needed may be lost, nothing stale be read.

        A storage that is read while it is away is no error if it can be brought back: playback does so.
        """
        valid = set(self.enter)
        while True:
            left = self._walk(valid)
            if valid <= left:
                self.copied = valid
                return
            valid &= left

    def _walk(self, valid):
        groups = self.iteration.groups
        n = len(groups)
        self.now, self.device, self.host = {}, {}, {}
        self.gone = set()  # away, to be made again
        for t in self.iteration.planned():
            if t.persistent:
                self.now[t] = 0
                if self.enter.get(t, True):
                    self.device[t] = 0
                if t in valid:
                    self.host[t] = 0
        for i in range(n + 1):
            for a in self.before[i]:
                self._act(i, a)
            if i == n:
                break
            g = groups[i]
            for t, v in g.reads.items():
                if self.now.get(t) != v:
                    raise PlanError(f"op {i} ({g.name}) reads version {v} of {t.name}, version {self.now.get(t)} is "
                                    "current")
                if self.device.get(t) != v:
                    self._back(i, t, v)
            for t, v in g.writes():
                self.now[t] = self.device[t] = v
            for t in list(g.reads) + g.makes:
                if not t.persistent and t not in self.held and t.last == i and not t.until:
                    self.device.pop(t, None)  # the script lets it go
            self._still(i)
        for t in self.enter:
            on = self.device.get(t) == self.now[t]
            if on != (t in self.entry):
                raise PlanError(f"{t.name} ends an iteration {'on' if on else 'off'} the device, and does not begin so")
            if not on and self.host.get(t) != self.now[t]:
                raise PlanError(f"{t.name} is lost at the end of an iteration")
        return {t for t in self.enter if self.host.get(t) == self.now[t]}

    def _act(self, i, a):
        t = a[1]
        if a[0] == "out":
            if t not in self.device:
                raise PlanError(f"before op {i}: {t.name} is to be copied out and is not on the device")
            self.host[t] = self.device[t]
        elif a[0] == "drop":
            if t in self.device and self.host.get(t) != self.device[t] and not self._ended(t, i):
                if t.persistent:
                    raise PlanError(f"before op {i}: {t.name} is dropped without a copy on the host")
                self.gone.add(t)
                self.remade.add((i, t))
            self.device.pop(t, None)
            self._still(i)
        elif a[0] == "in":
            if t in self.device:
                raise PlanError(f"before op {i}: {t.name} is to be copied in and is on the device")
            if t not in self.now or self.host.get(t) != self.now[t]:
                raise PlanError(f"before op {i}: {t.name} is to be copied in, and the host has no valid copy")
            self.device[t] = self.now[t]
        elif a[0] == "again":
            self._again(i, a)
        else:  # released: whatever holds it then is the script
            if self._ended(t, i):
                self.device.pop(t, None)
                self.gone.discard(t)

    def _again(self, i, a):
        g = self.iteration.groups[a[1]]
        if a[1] >= i:
            raise PlanError(f"before op {i}: op {a[1]} again before it has run")
        for t, v in g.reads.items():
            if self.device.get(t) != v:
                self._back(i, t, v)
        for t, v in g.writes():
            if t not in a[2]:
                continue
            if v == 0 and t in self.device:
                raise PlanError(f"before op {i}: op {a[1]} again makes {t.name}, which is on the device")
            if t.persistent:
                raise PlanError(f"before op {i}: op {a[1]} would update {t.name} again")
            self.now[t] = self.device[t] = v
            self.gone.discard(t)

    def _ended(self, t, i):
        return not t.persistent and i > t.last and i >= t.until

    def _back(self, i, t, v):
        if not self._can(t, v, {}):
            raise PlanError(f"before op {i}: {t.name} is needed, is away, and cannot be brought back")
        self.now[t] = self.device[t] = v
        self.gone.discard(t)

    def _can(self, t, v, seen):
        """Reports whether version v of a slot is somewhere or can be made again."""
        if self.device.get(t) == v or self.host.get(t) == v:
            return True
        if (t, v) not in seen:
            seen[t, v] = False
            i = self.maker().get((t, v))
            seen[t, v] = i is not None and i in self.again and all(
                self._can(x, w, seen) for x, w in self.iteration.groups[i].reads.items() if (x, w) != (t, v))
        return seen[t, v]

    def maker(self):
        """Returns which op makes which version of a slot."""
        if not hasattr(self, "_maker"):
            self._maker = {w: i for i, g in enumerate(self.iteration.groups) for w in g.writes()}
        return self._maker

    def _still(self, i):
        for t in self.gone:
            if not self._can(t, self.final(t, i), {}):
                raise PlanError(f"before op {i}: {t.name} has no copy and could no longer be made again")

    def final(self, t, i):
        """Returns the version of a slot that the script has before op i."""
        if not hasattr(self, "_history"):
            self._history = {}
            for j, g in enumerate(self.iteration.groups):
                for s, v in g.writes():
                    self._history.setdefault(s, []).append((j, v))
        return max((v for j, v in self._history.get(t, ()) if j < i), default=0)
