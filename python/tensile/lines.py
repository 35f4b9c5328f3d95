"""What a sidecar may say: lines of JSON, as package external of Tensile describes them, checked field by field."""

import json

LONGEST = 64 << 20  # bytes of a line
LARGEST = 1 << 53


def read(text):
    """Returns the kind and the body of a line; raises ValueError, which says in one line what is wrong with it."""
    try:
        message = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _fields(message, "a line", ("version", "kind"), ("body",))
    if _whole(message["version"], "version", 0) != 1:
        raise ValueError(f"it is of version {message['version']}, this package knows version 1: take that of the same "
                         "release")
    kind, body = message["kind"], message.get("body", {})
    check = _checks.get(kind) if isinstance(kind, str) else None
    if check is None:
        raise ValueError(f"kind {_short(kind)} is not known")
    check(body)
    return kind, body


def _short(value):
    return repr(value)[:40]


def _fields(value, what, needed, others=()):
    if type(value) is not dict:
        raise ValueError(f"{what} is {_short(value)}, no object")
    for name in needed:
        if name not in value:
            raise ValueError(f"{what} has no {name}")
    for name in value:
        if name not in needed and name not in others:
            raise ValueError(f"{what} has the field {_short(name)}, which is not known")


def _whole(value, what, least):
    if type(value) is not int or not least <= value <= LARGEST:
        raise ValueError(f"{what} is {_short(value)}, not a whole number from {least} on")
    return value


def _ascending(value, what):
    if type(value) is not list:
        raise ValueError(f"{what} is {_short(value)}, no list")
    last = -1
    for v in value:
        if _whole(v, what, 0) <= last:
            raise ValueError(f"{what} does not ascend at {v}")
        last = v


def _plan(body):
    _fields(body, "a plan", ("number", "graph", "limit_bytes"), ("why", "strict", "plan_bytes", "entry", "boundaries"))
    _whole(body["number"], "number", 1)
    _whole(body["graph"], "graph", 0)
    _whole(body["limit_bytes"], "limit_bytes", 0)
    _whole(body.get("plan_bytes", 0), "plan_bytes", 0)
    if not isinstance(body.get("why", ""), str):
        raise ValueError("why is no text")
    if type(body.get("strict", False)) is not bool:
        raise ValueError(f"strict is {_short(body['strict'])}, not true or false")
    _ascending(body.get("entry", []), "entry")
    boundaries = body.get("boundaries", [])
    if type(boundaries) is not list:
        raise ValueError(f"boundaries is {_short(boundaries)}, no list")
    for b in boundaries:
        _fields(b, "a boundary", ("before", "do"))
        if type(b["do"]) is not list or not b["do"]:
            raise ValueError("a boundary has nothing to do")
        for a in b["do"]:
            _action(a)
    _ascending([b["before"] for b in boundaries], "before")
    if body["graph"] == 0 and (body.get("entry") or boundaries):
        raise ValueError("there is a plan for no graph")
    if body.get("strict") and (body["graph"] or not body["limit_bytes"]):
        raise ValueError("it is strict, and no limit without a plan")


def _action(a):
    _fields(a, "an action", ("do",), ("storage", "op", "outputs", "wait"))
    do = a["do"]
    if do in ("out", "drop", "in"):
        _fields(a, do, ("do", "storage"), ("wait",))
        _whole(a["storage"], "storage", 0)
    elif do == "again":
        _fields(a, do, ("do", "op"), ("outputs",))
        _whole(a["op"], "op", 0)
        _ascending(a.get("outputs", []), "outputs")
    else:
        raise ValueError(f"{_short(do)} is nothing to do")
    if type(a.get("wait", False)) is not bool:
        raise ValueError(f"wait is {_short(a['wait'])}, not true or false")


def _numbered(body):
    _fields(body, "it", ("number",))
    _whole(body["number"], "number", 1)


def _empty(body):
    _fields(body, "it", ())


_checks = {"plan": _plan, "park": _numbered, "resume": _numbered, "stop": _empty}
