"""Which kind of iteration comes next, from those that have come."""

RUNS = 3  # of one kind each, that tell what comes after them
CONTEXTS = 1024  # that are kept
EITHER = object()  # what came after some runs was not always the same


class Kinds:
    """The order in which kinds of iterations come: n of one, then m of another, as where a script evaluates, logs or
    accumulates every so often. A kind is any object; None is one that is not known."""

    def __init__(self):
        self.runs = []  # the newest (kind, how many in a row)
        self.after = {}  # runs -> the kind that came after them the last time
        self.single = set()  # kinds that never came twice in a row

    def _contexts(self):
        """Returns what may tell: one run alone does not, as what comes but once comes after some run, too."""
        return {tuple(self.runs[-n:]) for n in range(2, RUNS + 1) if n <= len(self.runs)}

    def add(self, kind):
        """An iteration of a kind has come."""
        if len(self.after) > CONTEXTS:
            self.after.clear()
        went_on = bool(self.runs) and self.runs[-1][0] is kind
        for c in self._contexts():
            told = self.after.get(c)
            if kind is None and told is not None:  # what is not known may be anything: it unsays nothing
                continue
            if told is not None and told is not kind and len(c) < RUNS:
                self.after[c] = EITHER
            elif c in self.after and went_on:
                del self.after[c]
            elif not went_on and told is not EITHER:
                self.after[c] = kind
        if went_on:
            self.single.discard(kind)
            self.runs[-1] = kind, self.runs[-1][1] + 1
        else:
            self.runs = [*self.runs[-RUNS + 1:], (kind, 1)]

    def next(self):
        """Returns the kind that comes next, most likely: where nothing tells, the same again. After one or two that are not
        known, as the last of an epoch and the first of the next, the one before comes again, and after one that is single."""
        for c in sorted(self._contexts(), key=len, reverse=True):
            if self.after.get(c, EITHER) is not EITHER:
                return self.after[c]
        if not self.runs:
            return None
        kind, times = self.runs[-1]
        if (kind in self.single or kind is None and times <= 2) and len(self.runs) > 1:
            return self.runs[-2][0]
        return kind

    def steady(self, kind, times):
        """Reports whether at least so many of a kind have come in a row."""
        return bool(self.runs) and self.runs[-1][0] is kind and self.runs[-1][1] >= times

    def forget(self, kind):
        """A kind is none any more."""
        self.after = {c: k for c, k in self.after.items() if k is not kind and all(r[0] is not kind for r in c)}
        self.runs = [r for r in self.runs if r[0] is not kind]

    def replace(self, kind, other):
        """A kind is another object from now on."""
        def new(runs):
            return [(other if k is kind else k, n) for k, n in runs]

        self.runs = new(self.runs)
        self.single = {other if k is kind else k for k in self.single}
        self.after = {tuple(new(c)): other if k is kind else k for c, k in self.after.items()}
