"""CUDA's driver interface by ctypes: neither Go nor nvcc nor torch. GPU_CHECK_CUDA names another library than libcuda.so.1."""

import ctypes
import os
import time

P, U = ctypes.c_void_p, ctypes.c_uint64

# A kernel that multiplies for so many turns, for warm clocks and a busy GPU. It stores nothing, but its compiler cannot know that.
SPIN = b"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry spin(
	.param .u64 spin_param_0,
	.param .u64 spin_param_1
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	.reg .f32 %f<3>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [spin_param_0];
	ld.param.u64 %rd2, [spin_param_1];
	mov.f32 %f1, 0f3F800000;
$again:
	setp.eq.s64 %p1, %rd1, 0;
	@%p1 bra $end;
	fma.rn.f32 %f1, %f1, 0f3F7FFFFF, 0f33D6BF95;
	add.s64 %rd1, %rd1, -1;
	bra.uni $again;
$end:
	setp.lt.f32 %p1, %f1, 0f00000000;
	@!%p1 bra $out;
	st.global.f32 [%rd2], %f1;
$out:
	ret;
}
\0"""


class Error(Exception):
    def __init__(self, call, code, what):
        super().__init__(f"{call}: {code} {what}")
        self.call, self.code = call, code


class Driver:
    """The driver with the context of device 0 on this thread. d.Name(arguments) calls cuName, or its newest _v2, and raises Error."""

    def __init__(self):
        self.path = os.environ.get("GPU_CHECK_CUDA", "libcuda.so.1")
        self.lib = ctypes.CDLL(self.path)
        if hasattr(self.lib, "tensileFakeReady"):
            self.lib.tensileFakeReady()
        self.Init(0)
        self.device = ctypes.c_int()
        self.DeviceGet(ctypes.byref(self.device), 0)
        begun = time.perf_counter()
        self.context = P()
        self.DevicePrimaryCtxRetain(ctypes.byref(self.context), self.device)
        self.CtxSetCurrent(self.context)
        self.opened = time.perf_counter() - begun
        self.spinning = None

    def has(self, name):
        return hasattr(self.lib, "cu" + name)

    def __getattr__(self, name):
        f = getattr(self.lib, f"cu{name}_v2", None)
        f = f or getattr(self.lib, "cu" + name)

        def call(*args):
            code = f(*args)
            if code:
                what, more = ctypes.c_char_p(), ctypes.c_char_p()
                self.lib.cuGetErrorName(code, ctypes.byref(what))
                self.lib.cuGetErrorString(code, ctypes.byref(more))
                raise Error("cu" + name, code, ((what.value or b"") + b" " + (more.value or b"")).decode())
        self.__dict__[name] = call
        return call

    def free(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.MemGetInfo(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def version(self):
        n = ctypes.c_int()
        if self.lib.cuDriverGetVersion(ctypes.byref(n)):
            return "?"
        return n.value

    def attribute(self, number):
        n = ctypes.c_int()
        self.DeviceGetAttribute(ctypes.byref(n), number, self.device)
        return n.value

    def name(self):
        text = ctypes.create_string_buffer(200)
        self.DeviceGetName(text, 200, self.device)
        return text.value.decode()

    def alloc(self, size):
        a = U()
        self.MemAlloc(ctypes.byref(a), ctypes.c_size_t(max(size, 256)))
        return a.value

    def stream(self):
        s = P()
        self.StreamCreate(ctypes.byref(s), 1)  # one that does not wait for the default stream
        return s

    def event(self):
        e = P()
        self.EventCreate(ctypes.byref(e), 1)  # the thread sleeps while it waits
        return e

    def sync(self, stream):
        e = self.event()
        self.EventRecord(e, stream)
        self.EventSynchronize(e)
        self.EventDestroy(e)

    def ms(self, a, b):
        t = ctypes.c_float()
        self.EventElapsedTime(ctypes.byref(t), a, b)
        return t.value

    def load(self, ptx, log=True):
        """Loads a text, and returns the module and what the compiler says of it."""
        said, wrong = ctypes.create_string_buffer(16384), ctypes.create_string_buffer(16384)
        m = P()
        if not log:
            self.ModuleLoadDataEx(ctypes.byref(m), ptx, 0, None, None)
            return m, ""
        options = (ctypes.c_int * 5)(3, 4, 5, 6, 12)  # info log and its size, error log and its size, verbose
        values = (P * 5)(ctypes.cast(said, P), 16384, ctypes.cast(wrong, P), 16384, 1)
        try:
            self.ModuleLoadDataEx(ctypes.byref(m), ptx, 5, options, values)
        except Error as e:
            raise Error(e.call, e.code, f"{e} {wrong.value.decode(errors='replace')}") from None
        return m, said.value.decode(errors="replace")

    def function(self, module, name):
        f = P()
        self.ModuleGetFunction(ctypes.byref(f), module, name.encode())
        return f

    def of_function(self, f, number):
        n = ctypes.c_int()
        self.FuncGetAttribute(ctypes.byref(n), number, f)
        return n.value

    def launch(self, f, grid, block, args, stream=None):
        """args are integers of eight bytes each."""
        words = (U * max(1, len(args)))(*args)
        base = ctypes.addressof(words)
        pointers = (P * max(1, len(args)))(*(base + 8 * i for i in range(len(args))))
        self.LaunchKernel(f, *grid, *block, 0, stream, pointers, None)

    def spin(self, turns, blocks=1, stream=None):
        if not self.spinning:
            self.spinning = self.function(self.load(SPIN, log=False)[0], "spin")
        self.launch(self.spinning, (blocks, 1, 1), (128 if blocks > 1 else 1, 1, 1), (turns, 0), stream)

    def warm(self, seconds=2.0, turns=200000):
        """Has all multiprocessors busy for so long, since an idle card has slow clocks."""
        s, end = self.stream(), time.monotonic() + seconds
        while time.monotonic() < end:
            self.spin(turns, 264, s)
            self.sync(s)
