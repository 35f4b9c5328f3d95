"""What the allocator does while something runs, by torch's own events."""

import ctypes
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
    """Between start and stop: the sizes of what the CPU's allocator gave (positive) and took back, in order.

    Where torch has no such events, or another profiler runs, known is False.
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
            for e in thread:
                kind = e.kind()
                depth += (kind == "push") - (kind == "pop")
                if kind == "memory_alloc":
                    sizes.append(e.cpu_memory_usage())
                    if dropped == -sizes[-1]:
                        dropped = None
                elif kind == "push" and e.name().startswith(_DROP):
                    dropped, depth = int(e.name()[len(_DROP):]), 0
                elif kind == "pop" and depth < 0 and dropped is not None:
                    # the allocator tells nothing of what it gave before the start
                    sizes.append(-dropped)
                    dropped = None
        return sizes


class Peak:
    """The same of CUDA's allocator, of which its own figures tell the highest."""

    def start(self):
        torch.cuda.reset_peak_memory_stats()
        self.base = torch.cuda.memory_allocated()
        return self

    def stop(self):
        return [torch.cuda.max_memory_allocated() - self.base]


def now_ns(device):
    """Returns a time in nanoseconds at which the device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter_ns()


_DROP = "tensile.drop "


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
