"""Random valid plans for an iteration."""


def random_plan(iteration, random, often=0.3, least=0, number=1):
    """Returns a plan that drops, copies and repeats at random, and is valid by construction."""
    groups, slots = iteration.groups, iteration.planned()
    ids = {t: i for i, t in enumerate(slots)}
    n = len(groups)
    maker = {w: i for i, g in enumerate(groups) for w in g.writes()}
    reads = {t: [] for t in slots}  # slot -> ops that touch it
    writes = {t: [] for t in slots}
    for i, g in enumerate(groups):
        for t in list(g.reads) + g.makes:
            reads[t].append(i)
        for t, _ in g.writes():
            writes[t].append(i)
    lasting = [t for t in slots if t.persistent]
    entry = {t for t in lasting if t.bytes < least or random.random() > often}
    device = {t: 0 for t in lasting if t in entry}
    host = {t: 0 for t in lasting if t not in entry}
    now = {t: 0 for t in lasting}
    boundaries, do = [], []
    counts = {"out": 0, "drop": 0, "in": 0, "again": 0}

    def act(what, t):
        counts[what] += 1
        do.append({"do": what, "storage": ids[t]})

    def remade(t, i, depth=0):
        """Reports whether a slot that is dropped before op i can be made again before its next use."""
        later = [j for j in reads[t] if j >= i]
        if t.persistent or not later or len(writes[t]) != 1 or depth > 3:
            return False
        g = groups[maker[t, 0]]
        if g.once or g.updates or maker[t, 0] >= i:
            return False
        return all(x.persistent and not any(j < later[-1] for j in writes[x] if j >= maker[t, 0]) or
                   not x.persistent and len(writes[x]) == 1 for x in g.reads)

    def ensure(t):
        if t in device:
            return
        if host.get(t) == now[t]:
            act("in", t)
        else:
            g = maker[t, 0]
            for x in groups[g].reads:
                ensure(x)
            outs = [k for k, (x, _) in enumerate(groups[g].writes()) if x not in device]
            counts["again"] += 1
            do.append({"do": "again", "op": g, "outputs": outs})
            for x in (groups[g].writes()[k][0] for k in outs):
                device[x] = now[x] = 0
        device[t] = now[t]

    needed = set()  # slots from which others are to be made again
    for i in range(n + 1):
        do = []
        g = groups[i] if i < n else None
        touched = set(g.reads) | set(g.makes) if g else set()
        for t in [t for t in list(device) if t not in touched]:
            if t.bytes < least or random.random() > often * 0.5:
                continue
            if not t.persistent and i > t.last and i >= t.until and t not in needed:
                continue
            if host.get(t) != device[t] and t not in needed and random.random() < 0.5 and remade(t, i):
                needed.update(groups[maker[t, 0]].reads)
                act("drop", t)
                del device[t]
                continue
            if host.get(t) != device[t]:
                if any(t in needed and x is not t and x not in device and host.get(x) != now.get(x)
                       for x in (t,)):
                    continue
                act("out", t)
                host[t] = device[t]
            act("drop", t)
            del device[t]
        if g:
            for t in g.reads:
                ensure(t)
            for t, v in g.writes():
                device[t] = now[t] = v
        else:
            for t in lasting:
                if t in entry:
                    ensure(t)
                elif t in device:
                    if host.get(t) != now[t]:
                        act("out", t)
                    act("drop", t)
        if do:
            boundaries.append({"before": i, "do": do})
    return {"number": number, "graph": 1, "limit_bytes": 0, "entry": sorted(ids[t] for t in entry),
            "boundaries": boundaries}, counts


def peak(iteration, plan):
    """Returns the most bytes that a plan promises: storages on the device, held bytes and scratch."""
    groups, slots = iteration.groups, iteration.planned()
    before = {b["before"]: b["do"] for b in plan["boundaries"]}
    device = {slots[s] for s in plan["entry"]}
    needed = {}  # slot -> the last boundary that needs it
    for i, do in before.items():
        for a in do:
            names = ([slots[a["storage"]]] if "storage" in a else
                     list(groups[a["op"]].reads) + [t for t, _ in groups[a["op"]].writes()])
            for t in names:
                needed[t] = max(i, needed.get(t, 0))
    most = 0

    def now(extra):
        return iteration.held + sum(t.bytes for t in device) + extra

    for i in range(len(groups) + 1):
        for a in before.get(i, ()):
            if a["do"] == "drop":
                device.discard(slots[a["storage"]])
            elif a["do"] == "in":
                device.add(slots[a["storage"]])
            elif a["do"] == "again":
                g = groups[a["op"]]
                writes = [t for t, _ in g.writes()]
                device.update(writes[k] for k in a.get("outputs") or range(len(writes)))
                most = max(most, now(g.scratch + sum(t.bytes for t in writes)))
            most = max(most, now(0))
        if i == len(groups):
            return most
        g = groups[i]
        device.update(g.makes)
        most = max(most, now(g.scratch))
        for t in list(device):
            if not t.persistent and i >= t.last and i + 1 >= t.until and needed.get(t, -1) <= i:
                device.discard(t)


def shelved(iteration):
    """Returns a plan that has what is trained on the host between iterations, and where no op needs it."""
    slots, groups = iteration.planned(), iteration.groups
    do = {}
    for n, t in enumerate(slots):
        if t.persistent:
            used = [i for i, g in enumerate(groups) if t in g.reads or t in g.updates]
            do.setdefault(used[0], []).append({"do": "in", "storage": n})
            do.setdefault(used[-1] + 1, []).extend({"do": w, "storage": n} for w in ("out", "drop"))
    return {"limit_bytes": 0, "entry": [], "boundaries": [{"before": i, "do": do[i]} for i in sorted(do)]}
