"""card.py probe|warm|pages|pin|launch: what a card and its driver do, by the driver's interface alone."""

import ctypes
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import time

from cuda import Driver, Error, P, U

HERE = os.path.dirname(os.path.abspath(__file__))
FAKE = bool(os.environ.get("GPU_CHECK_FAKE"))
MIB = 1 << 20


def texts():
    folder = os.path.join(HERE, "ptx")
    for file in sorted(os.listdir(folder)):
        with open(os.path.join(folder, file), "rb") as f:
            yield file[:-4], f.read() + b"\0"


def entries(ptx):
    return [line.split()[2].rstrip(b"(").decode() for line in ptx.splitlines() if line.startswith(b".visible .entry ")]


def ops(name):
    with open(os.path.join(HERE, "launches", name + ".jsonl")) as f:
        return [json.loads(line) for line in f]


def probe():
    """Every module's compilation, cold and from the cache, its kernels' registers, and a launch of each module."""
    os.environ.setdefault("CUDA_CACHE_PATH", os.path.join(os.environ.get("GPU_CHECK_WORK", "/tmp"), "jit"))  # before the driver looks
    d = Driver()
    free, total = d.free()
    print(f"@ {d.name()}, driver {d.version()}, capability {d.attribute(75)}.{d.attribute(76)}, {d.attribute(16)} multiprocessors, "
          f"{total // MIB} MiB, free {free // MIB} MiB with the context open, which took {1000 * d.opened:.0f} ms")
    cold, bad, spills, modules = 0.0, [], [], {}
    for name, ptx in texts():
        before = d.free()[0]
        try:
            begun = time.perf_counter()
            m, said = d.load(ptx)
            took = time.perf_counter() - begun
            begun = time.perf_counter()
            d.load(ptx)
            again = time.perf_counter() - begun
        except Error as e:
            bad.append(name)
            print(f"@ {name}: {e}")
            continue
        cold += took
        modules[name] = m
        registers = []
        for kernel in entries(ptx):
            try:
                f = d.function(m, kernel)
                r, local, shared = (d.of_function(f, n) for n in (4, 3, 1))
            except (Error, AttributeError) as e:
                print(f"{name} {kernel}: {e}")
                continue
            registers.append(r)
            if local:
                spills.append(f"{kernel} {local}")
            print(f"{name} {kernel}: {r} registers, {local} bytes local, {shared} shared")
        print(f"@ {name}: compiled in {1000 * took:.0f} ms, again {1000 * again:.0f} ms, at most {max(registers, default=0)} registers, "
              f"{(before - d.free()[0]) / MIB:.1f} MiB")
        if said:
            print(said)
    print(f"@ all compiled in {cold:.2f} s; local memory: {', '.join(spills) or 'none'}")
    tried, wrong = set(), []
    for op in (op for name in ("lenet", "bert", "gnmt", "alexnet", "nasnet-mobile") for op in ops(name)):
        need = {launch["module"] for launch in op["launches"]} - tried
        if not need or not need <= set(modules):
            continue
        tried |= need
        try:
            Run(d, op, modules)()
            d.CtxSynchronize()
        except Error as e:
            wrong.append(f"{op['kind']}: {e}")
            print(f"@ launch of {op['kind']}: {e}")
            break  # an error of a launch is sticky
    print(f"@ launched kernels of {len(tried)} of {len(modules)} modules; {(free - d.free()[0]) / MIB:.0f} MiB taken since the context")
    if bad or wrong:
        sys.exit("modules do not load: " + " ".join(bad) if bad else wrong[0])


def size(shape, kind):
    n = 1
    for x in shape:
        n *= x
    return n * (8 if kind in ("int64", "float64") else 1 if kind == "uint8" else 4)


class Run:
    """The launches of an op on memory of its own with random contents, some sets of it. Calling it queues them all."""

    def __init__(self, d, op, modules, sets=1, stream=None):
        self.d, self.stream, self.turn, self.held, self.calls = d, stream or d.stream(), 0, [], []
        source = random.Random(1)
        pool = None
        clock = self.memory(8)
        functions = [d.function(modules[x["module"]], x["kernel"]) for x in op["launches"]]
        scratch = self.memory(op["scratch"])
        for _ in range(sets):
            at = {}
            for letter, shapes, kinds in ("i", op["in"] or [], op["in_types"] or []), ("o", op["out"] or [], op["out_types"] or []):
                for i, (shape, kind) in enumerate(zip(shapes, kinds)):
                    n = size(shape, kind)
                    at[f"{letter}{i}"] = a = self.memory(n)
                    if letter == "i" and kind == "float32":
                        if not pool:  # uniform in [-1, 1): values as activations have them, not one constant
                            pool = (ctypes.c_float * 65536).from_buffer(mmap.mmap(-1, 4 * 65536))  # whole pages
                            pool[:] = [source.uniform(-1, 1) for _ in range(65536)]
                            d.MemHostRegister(pool, ctypes.c_size_t(ctypes.sizeof(pool)), 0)
                        self.fill(a, n, pool)
                    else:
                        self.fill(a, n, None)
            at["s"], at["t"] = scratch, clock
            self.calls.append([(f, x["grid"], x["block"], [self.value(at, v) for v in x["args"]])
                               for f, x in zip(functions, op["launches"])])
        if pool:
            d.MemHostUnregister(pool)

    def memory(self, n):
        a = self.d.alloc(n)
        self.held.append(a)
        if n <= 8:
            self.fill(a, 8, b"")
        return a

    def fill(self, a, n, pool):
        if not pool:
            self.d.MemsetD32Async(U(a), 0, ctypes.c_size_t(n // 4), self.stream) if n >= 4 else None
            self.d.sync(self.stream)
            return
        done = 0
        while done < n:
            m = min(ctypes.sizeof(pool), n - done)
            self.d.MemcpyHtoDAsync(U(a + done), pool, ctypes.c_size_t(m), self.stream)
            done += m
        self.d.sync(self.stream)

    @staticmethod
    def value(at, v):
        if isinstance(v, str):
            name, _, more = v.partition("+")
            return at[name] + int(more or 0)
        return v & (1 << 64) - 1

    def __call__(self):
        for f, grid, block, args in self.calls[self.turn % len(self.calls)]:
            self.d.launch(f, grid, block, args, self.stream)
        self.turn += 1

    def close(self):
        for a in self.held:
            self.d.MemFree(U(a))


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Property(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("windows", P),
                ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


def map_pages(d, mib, count):
    """Microseconds of each call for pages of a size: create, map, set access, unmap, release."""
    n = ctypes.c_size_t(mib * MIB)
    prop = Property(1, 0, Location(1, d.device.value), None)
    access = Access(Location(1, d.device.value), 3)
    base = U()
    d.MemAddressReserve(ctypes.byref(base), ctypes.c_size_t(mib * MIB * count), ctypes.c_size_t(0), U(0), U(0))
    times = {k: [] for k in ("create", "map", "access", "unmap", "release")}
    clock = time.perf_counter
    handles = []
    for i in range(count):
        h, a = U(), U(base.value + i * mib * MIB)
        t0 = clock()
        d.MemCreate(ctypes.byref(h), n, ctypes.byref(prop), U(0))
        t1 = clock()
        d.MemMap(a, n, ctypes.c_size_t(0), h, U(0))
        t2 = clock()
        d.MemSetAccess(a, n, ctypes.byref(access), ctypes.c_size_t(1))
        t3 = clock()
        handles.append((h, a))
        for k, t in ("create", t1 - t0), ("map", t2 - t1), ("access", t3 - t2):
            times[k].append(1e6 * t)
    for h, a in handles:
        t0 = clock()
        d.MemUnmap(a, n)
        t1 = clock()
        d.MemRelease(h)
        t2 = clock()
        times["unmap"].append(1e6 * (t1 - t0))
        times["release"].append(1e6 * (t2 - t1))
    d.MemAddressFree(base, ctypes.c_size_t(mib * MIB * count))
    return {k: statistics.median(v) for k, v in times.items()}


def pages():
    d = Driver()
    d.warm(*((0, 1) if FAKE else (2,)))
    sizes = (2, 8) if FAKE else (2, 8, 32, 128, 512)

    def table(state, busy=None):
        for mib in sizes:
            if busy:
                busy()
            t = map_pages(d, mib, 4 if FAKE else min(64, 4096 // mib))
            whole = sum(t.values()) * 1024 / mib / 1000
            print(f"@ {state} {mib} MiB: " + ", ".join(f"{k} {v:.0f}" for k, v in t.items()) + f" us; {whole:.1f} ms per GiB and back")
    table("idle")
    s = d.stream()
    table("kernel of this process", lambda: d.spin(100 if FAKE else 200000000, 1, s))
    if not FAKE:  # 200 million turns of some ns each: longer than a row takes
        d.CtxSynchronize()
        other = subprocess.Popen([sys.executable, __file__, "warm", "10"])
        try:
            time.sleep(1.5)
            table("kernel of another process")
        finally:
            other.terminate()
            other.wait()


def pin():
    d = Driver()
    d.warm(*((0, 1) if FAKE else (2,)))
    whole = 8 * MIB if FAKE else 4096 * MIB
    libc = ctypes.CDLL(None, use_errno=True)
    buffers = {}
    for name, huge in ("4K pages", False), ("huge pages", True):
        m = mmap.mmap(-1, whole + 2 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        a = (ctypes.addressof(ctypes.c_char.from_buffer(m)) + 2 * MIB - 1) & -(2 * MIB)
        said = libc.madvise(P(a), ctypes.c_size_t(whole), 14 if huge else 15)
        t0 = time.perf_counter()
        if libc.madvise(P(a), ctypes.c_size_t(whole), 23):  # MADV_POPULATE_WRITE, of Linux 5.14
            ctypes.memset(a, 0, whole)
        t1 = time.perf_counter()
        d.MemHostRegister(P(a), ctypes.c_size_t(whole), 0)
        t2 = time.perf_counter()
        gib = whole / (1 << 30)
        print(f"@ {name}: touched in {(t1 - t0) / gib:.3f} s per GiB, registered in {(t2 - t1) / gib:.3f} s per GiB"
              + (", madvise refused" if said else ""))
        buffers[name] = (a, m)
    kept = P()
    if d.has("MemHostAlloc"):
        try:
            t0 = time.perf_counter()
            d.MemHostAlloc(ctypes.byref(kept), ctypes.c_size_t(whole), 0)
            print(f"@ cuMemHostAlloc: {(time.perf_counter() - t0) / gib:.3f} s per GiB")
            buffers["cuMemHostAlloc"] = (kept.value, None)
        except Error as e:
            print(f"@ {e}")
    there, back = d.alloc(whole // 4), d.alloc(whole // 4)
    s1, s2 = d.stream(), d.stream()
    for a in there, back:
        d.MemsetD32Async(U(a), 0, ctypes.c_size_t(whole // 16), s1)
    d.sync(s1)
    sizes = [64 << 10, MIB] if FAKE else [64 << 10, 256 << 10, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB]
    for name, (a, _) in buffers.items():
        for way in "H2D", "D2H", "both":
            row = []
            for n in sizes:
                rounds = 1 if FAKE else max(3, min(200, (1 << 30) // n))
                begun = time.perf_counter()
                for _ in range(rounds):
                    if way != "D2H":
                        d.MemcpyHtoDAsync(U(there), P(a), ctypes.c_size_t(n), s1)
                    if way != "H2D":
                        d.MemcpyDtoHAsync(P(a + whole // 2), U(back), ctypes.c_size_t(n), s2)
                d.sync(s1)
                d.sync(s2)
                took = time.perf_counter() - begun
                label = f"{n >> 10}K" if n < MIB else f"{n >> 20}M"
                row.append(f"{label} {rounds * n * (2 if way == 'both' else 1) / took / 1e9:.1f}")
            print(f"@ {name} {way} GB/s: " + ", ".join(row))


def launch():
    """Microseconds of the GPU from one empty kernel to the next, with timing events between: a long kernel before them hides the CPU."""
    d = Driver()
    d.warm(*((0, 1) if FAKE else (2,)))
    s = d.stream()
    n, turns = (10, 100) if FAKE else (300, 10000000)
    events = [d.event() for _ in range(2 * n)]
    begin, end = d.event(), d.event()
    for between in 0, 1, 2:
        took, cpu = [], []
        for _ in range(1 if FAKE else 5):
            d.spin(turns, 1, s)
            d.EventRecord(begin, s)
            t0 = time.perf_counter()
            for i in range(n):
                d.spin(0, 1, s)
                for j in range(between):
                    d.EventRecord(events[2 * i + j], s)
            cpu.append(time.perf_counter() - t0)
            d.EventRecord(end, s)
            d.sync(s)
            took.append(d.ms(begin, end))
        print(f"@ {between} events between: {1000 * statistics.median(took) / n:.2f} us of the GPU, {1e6 * statistics.median(cpu) / n:.2f} us of "
              "the CPU from Python")
    if not d.has("StreamBeginCapture") or not d.has("GraphInstantiateWithFlags"):
        print("@ graph: this driver has no capture")
        return
    graph, run = P(), P()
    d.StreamBeginCapture(s, 1)
    for _ in range(n):
        d.spin(0, 1, s)
    d.StreamEndCapture(s, ctypes.byref(graph))
    d.GraphInstantiateWithFlags(ctypes.byref(run), graph, U(0))
    took = []
    for _ in range(6):
        d.EventRecord(begin, s)
        d.GraphLaunch(run, s)
        d.EventRecord(end, s)
        d.sync(s)
        took.append(d.ms(begin, end))
    print(f"@ graph replay: {1000 * statistics.median(took[1:]) / n:.2f} us of the GPU a kernel")


def warm(seconds="2"):
    Driver().warm(float(seconds))


if __name__ == "__main__":
    {"probe": probe, "pages": pages, "pin": pin, "launch": launch, "warm": warm}[sys.argv[1]](*sys.argv[2:])
