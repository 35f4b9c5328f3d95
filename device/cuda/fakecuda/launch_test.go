package fakecuda

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"

	"tensile/device/cuda"
)

// text returns the kernels of testdata/add.ptx.
func text(t *testing.T) string {
	t.Helper()
	all, err := os.ReadFile("testdata/add.ptx")
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// adder returns the kernel add, and its module.
func (r rig) adder() (cuda.Function, cuda.Module) {
	r.Helper()
	m := must[cuda.Module](r)(r.d.Load(text(r.T)))
	return must[cuda.Function](r)(r.d.Function(m, "add")), m
}

// add launches to[i] += from[i].
func (r rig) add(s cuda.Stream, f cuda.Function, to, from cuda.Address, words int) error {
	return r.d.Launch(s, cuda.Launch{Function: f, Op: "sum", Grid: [3]uint32{uint32(words+31) / 32, 1, 1},
		Block: [3]uint32{32, 1, 1}, Args: []uint64{uint64(to), uint64(from), uint64(words)}})
}

// TestLaunch adds words on the device.
func TestLaunch(t *testing.T) {
	r := newRig(t, Options{Facts: card})
	f, m := r.adder()
	a, b, s, host := r.alloc(4096), r.alloc(4096), r.stream(), r.pin(1)
	r.do(r.d.Fill(s, a, 40, 100))
	r.do(r.d.Fill(s, b, 2, 100))
	first := r.mark(s)
	args := []uint64{uint64(a), uint64(b), 90}
	r.do(r.d.Launch(s, cuda.Launch{Function: f, Grid: [3]uint32{3, 1, 1}, Block: [3]uint32{32, 1, 1}, Args: args}))
	clear(args) // the driver has a copy
	last := r.mark(s)
	r.do(r.d.CopyOut(s, host[:400], a))
	r.do(r.d.Synchronize())
	for i := range 100 {
		want := uint32(42)
		if i >= 90 {
			want = 40
		}
		if got := binary.LittleEndian.Uint32(host[4*i:]); got != want {
			t.Fatalf("word %d is %d, want %d", i, got, want)
		}
	}
	// 90 threads with 21 instructions, 6 with 14: each counts as two operations, at half of 1e9 a second; 100 to launch
	if got := r.since(first, last); got != 4*(90*21+6*14)+100 {
		t.Errorf("the kernel took %v, want %v", got, time.Duration(4*(90*21+6*14)+100))
	}
	r.do(r.d.Unload(m))
	r.refused(r.add(s, f, a, b, 1), invalidHandle, "no function")
}

// TestLatency shows that kernels take as long as they are said to.
func TestLatency(t *testing.T) {
	r := newRig(t, Options{Facts: card, Latency: func(l cuda.Launch) time.Duration { return time.Duration(l.Args[2]) }})
	f, _ := r.adder()
	a, b, s := r.alloc(4096), r.alloc(4096), r.stream()
	r.do(r.d.Fill(s, a, 0, 1024))
	r.do(r.d.Fill(s, b, 0, 1024))
	first := r.mark(s)
	r.do(r.add(s, f, a, b, 77))
	last := r.mark(s)
	r.do(r.d.Synchronize())
	if got := r.since(first, last); got != 77 {
		t.Errorf("the kernel took %v, want 77ns", got)
	}
}

// TestKernelRaces shows that the words that a kernel has used are what the clocks judge, and no others.
func TestKernelRaces(t *testing.T) {
	for seed := range uint64(6) {
		for _, c := range []struct {
			name  string
			other func(b *bench, f cuda.Function, more cuda.Address) error
			words []string
		}{
			{"reads what is filled", func(b *bench, _ cuda.Function, more cuda.Address) error {
				return b.d.Fill(b.two, more+36, 1, 1)
			}, []string{"launch of sum (kernel add)", "fill of 4 bytes", " bytes 36 to 40 ", "stream 1", "stream 2"}},
			{"writes what is copied", func(b *bench, _ cuda.Function, _ cuda.Address) error {
				return b.d.CopyOut(b.two, b.host[:8], b.a+32)
			}, []string{"launch of sum (kernel add)", "copy out of 8 bytes", " bytes 32 to 40 "}},
			{"two launches", func(b *bench, f cuda.Function, more cuda.Address) error {
				return b.add(b.two, f, b.a, more, 3)
			}, []string{"bytes 0 to 12 ", "stream 1", "stream 2"}},
			{"beside it", func(b *bench, f cuda.Function, more cuda.Address) error {
				b.do(b.d.Fill(b.two, b.a+40, 1, 1))
				return b.add(b.two, f, b.a+44, more, 10)
			}, nil},
		} {
			b := newBench(t, seed)
			f, _ := b.adder()
			more := b.alloc(4096)
			b.do(b.d.Fill(b.one, more, 3, 1024))
			b.do(b.d.Synchronize())
			b.do(b.add(b.one, f, b.a, more, 10))
			b.do(c.other(b, f, more))
			err := b.d.Synchronize()
			if c.words == nil {
				b.do(err)
				continue
			}
			b.refused(err, cuda.Unknown, append(c.words, "race")...)

			b = newBench(t, seed)
			f, m := b.adder()
			b.do(b.add(b.one, f, b.a, b.a+2048, 10))
			b.refused(b.d.Unload(m), cuda.Unknown, "its Unload", "launch of sum")
		}
	}
}

// TestLaunchFailures shows that a launch that goes wrong is an error of the next call that synchronizes, and of every
// call from then on.
func TestLaunchFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		add   func(b *bench, f cuda.Function) error
		code  cuda.Code
		words []string
	}{
		{"beyond the end", func(b *bench, f cuda.Function) error { return b.add(b.one, f, b.a, b.a, 1025) },
			cuda.IllegalAddress, []string{"launch of sum (kernel add)", "stream 1"}},
		{"host memory", func(b *bench, f cuda.Function) error { return b.add(b.one, f, b.a, 0xc000000000, 1) },
			cuda.IllegalAddress, []string{"launch of sum (kernel add)", "0xc000000000"}},
		{"never written", func(b *bench, f cuda.Function) error { return b.add(b.one, f, b.a, b.alloc(100), 1) },
			cuda.LaunchFailed, []string{"launch of sum (kernel add)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1)
			f, _ := b.adder()
			b.do(c.add(b, f))
			b.do(b.d.Fill(b.one, b.a, 0, 1))
			e := b.mark(b.one)
			b.d.Watch(b.one, e, 1)
			b.refused(next(b), c.code, c.words...)
			_, err := b.d.Alloc(1)
			b.refused(err, c.code, c.words...)
			b.refused(b.d.Fill(b.one, b.a, 0, 1), c.code, c.words...)
			b.refused(b.d.Synchronize(), c.code, c.words...)
			b.refused(b.d.Close(), c.code, c.words...)
		})
	}
}

// TestLaunchMisuse shows which launches are refused at once.
func TestLaunchMisuse(t *testing.T) {
	b := newBench(t, 0)
	f, m := b.adder()
	one := [3]uint32{1, 1, 1}
	args := make([]uint64, 3)
	for _, c := range []struct {
		l     cuda.Launch
		words string
	}{
		{cuda.Launch{Function: f, Grid: one, Block: one, Args: args[:2]},
			"op: kernel add: 2 arguments for 3 parameters"},
		{cuda.Launch{Function: f, Grid: [3]uint32{0, 1, 1}, Block: one, Args: args}, "a grid of [0 1 1] blocks"},
		{cuda.Launch{Function: f, Grid: [3]uint32{1, 1 << 16, 1}, Block: one, Args: args}, "a grid of"},
		{cuda.Launch{Function: f, Grid: one, Block: [3]uint32{64, 32, 1}, Args: args}, "blocks of [64 32 1] threads"},
		{cuda.Launch{Function: must[cuda.Function](b.rig)(b.d.Function(m, "half")), Grid: one, Block: one,
			Args: args[:1]}, "parameter 0 has 4 bytes, want 8"},
	} {
		c.l.Op = "op"
		b.refused(b.d.Launch(b.one, c.l), cuda.InvalidValue, c.words)
	}
	_, err := b.d.Function(m, "sub")
	b.refused(err, cuda.NotFound, `no kernel "sub"`)
	_, err = b.d.Load(strings.Replace(text(t), "shl.b64", "shoal.b64", 1))
	b.refused(err, cuda.InvalidPTX, "line 29", "shoal")
}

// TestRefuse shows that a text can be refused by its target.
func TestRefuse(t *testing.T) {
	r := newRig(t, Options{Refuse: map[string]cuda.Code{"sm_60": cuda.UnsupportedPTX}})
	_, err := r.d.Load(text(t))
	r.refused(err, cuda.UnsupportedPTX, ".target sm_60")
	own := strings.NewReplacer(".version 6.0", ".version 7.0", ".target sm_60", ".target sm_80").Replace(text(t))
	if _, err := r.d.Load(own); err != nil {
		t.Error(err)
	}
}

// TestDry shows that times are what they would be, at no cost in memory, and that copies want their edges nevertheless.
func TestDry(t *testing.T) {
	huge := card
	huge.Memory = 1 << 50
	for _, isOrdered := range []bool{true, false} {
		r := newRig(t, Options{Facts: huge, Dry: true, Latency: func(cuda.Launch) time.Duration { return 1000 }})
		f, _ := r.adder()
		a, one, two, host := r.alloc(1<<44), r.stream(), r.stream(), r.pin(1)
		copy(host, "host")
		first := r.mark(one)
		r.do(r.d.CopyIn(one, a+1<<43, host[:2000]))
		r.do(r.add(one, f, a, a+1<<43, 1<<20))
		if filled := r.mark(one); isOrdered {
			r.do(r.d.Wait(two, filled))
		}
		r.do(r.d.CopyOut(two, host[2000:3000], a+1<<43))
		last := r.mark(two)
		if err := r.d.Synchronize(); !isOrdered {
			r.refused(err, cuda.Unknown, "race", "copy in", "copy out")
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if got := r.since(first, last); got != 1000+1000+1010 || string(host[:4]) != "host" || host[2000] != 0 {
			t.Errorf("copies and kernel took %v, want 3.01us; %q and %d are there", got, host[:4], host[2000])
		}
	}
}
