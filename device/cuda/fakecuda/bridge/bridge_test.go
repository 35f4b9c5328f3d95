//go:build gpu

package bridge

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"tensile/device/cuda"
	"tensile/device/cuda/driver"
	"tensile/device/cuda/fakecuda"
	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
)

// rig is the driver on cu, on the bridge, on a fake, whose calls must succeed.
type rig struct {
	*testing.T
	d *driver.Driver
}

func newRig(t *testing.T, o fakecuda.Options) rig {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	Install(fakecuda.New(o))
	r := rig{t, driver.New()}
	r.do(r.d.Open(0))
	return r
}

func (r rig) do(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func must[T any](r rig) func(T, error) T {
	return func(v T, err error) T {
		r.Helper()
		r.do(err)
		return v
	}
}

func (r rig) stream() cuda.Stream { return must[cuda.Stream](r)(r.d.NewStream()) }

// mark records a new event on a stream.
func (r rig) mark(s cuda.Stream) cuda.Event {
	r.Helper()
	e := must[cuda.Event](r)(r.d.NewEvent())
	r.do(r.d.Record(s, e))
	return e
}

// pin returns pinned pages.
func (r rig) pin(n int) []byte {
	r.Helper()
	memory, err := syscall.Mmap(-1, 0, n*os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	r.do(err)
	r.Cleanup(func() { syscall.Munmap(memory) })
	r.do(r.d.Pin(memory))
	return memory
}

// refused fails unless an error is the driver's, with a call, a code and words.
func (r rig) refused(err error, call string, code cuda.Code, words ...string) {
	r.Helper()
	own, ok := errors.AsType[*cuda.Error](err)
	if !ok {
		r.Fatalf("got %v, want an error of the driver with %q", err, words)
	}
	if own.Call != call || own.Code != code {
		r.Errorf("got %s and %d in %v, want %s and %d", own.Call, own.Code, err, call, code)
	}
	for _, word := range words {
		if !strings.Contains(own.Text, word) {
			r.Errorf("got %q, want %q in it", own.Text, word)
		}
	}
}

// The properties are those of the fake, the bus id as NVML writes it.
func TestDevices(t *testing.T) {
	fake := fakecuda.New(fakecuda.Options{Exclusive: true})
	want, err := fake.Devices()
	if err != nil {
		t.Fatal(err)
	}
	Install(fake)
	got, err := driver.New().Devices()
	if err != nil || len(got) != 1 || got[0] != want[0] {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// Drivers before 396 lack the call for the UUID, which is left out, those before CUDA 10.2 all that maps memory. Every
// other call that a driver lacks is an error.
func TestOldDrivers(t *testing.T) {
	whole, lacking := cuda.Properties{}, map[string]int{}
	for call := 0; ; call++ {
		fake := fakecuda.New(fakecuda.Options{Fail: fakecuda.Failure{Call: call, Code: cuda.NotFound}})
		Install(fake)
		got, err := driver.New().Devices()
		if call == 0 {
			whole = got[0]
			continue
		}
		if made := fake.Calls()["cuDeviceGet"]; made < call {
			break
		}
		if err != nil {
			continue
		}
		uuid, page := whole, whole
		uuid.UUID, page.Page = "", 0
		switch got[0] {
		case uuid:
			lacking["UUID"]++
		case page:
			lacking["page"]++
		default:
			t.Errorf("call %d fails: got %+v", call, got)
		}
	}
	if lacking["UUID"] != 1 || lacking["page"] != 1 {
		t.Errorf("one call each can be left out, got %v", lacking)
	}
	for code, want := range map[cuda.Code]bool{cuda.InvalidValue: true, cuda.LaunchFailed: false} {
		// the last attribute is one that those drivers do not know
		fake := fakecuda.New(fakecuda.Options{NoPages: true})
		Install(fake)
		if _, err := driver.New().Devices(); err != nil {
			t.Fatal(err)
		}
		last := fake.Calls()["cuDeviceGet"]
		Install(fakecuda.New(fakecuda.Options{Fail: fakecuda.Failure{Call: last, Code: code}}))
		got, err := driver.New().Devices()
		if (err == nil) != want || want && got[0].Page != 0 {
			t.Errorf("an unknown attribute, code %d: got %+v, %v", code, got, err)
		}
	}
}

// add has each thread add a number to a word.
const add = `.version 6.0
.target sm_60
.address_size 64
.visible .entry add(
	.param .u64 add_param_0,
	.param .u64 add_param_1
)
{
	.reg .b32 %r<5>;
	.reg .b64 %rd<6>;
	ld.param.u64 %rd1, [add_param_0];
	ld.param.u64 %rd2, [add_param_1];
	cvta.to.global.u64 %rd3, %rd1;
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd4, %r1, 4;
	add.s64 %rd5, %rd3, %rd4;
	ld.global.u32 %r2, [%rd5];
	cvt.u32.u64 %r3, %rd2;
	add.s32 %r4, %r2, %r3;
	st.global.u32 [%rd5], %r4;
	ret;
}
`

// Bytes go to the device, are filled in part, changed by a kernel, and come back, over three streams with events
// between them.
func TestCopies(t *testing.T) {
	for seed := range uint64(4) {
		r := newRig(t, fakecuda.Options{Seed: seed})
		m := must[cuda.Module](r)(r.d.Load(add))
		f := must[cuda.Function](r)(r.d.Function(m, "add"))
		in, fill, out, memory := r.stream(), r.stream(), r.stream(), r.pin(2)
		a := must[cuda.Address](r)(r.d.Alloc(4096))
		from, to := memory[:4096], memory[4096:][:4096]
		for i := range from {
			from[i] = byte(i*7 + 1)
		}
		r.do(r.d.CopyIn(in, a, from))
		r.do(r.d.Wait(fill, r.mark(in)))
		r.do(r.d.Fill(fill, a+256, 0x01020304, 16))
		r.do(r.d.Launch(fill, cuda.Launch{Function: f, Op: "add", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{16, 1, 1},
			Args: []uint64{uint64(a) + 256, 0x10}}))
		r.do(r.d.Wait(out, r.mark(fill)))
		r.do(r.d.CopyOut(out, to, a))
		r.d.Watch(out, r.mark(out), 7)
		if token, ok, err := r.d.Next(t.Context(), nil); err != nil || !ok || token != 7 {
			t.Fatalf("seed %d: Next = %d, %v, %v", seed, token, ok, err)
		}
		want := bytes.Clone(from)
		copy(want[256:], bytes.Repeat([]byte{0x14, 3, 2, 1}, 16))
		if !bytes.Equal(to, want) {
			t.Errorf("seed %d: other bytes came back", seed)
		}
		r.do(r.d.Close())
	}
}

// Memory and time are as the device says.
func TestMemory(t *testing.T) {
	r := newRig(t, fakecuda.Options{})
	free, total, err := r.d.Free()
	if r.do(err); free != total || total <= 0 {
		t.Errorf("%v of %v are free", free, total)
	}
	a := must[cuda.Address](r)(r.d.Alloc(1 << 20))
	if now, _, err := r.d.Free(); err != nil || now != free-1<<20 {
		t.Errorf("%v are free then, %v, of %v", now, err, free)
	}
	s := r.stream()
	before := r.mark(s)
	r.do(r.d.Fill(s, a, 0, 1<<18))
	after := r.mark(s)
	r.do(r.d.Synchronize())
	for _, e := range []cuda.Event{before, after} {
		if ended, err := r.d.Ended(e); err != nil || !ended {
			t.Errorf("after Synchronize: %v, %v", ended, err)
		}
	}
	if took, err := r.d.Elapsed(before, after); err != nil || took <= 0 {
		t.Errorf("a fill took %v, %v", took, err)
	}
	r.do(r.d.Release(a))
	r.do(r.d.Close())
}

// Memory is mapped to addresses, used, unmapped, and free again; what is left at Close is given back.
func TestPages(t *testing.T) {
	r := newRig(t, fakecuda.Options{})
	all, err := r.d.Devices()
	r.do(err)
	page := all[0].Page
	free, _, err := r.d.Free()
	r.do(err)
	used := func() graph.Bytes {
		now, _, err := r.d.Free()
		r.do(err)
		return free - now
	}
	at := must[cuda.Address](r)(r.d.ReserveAddresses(4 * page))
	place := func(n int) cuda.Address { return at + cuda.Address(n)*cuda.Address(page) }
	for n := 1; n < 3; n++ {
		m := must[cuda.Memory](r)(r.d.CreateMemory(page))
		r.do(r.d.Map(place(n), page, m))
		r.do(r.d.ReleaseMemory(m))
	}
	s := r.stream()
	r.refused(r.d.Fill(s, place(1), 7, 1), "cuMemsetD32Async", cuda.InvalidValue, "in no allocation")
	r.do(r.d.Access(place(1), 2*page))
	host := r.pin(1)
	r.do(r.d.Fill(s, place(2)-256, 7, 128))
	r.do(r.d.CopyOut(s, host[:512], place(2)-256))
	r.do(r.d.Synchronize())
	if !bytes.Equal(host[:512], bytes.Repeat([]byte{7, 0, 0, 0}, 128)) || used() != 2*page {
		t.Errorf("%d bytes of the device are used, %v came back", used(), host[:512])
	}
	r.do(r.d.Unmap(place(1), page))
	if used() != page {
		t.Errorf("%d bytes of the device are used, want a page of %d", used(), page)
	}
	_, err = r.d.CreateMemory(free / page * page)
	r.refused(err, "cuMemCreate", cuda.OutOfMemory, "out of memory")
	r.refused(r.d.Unmap(place(1), page), "cuMemUnmap", cuda.InvalidValue, "not what was mapped")
	r.refused(r.d.ReleaseAddresses(at, 4*page), "cuMemAddressFree", cuda.InvalidValue, "is mapped")
	r.do(r.d.Unmap(place(2), page))
	r.do(r.d.ReleaseAddresses(at, 4*page))
	at = must[cuda.Address](r)(r.d.ReserveAddresses(2 * page))
	r.do(r.d.Map(at, page, must[cuda.Memory](r)(r.d.CreateMemory(page))))
	r.do(r.d.Close()) // of the fake, which objects to what it still holds
}

// Errors have cu's code, the name and text of the driver, and the name of the call.
func TestErrors(t *testing.T) {
	r := newRig(t, fakecuda.Options{})
	_, err := r.d.Alloc(1 << 60)
	r.refused(err, "cuMemAlloc", cuda.OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "are free")
	_, err = r.d.Load("not a text")
	r.refused(err, "cuModuleLoadDataEx", cuda.InvalidPTX, "CUDA_ERROR_INVALID_PTX", ": ptx: ")
	m := must[cuda.Module](r)(r.d.Load(add))
	_, err = r.d.Function(m, "subtract")
	r.refused(err, "cuModuleGetFunction", cuda.NotFound, "CUDA_ERROR_NOT_FOUND", "subtract")
	s, a := r.stream(), must[cuda.Address](r)(r.d.Alloc(4096))
	r.refused(r.d.CopyIn(s, a, make([]byte, 64)), "cuMemcpyHtoDAsync", cuda.InvalidValue, "not pinned")
	never := must[cuda.Event](r)(r.d.NewEvent())
	r.refused(r.d.Wait(s, never), "cuStreamWaitEvent", 400, "CUDA_ERROR_INVALID_HANDLE", "never recorded")
	r.refused(r.d.Fill(0, a, 0, 1), "cuMemsetD32Async", 400, "default stream")
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: a thread without a context, for nobody else
		_, err := r.d.Alloc(64)
		errs <- err
	}()
	r.refused(<-errs, "cuMemAlloc", cuda.InvalidContext)
	r.do(r.d.Close())
}

// Each stream's tokens come in its order, those of functions too, and wake and ctx end Next while nothing has ended.
func TestTokens(t *testing.T) {
	r := newRig(t, fakecuda.Options{})
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	if _, ok, err := r.d.Next(t.Context(), wake); ok || err != nil {
		t.Errorf("woken: %v, %v", ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok, err := r.d.Next(ctx, nil); ok || err != nil {
		t.Errorf("done: %v, %v", ok, err)
	}
	a, b, memory := r.stream(), r.stream(), must[cuda.Address](r)(r.d.Alloc(8192))
	const each = 50
	for i := range uint64(each) {
		for k, s := range []cuda.Stream{a, b} {
			r.do(r.d.Fill(s, memory+cuda.Address(4096*k), uint32(i), 1024))
			r.d.Watch(s, r.mark(s), 1000*uint64(k)+i)
		}
		ran := make(chan struct{})
		r.d.Run(func() { close(ran) }, nil, nil, 2000+i)
		<-ran
	}
	next := map[uint64]uint64{}
	for range 3 * each {
		token, ok, err := r.d.Next(t.Context(), nil)
		if r.do(err); !ok {
			t.Fatal("nothing ended")
		}
		if of := token / 1000; of < 2 {
			if token%1000 != next[of] {
				t.Errorf("stream %d: token %d, want %d", of, token%1000, next[of])
			}
			next[of]++
		}
	}
	r.do(r.d.Close())
}

// After an error that stays, Next returns it, and Close comes to its end, all goroutines with it.
func TestSticky(t *testing.T) {
	for call := range 12 {
		before := runtime.NumGoroutine()
		r := newRig(t, fakecuda.Options{Fail: fakecuda.Failure{Call: 30 + call, Code: cuda.LaunchFailed}})
		a, b := r.stream(), r.stream()
		memory := must[cuda.Address](r)(r.d.Alloc(8192))
		var failed error
		watched := 0
		for i := range 40 {
			s, at := a, memory
			if i%2 == 1 {
				s, at = b, memory+4096
			}
			e, err := r.d.NewEvent()
			if err == nil {
				err = r.d.Fill(s, at, 1, 64)
			}
			if err == nil {
				err = r.d.Record(s, e)
			}
			if err != nil {
				failed = err
				break
			}
			r.d.Watch(s, e, uint64(i))
			watched++
		}
		r.refused(failed, failed.(*cuda.Error).Call, cuda.LaunchFailed, "CUDA_ERROR_LAUNCH_FAILED")
		for range watched {
			if _, ok, err := r.d.Next(t.Context(), nil); !ok {
				r.refused(err, "cuEventSynchronize", cuda.LaunchFailed)
			}
		}
		if err := r.d.Close(); err == nil {
			t.Error("Close says nothing of the error")
		}
		// One that Close has waited for may still be about to end.
		for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
			}
		}
	}
}

// Two streams use the same bytes, and no event orders them: the words of the fake reach the caller.
func TestRace(t *testing.T) {
	r := newRig(t, fakecuda.Options{})
	a, b, memory := r.stream(), r.stream(), must[cuda.Address](r)(r.d.Alloc(4096))
	r.do(r.d.Fill(a, memory, 1, 64))
	r.do(r.d.Fill(b, memory, 2, 64))
	r.refused(r.d.Synchronize(), "cuCtxSynchronize", cuda.Unknown, "race")
	if err := r.d.Close(); err == nil {
		t.Error("Close says nothing of the race")
	}
}
