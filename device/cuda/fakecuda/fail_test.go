package fakecuda

import (
	"testing"

	"tensile/device/cuda"
	"tensile/graph"
)

// TestMisuse shows that what CUDA refuses, leaves undefined or says nothing about is an error that names it.
func TestMisuse(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(*bench) error
		code  cuda.Code
		words string
	}{
		{"unpinned copy in", func(b *bench) error { return b.d.CopyIn(b.one, b.a, make([]byte, 8)) },
			cuda.InvalidValue, "8 bytes of host memory"},
		{"unpinned copy out", func(b *bench) error { return b.d.CopyOut(b.one, make([]byte, 8), b.a) },
			cuda.InvalidValue, "are not pinned"},
		{"copy from memory that was unpinned", func(b *bench) error {
			b.do(b.d.Unpin(b.host))
			return b.d.CopyIn(b.one, b.a, b.host)
		}, cuda.InvalidValue, "are not pinned"},
		{"copy beyond the pinned memory", func(b *bench) error {
			two := pages(2)
			b.do(b.d.Pin(two[:4096]))
			return b.d.CopyIn(b.one, b.a, two[4090:4100])
		}, cuda.InvalidValue, "are not pinned"},
		{"copy beyond the allocation", func(b *bench) error { return b.d.CopyIn(b.one, b.a+4090, b.host[:8]) },
			cuda.InvalidValue, "reach 2 bytes beyond the end"},
		{"copy to host memory", func(b *bench) error { return b.d.CopyIn(b.one, 0xc000000000, b.host[:8]) },
			cuda.InvalidValue, "0xc000000000 is in no allocation"},
		{"copy of nothing", func(b *bench) error { return b.d.CopyIn(b.one, b.a, b.host[:0]) },
			cuda.InvalidValue, "0 bytes"},
		{"fill beyond the allocation", func(b *bench) error { return b.d.Fill(b.one, b.a+4, 0, 1024) },
			cuda.InvalidValue, "reach 4 bytes beyond the end"},
		{"fill of no word", func(b *bench) error { return b.d.Fill(b.one, b.a+2, 0, 1) },
			cuda.InvalidValue, "address of a word"},
		{"copy out of bytes that were never written", func(b *bench) error {
			a := b.alloc(1000)
			b.do(b.d.Fill(b.one, a, 0, 100))
			b.do(b.d.CopyOut(b.one, b.host[:600], a))
			return b.d.Synchronize()
		}, cuda.Unknown, "its byte 400 was never written"},
		{"copy out of a first byte that was never written", func(b *bench) error {
			b.do(b.d.CopyOut(b.one, b.host[:1], b.alloc(1)))
			return b.d.Synchronize()
		}, cuda.Unknown, "its byte 0 was never written"},
		{"copy out of a word that was never written after one that was in part", func(b *bench) error {
			a := b.alloc(32)
			b.do(b.d.CopyIn(b.one, a, b.host[:27]))
			b.do(b.d.CopyOut(b.one, b.host[:32], a))
			return b.d.Synchronize()
		}, cuda.Unknown, "its byte 27 was never written"},
		{"stream 0", func(b *bench) error { return b.d.CopyIn(0, b.a, b.host) }, invalidHandle, "the default stream"},
		{"unknown stream", func(b *bench) error { return b.d.Fill(99, b.a, 0, 1) }, invalidHandle, "no stream 99"},
		{"stream after its end", func(b *bench) error {
			b.do(b.d.DestroyStream(b.one))
			return b.d.Fill(b.one, b.a, 0, 1)
		}, invalidHandle, "no stream 1"},
		{"stream ended twice", func(b *bench) error {
			b.do(b.d.DestroyStream(b.one))
			return b.d.DestroyStream(b.one)
		}, invalidHandle, "no stream 1"},
		{"unknown event", func(b *bench) error { return b.d.Record(b.one, 99) }, invalidHandle, "no event 99"},
		{"event ended twice", func(b *bench) error {
			e := b.event()
			b.do(b.d.DestroyEvent(e))
			return b.d.DestroyEvent(e)
		}, invalidHandle, "no event 3"},
		{"wait for an event never recorded", func(b *bench) error { return b.d.Wait(b.one, b.event()) },
			invalidHandle, "event 3 was never recorded"},
		{"ask for an event never recorded", func(b *bench) error {
			_, err := b.d.Ended(b.event())
			return err
		}, invalidHandle, "event 3 was never recorded"},
		{"watch an event never recorded", func(b *bench) error {
			b.d.Watch(b.one, b.event(), 1)
			return next(b)
		}, invalidHandle, "event 3 was never recorded"},
		{"watch an event of another stream", func(b *bench) error {
			b.d.Watch(b.two, b.mark(b.one), 1)
			return next(b)
		}, cuda.InvalidValue, "recorded on stream 1, not on 2"},
		{"watch on a stream after its end", func(b *bench) error {
			e := b.mark(b.one)
			b.do(b.d.DestroyStream(b.one))
			b.d.Watch(b.one, e, 1)
			return next(b)
		}, invalidHandle, "no stream 1"},
		{"record an event that is watched", func(b *bench) error {
			e := b.mark(b.one)
			b.d.Watch(b.one, e, 1)
			return b.d.Record(b.one, e)
		}, cuda.InvalidValue, "event 3 is watched"},
		{"end an event that is watched", func(b *bench) error {
			e := b.mark(b.one)
			b.d.Watch(b.one, e, 1)
			return b.d.DestroyEvent(e)
		}, cuda.InvalidValue, "event 3 is watched"},
		{"release twice", func(b *bench) error {
			b.do(b.d.Release(b.a))
			return b.d.Release(b.a)
		}, cuda.InvalidValue, "no allocation begins"},
		{"release a part", func(b *bench) error { return b.d.Release(b.a + 256) },
			cuda.InvalidValue, "no allocation begins"},
		{"use after release", func(b *bench) error {
			b.do(b.d.Release(b.a))
			b.alloc(4096)
			return b.d.Fill(b.one, b.a, 0, 1)
		}, cuda.InvalidValue, "in no allocation"},
		{"unpin a part", func(b *bench) error { return b.d.Unpin(b.host[:100]) }, notRegistered, "100 bytes"},
		{"unpin twice", func(b *bench) error {
			b.do(b.d.Unpin(b.host))
			return b.d.Unpin(b.host)
		}, notRegistered, "pinned as a whole"},
		{"pin twice", func(b *bench) error { return b.d.Pin(b.host) }, alreadyRegistered, "are pinned in part"},
		{"pin a part of a page", func(b *bench) error { return b.d.Pin(pages(1)[:100]) },
			cuda.InvalidValue, "not whole pages"},
		{"too large an allocation", func(b *bench) error {
			_, err := b.d.Alloc(48e9)
			return err
		}, cuda.OutOfMemory, "48000000000 bytes are wanted, 47999995904 of 48000000000 are free"},
		{"allocation of nothing", func(b *bench) error {
			_, err := b.d.Alloc(0)
			return err
		}, cuda.InvalidValue, "0 bytes"},
		{"unknown module", func(b *bench) error { return b.d.Unload(9) }, invalidHandle, "no module 9"},
		{"open twice", func(b *bench) error { return b.d.Open(0) }, cuda.InvalidValue, "opened already"},
		{"use after Close", func(b *bench) error {
			b.d.Close() //nolint:errcheck // it lists what is left
			return b.d.Synchronize()
		}, cuda.InvalidContext, "closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 0)
			b.refused(c.do(b), c.code, c.words)
		})
	}
}

func next(b *bench) error {
	_, _, err := b.d.Next(b.Context(), nil)
	return err
}

// TestOpening shows the order of the first calls.
func TestOpening(t *testing.T) {
	r := rig{t, New(Options{})}
	_, err := r.d.Alloc(1)
	r.refused(err, cuda.NotInitialized, "Open comes before")
	r.refused(r.d.Enter(), cuda.InvalidContext, "Open comes before Enter")
	r.refused(r.d.Close(), cuda.InvalidContext, "not open")
	r.refused(r.d.Open(1), cuda.InvalidDevice, "no device 1")
	r.do(r.d.Open(0))
	_, err = r.d.NewStream()
	r.refused(err, cuda.InvalidContext, "Enter comes before")
	r.do(r.d.Enter())
	r.stream()
}

// TestLeaks shows that Close lists what was not given back.
func TestLeaks(t *testing.T) {
	b := newBench(t, 0)
	b.event()
	b.refused(b.d.Close(), cuda.InvalidValue, "left at Close: 4", " at 0x7000",
		"of pinned memory, stream 1, stream 2, event 3")

	b = newBench(t, 0)
	e := b.event()
	b.do(b.d.Release(b.a))
	b.do(b.d.Unpin(b.host))
	b.do(b.d.DestroyStream(b.one))
	b.do(b.d.DestroyStream(b.two))
	b.do(b.d.DestroyEvent(e))
	b.do(b.d.Close())
}

// TestMemory shows where allocations lie and what is free.
func TestMemory(t *testing.T) {
	r := newRig(t, Options{Facts: card})
	all, whole, err := r.d.Free()
	if r.do(err); all != whole || whole != 10*graph.MiB {
		t.Errorf("Free = %d, %d", all, whole)
	}
	a, b := r.alloc(1000), r.alloc(10)
	if a%256 != 0 || b%256 != 0 || b < a+1000+guard || a>>48 == 0 || a>>47 == 1<<17-1 {
		t.Errorf("allocations at %#x and %#x", a, b)
	}
	if free, _, err := r.d.Free(); err != nil || free != all-1010 {
		t.Errorf("Free = %d, %v, want %d", free, err, all-1010)
	}
	r.do(r.d.Release(a))
	if c := r.alloc(1000); c == a {
		t.Error("an address is used twice")
	}
	_, err = r.d.Alloc(10 * graph.MiB) // c and b are there
	r.refused(err, cuda.OutOfMemory, "10485760 bytes are wanted, 10484750 of 10485760 are free")
	r.alloc(10*graph.MiB - 1010)
	_, err = r.d.Alloc(1)
	r.refused(err, cuda.OutOfMemory, "1 bytes are wanted, 0 of 10485760 are free")
}

// training is a short program that uses every kind of call. At its first error it gives back what it has; left is what
// Close says.
func training(d *Driver, t *testing.T) (err, left error) {
	err = train(d, t)
	if left = d.Close(); err == nil {
		err = left
	}
	return err, left
}

func train(d *Driver, t *testing.T) (err error) {
	try := func(e error) {
		if err == nil {
			err = e
		}
	}
	if _, err := d.Devices(); err != nil {
		return err
	}
	if err := d.Open(0); err != nil {
		return err
	}
	if err := d.Enter(); err != nil {
		return err
	}
	if _, _, err := d.Free(); err != nil {
		return err
	}
	a, err := d.Alloc(4096)
	if err != nil {
		return err
	}
	defer func() { try(d.Release(a)) }()
	page := d.page
	at, err := d.ReserveAddresses(page)
	if err != nil {
		return err
	}
	defer func() { try(d.ReleaseAddresses(at, page)) }()
	m, err := d.CreateMemory(page)
	if err != nil {
		return err
	}
	if err := d.Map(at, page, m); err != nil {
		try(err)
		try(d.ReleaseMemory(m))
		return err
	}
	defer func() { try(d.Unmap(at, page)) }()
	if err := d.ReleaseMemory(m); err != nil {
		return err
	}
	if err := d.Access(at, page); err != nil {
		return err
	}
	host := pages(1)
	if err := d.Pin(host); err != nil {
		return err
	}
	defer func() { try(d.Unpin(host)) }()
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	defer func() { try(d.DestroyStream(s)) }()
	e, err := d.NewEvent()
	if err != nil {
		return err
	}
	defer func() { try(d.DestroyEvent(e)) }()
	defer func() { try(d.Synchronize()) }()
	for range 2 {
		for _, step := range []func() error{
			func() error { return d.Fill(s, a, 1, 10) },
			func() error { return d.CopyIn(s, a, host[:40]) },
			func() error { return d.Record(s, e) },
			func() error { return d.Wait(s, e) },
			func() error { return d.CopyOut(s, host[:40], a) },
			func() error {
				d.Watch(s, e, 1)
				_, _, err := d.Next(t.Context(), nil)
				return err
			},
			func() error {
				_, err := d.Ended(e)
				return err
			},
			func() error {
				_, err := d.Elapsed(e, e)
				return err
			},
		} {
			if err := step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestFailures shows that each call can be made to fail, that the error says which and why, and that a failure that is
// not sticky leaves everything else as it was.
func TestFailures(t *testing.T) {
	d := New(Options{})
	if err, _ := training(d, t); err != nil {
		t.Fatal(err)
	}
	calls := d.Calls()
	if calls["cuMemcpyHtoDAsync"] != 2 || calls["cuEventSynchronize"] != 2 || calls["cuCtxSynchronize"] != 1 {
		t.Errorf("Calls = %v", calls)
	}
	total := 0
	for _, n := range calls {
		total += n
	}
	failed := make(map[string]bool)
	for k := 1; k <= total; k++ {
		for _, code := range []cuda.Code{cuda.Unknown, cuda.LaunchFailed} {
			d := New(Options{Fail: Failure{k, code}})
			err, left := training(d, t)
			e, ok := err.(*cuda.Error)
			if !ok || e.Code != code || calls[e.Call] == 0 {
				t.Errorf("call %d: got error %v, want code %d", k, err, code)
				continue
			}
			failed[e.Call] = true
			if mayClose := k > 2 && k < total && code == cuda.Unknown; mayClose && left != nil {
				t.Errorf("call %d: Close says %v", k, left)
			}
			after, ok := d.Synchronize().(*cuda.Error)
			if isDead := ok && after.Code == code; isDead != (code == cuda.LaunchFailed) {
				t.Errorf("call %d, code %d: %v afterwards", k, code, after)
			}
		}
	}
	if len(failed) != len(calls) {
		t.Errorf("%d of %d kinds of calls failed", len(failed), len(calls))
	}
}
