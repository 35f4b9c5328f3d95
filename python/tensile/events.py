"""What the allocator does while something runs, and how long that takes."""

import ctypes
import threading
import time

import torch

try:
    from torch.autograd import ProfilerConfig, ProfilerState, _disable_profiler_legacy, _enable_profiler_legacy

    _config = (ProfilerState.CPU, False, True, False, False, False, torch._C._profiler._ExperimentalConfig())
except (ImportError, AttributeError):
    _config = None


def _levels():
    """Returns the variables with the level from which on torch's C++ parts log: its own, or glog's."""
    found = []
    for name in "_ZN3c1022FLAGS_caffe2_log_levelE", "FLAGS_caffe2_log_level", "_ZN3fLI17FLAGS_minloglevelE":
        try:
            found.append(ctypes.c_int.in_dll(ctypes.CDLL(torch._C.__file__), name))
        except (OSError, ValueError):
            pass
    return found


_ERROR = 2
_log_levels = _levels()


class Events:
    """Between start and stop: the sizes of what the CPU's allocator gave (positive) and took back, in order, and None where
    an iteration began.

    Where torch has no such events, or another profiler runs, known is False. Start and stop are in the same node of a
    backward pass, or in none: torch undoes there what a node has begun.
    """

    def __init__(self):
        self.known = False
        self.levels = []

    def start(self):
        if _config is not None:
            try:
                _enable_profiler_legacy(ProfilerConfig(*_config))
                self.known = True
                # torch warns of each block that it frees and did not see before
                self.levels = [level.value for level in _log_levels]
                for level in _log_levels:
                    level.value = max(level.value, _ERROR)
            except Exception:  # another profiler runs, or this torch wants other words
                pass
        return self

    def stop(self):
        if not self.known:
            return []
        for level, value in zip(_log_levels, self.levels):
            level.value = value
        sizes = []
        try:
            threads = _disable_profiler_legacy()
        except RuntimeError:  # it began elsewhere, such as within a backward pass
            self.known = False
            return []
        for thread in threads:
            dropped, depth = None, 0  # bytes that playback takes away
            hidden = 0  # how deep in moves that are not the script's
            for e in thread:
                kind = e.kind()
                if hidden or kind == "push" and e.name() == _MOVE:
                    hidden += (kind == "push") - (kind == "pop")
                    continue
                depth += (kind == "push") - (kind == "pop")
                if kind == "memory_alloc":
                    sizes.append(e.cpu_memory_usage())
                    if dropped == -sizes[-1]:
                        dropped = None
                elif kind == "push" and e.name() == _BEGIN:
                    sizes.append(None)
                elif kind == "push" and e.name().startswith(_DROP):
                    dropped, depth = int(e.name()[len(_DROP):]), 0
                elif kind == "pop" and depth < 0 and dropped is not None:
                    # the allocator tells nothing of what it gave before the start
                    sizes.append(-dropped)
                    dropped = None
        return sizes


class Peaks:
    """The most that the CPU's allocator has in an iteration, by its events. These are taken from the end of a step to the end
    of the next: an iteration may begin within a backward pass, and has parts of two such spans."""

    def __init__(self):
        self.thread = threading.get_ident()
        self.events = None
        self.begun = []  # in this span: bytes at the start of each iteration, and what is told the most of it, or None
        self.now = self.most = 0  # of the iteration that began in a span before
        self.tell = None

    @property
    def taken(self):
        """Reports whether events are taken now."""
        return self.events is not None and self.events.known

    def open(self):
        """Reports whether an iteration runs whose most is to be told."""
        return any(tell for _, tell in [(0, self.tell), *self.begun])

    def span(self, on):
        """Ends a span at the end of a step, and begins the next. Torch's profiler belongs to a thread, and what a node of a
        backward pass does with it is undone: a span that comes to its end elsewhere goes on, and tells nothing."""
        if not self._here() or torch._C._current_graph_task_id() != -1:
            self.tell, self.begun = None, [(now, None) for now, _ in self.begun]
            return
        if self.events is not None:
            for size in self.events.stop():
                if size is None:
                    if self.tell:
                        self.tell(self.most)
                    self.now, self.tell = self.begun.pop(0)
                    self.most = self.now
                else:
                    self.now += size
                    self.most = max(self.most, self.now)
            if not self.events.known or not on:
                self.tell = None
        self.begun = []
        self.events = Events().start() if on else None

    def _here(self):
        return threading.get_ident() == self.thread

    def begin(self, now, tell):
        """An iteration begins; now is how many bytes there are, and tell is told the most that it has, after its end."""
        if self.taken and self._here():
            with marking():
                self.begun.append((now, tell))

    def forget(self):
        """The most of the iteration that runs is not told."""
        if self.begun:
            self.begun[-1] = self.begun[-1][0], None
        else:
            self.tell = None


class Figures:
    """The figures of CUDA's allocator. To have the peaks of an iteration they are set back at its start; the script is told
    the highest since it has set them back itself."""

    def __init__(self, device):
        self.device = device.index
        self.stats = getattr(torch._C, "_cuda_memoryStats", None)
        self.reset = getattr(torch._C, "_cuda_resetPeakMemoryStats", None)
        self.kept = {}  # (figure, pool) -> the highest peak before it was set back here
        self.failures = 0  # of allocations

    def take(self):
        """Returns the figures, and sets the peaks back."""
        stats = self.stats(self.device)
        for name, pools in stats.items():
            if isinstance(pools, dict):
                for pool, figure in pools.items():
                    self.kept[name, pool] = max(self.kept.get((name, pool), 0), figure["peak"])
        self.reset(self.device)
        return stats

    def failed(self, stats):
        """Returns how many allocations have failed since it was last asked: they were tried again, or another way."""
        before, self.failures = self.failures, stats["num_alloc_retries"] + stats["num_ooms"]
        return self.failures - before

    def start(self):
        """Begins as Events do."""
        self.base = self.take()["allocated_bytes"]["all"]["current"]
        return self

    def stop(self):
        return [self.stats(self.device)["allocated_bytes"]["all"]["peak"] - self.base]

    # hooks of what tells the script

    def told(self, old):
        def run(device):
            stats = old(device)
            if device == self.device:
                for (name, pool), peak in self.kept.items():
                    if name in stats:
                        figure = stats[name][pool]
                        figure["peak"] = max(figure["peak"], peak)
            return stats
        return run

    def set_back(self, old):
        def run(device):
            if device == self.device:
                self.kept.clear()
            return old(device)
        return run


class Times:
    """Takes the times of ops: on CUDA between two events of the stream, which are read later, so that nothing waits."""

    pool = []  # events of CUDA that nobody uses

    def __init__(self, device):
        self.cuda = device.type == "cuda"
        self.taken = []  # begin, end, and what is told the nanoseconds

    def begin(self):
        if not self.cuda:
            return time.perf_counter_ns()
        event = self.pool.pop() if self.pool else torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def end(self, begun, tell):
        """Tells the nanoseconds since begin: at once, or when they are read."""
        if self.cuda:
            self.taken.append((begun, self.begin(), tell))
        else:
            tell(time.perf_counter_ns() - begun)

    def read(self):
        for begun, end, tell in self.taken:
            end.synchronize()
            tell(round(begun.elapsed_time(end) * 1e6))
        self.forget()

    def forget(self):
        for begun, end, _ in self.taken:
            self.pool += begun, end
        self.taken = []


_DROP, _BEGIN, _MOVE = "tensile.drop ", "tensile.begin", "tensile.move"


def marking():
    """Returns a context that is None among the sizes."""
    return torch.autograd.profiler.record_function(_BEGIN)


def moving():
    """Returns a context whose sizes do not count."""
    return torch.autograd.profiler.record_function(_MOVE)


def dropping(count):
    """Returns a context for the end of memory that may have been there before the start of Events."""
    return torch.autograd.profiler.record_function(_DROP + str(count))


def highest(sizes):
    """Returns the most that was there at a time, and what is there at the end, beyond the start."""
    now = most = 0
    for size in sizes:
        now += size
        most = max(most, now)
    return most, now
