package fakecuda

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tensile/device/cuda"
	"tensile/device/ptx"
)

// bench is a rig with two streams and memory that has been written.
type bench struct {
	rig
	one, two cuda.Stream
	a        cuda.Address // of 4096 bytes
	host     []byte       // a page
}

func newBench(t *testing.T, seed uint64) *bench { return newBenchOf(t, Options{Seed: seed}) }

func newBenchOf(t *testing.T, o Options) *bench {
	b := &bench{rig: newRig(t, o)}
	b.one, b.two, b.a, b.host = b.stream(), b.stream(), b.alloc(4096), b.pin(1)[:4096]
	b.do(b.d.Fill(b.one, b.a, 7, 1024))
	b.do(b.d.Synchronize())
	return b
}

// orders are the ways in which what is put on stream two afterwards comes after what is on stream one.
var orders = map[string]func(*bench){
	"event": func(b *bench) { b.do(b.d.Wait(b.two, b.mark(b.one))) },
	"third stream": func(b *bench) {
		third := b.stream()
		b.do(b.d.Wait(third, b.mark(b.one)))
		b.do(b.d.Wait(b.two, b.mark(third)))
	},
	"Next": func(b *bench) {
		b.d.Watch(b.one, b.mark(b.one), 1)
		_, _, err := b.d.Next(b.Context(), nil)
		b.do(err)
	},
	"Ended": func(b *bench) {
		e := b.mark(b.one)
		for ended := false; !ended; {
			var err error
			ended, err = b.d.Ended(e)
			b.do(err)
		}
	},
	"Synchronize": func(b *bench) { b.do(b.d.Synchronize()) },
	"Between": func(b *bench) {
		first, last := b.mark(b.one), b.mark(b.one)
		for {
			if _, err := b.d.Elapsed(first, last); err == nil {
				return
			}
			_, err := b.d.Ended(last)
			b.do(err)
		}
	},
}

// uses are pairs of uses of the same bytes, on stream one and on stream two or by the host, and what a missing order
// between them is called.
var uses = []struct {
	name     string
	one, two func(*bench) error
	words    []string
	byHost   bool // the second is the host's
	harmless bool // no order is needed
}{
	{name: "write then read",
		one:   func(b *bench) error { return b.d.CopyIn(b.one, b.a+16, b.host[:100]) },
		two:   func(b *bench) error { return b.d.CopyOut(b.two, b.host[1000:1100], b.a) },
		words: []string{"copy in of 100 bytes", "copy out of 100 bytes", "stream 1", "stream 2", "bytes 16 to 100 "}},
	{name: "read then write",
		one:   func(b *bench) error { return b.d.CopyOut(b.one, b.host[:64], b.a+4000) },
		two:   func(b *bench) error { return b.d.Fill(b.two, b.a+4060, 1, 9) },
		words: []string{"fill of 36 bytes", "copy out of 64 bytes", "bytes 4060 to 4064 "}},
	{name: "write then write",
		one:   func(b *bench) error { return b.d.Fill(b.one, b.a, 1, 2) },
		two:   func(b *bench) error { return b.d.Fill(b.two, b.a, 2, 1) },
		words: []string{"fill of 8 bytes", "fill of 4 bytes", "bytes 0 to 4 "}},
	{name: "host memory, write then read",
		one:   func(b *bench) error { return b.d.CopyOut(b.one, b.host[100:200], b.a) },
		two:   func(b *bench) error { return b.d.CopyIn(b.two, b.a+1000, b.host[150:250]) },
		words: []string{"copy out of 100 bytes", "copy in of 100 bytes", "bytes 150 to 200 "}},
	{name: "host memory, read then write",
		one:   func(b *bench) error { return b.d.CopyIn(b.one, b.a, b.host[:10]) },
		two:   func(b *bench) error { return b.d.CopyOut(b.two, b.host[:10], b.a+1000) },
		words: []string{"copy in of 10 bytes", "copy out of 10 bytes", "bytes 0 to 10 "}},
	{name: "read then Release", byHost: true,
		one:   func(b *bench) error { return b.d.CopyOut(b.one, b.host, b.a) },
		two:   func(b *bench) error { return b.d.Release(b.a) },
		words: []string{"its release", "copy out"}},
	{name: "read then Unpin", byHost: true,
		one:   func(b *bench) error { return b.d.CopyIn(b.one, b.a, b.host) },
		two:   func(b *bench) error { return b.d.Unpin(b.host) },
		words: []string{"its Unpin", "copy in"}},
	{name: "read and read", harmless: true,
		one: func(b *bench) error { return b.d.CopyOut(b.one, b.host[:10], b.a) },
		two: func(b *bench) error { return b.d.CopyOut(b.two, b.host[10:20], b.a) }},
	{name: "neighbours", harmless: true,
		one: func(b *bench) error { return b.d.Fill(b.one, b.a, 1, 4) },
		two: func(b *bench) error { return b.d.Fill(b.two, b.a+16, 1, 4) }},
}

// TestRaces shows that each pair of uses is an error whatever the seed, and that none is with any order between them.
func TestRaces(t *testing.T) {
	for _, use := range uses {
		t.Run(use.name, func(t *testing.T) {
			for seed := range uint64(8) {
				b := newBench(t, seed)
				b.do(use.one(b))
				err := use.two(b)
				if err == nil {
					err = b.d.Synchronize()
				}
				if use.harmless {
					b.do(err)
					continue
				}
				b.refused(err, cuda.Unknown, append(use.words, "race")...)
				if reads := strings.Count(err.Error(), " reads "); reads != strings.Count(use.name, "read") {
					t.Errorf("%s: got %q", use.name, err)
				}
				b.refused(b.d.Synchronize(), cuda.Unknown, "race") // it stays
				b.refused(b.d.Close(), cuda.Unknown, "race")
				for name, order := range orders {
					if use.byHost && (name == "event" || name == "third stream") {
						continue
					}
					t.Run(name, func(t *testing.T) {
						b := newBench(t, seed)
						b.do(use.one(b))
						order(b)
						b.do(use.two(b))
						b.do(b.d.Synchronize())
					})
				}
			}
		})
	}
}

// TestShadow compares shadow with one that knows each byte.
func TestShadow(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		type use struct {
			n      *node
			writes bool
		}
		var fast shadow
		slow := make([][]use, 24) // per byte
		ticks := make([]uint32, 3)
		clocks := make([]clock, 3)
		for range 30 {
			l := rng.IntN(3)
			if rng.IntN(3) == 0 {
				clocks[l] = clocks[l].merge(clocks[rng.IntN(3)])
			}
			ticks[l]++
			clocks[l] = clocks[l].stamp(lane{l, ticks[l]})
			n := &node{lane: lane{l, ticks[l]}, clock: append(clock{}, clocks[l]...)}
			begin := rng.IntN(24)
			end := begin + 1 + rng.IntN(24-begin)
			writes := rng.IntN(2) == 0
			want := false
			for i := begin; i < end; i++ {
				for _, u := range slow[i] {
					want = want || (u.writes || writes) && !n.clock.knows(u.n)
				}
				slow[i] = append(slow[i], use{n, writes})
			}
			c, got := fast.use(ptx.Range{Begin: uint64(begin), End: uint64(end)}, n, writes)
			if got != want {
				t.Fatalf("seed %d: bytes %d to %d: conflict %v (%v), want %v", seed, begin, end, got, c, want)
			}
			if got {
				break // what follows is up to the shadow
			}
			for i := 1; i < len(fast.parts); i++ {
				if p := fast.parts; p[i-1].End > p[i].Begin || p[i-1].Begin >= p[i-1].End || p[i].Begin >= p[i].End {
					t.Fatalf("seed %d: parts %v", seed, p)
				}
			}
		}
	}
}

// op is one of a random program: what it does, and which of those before it must have ended.
type op struct {
	stream, kind int // kinds: copy in, copy out, fill, and a kernel that adds what is at host of the device
	at, host     int // bytes of device and host memory
	size         int
	after        []int // on other streams, none of which implies another
	heard        int   // an op that the host waits for before this is put, -1: none
}

// use is a range of device memory, or of host memory, which is apart.
type use struct {
	isHost, writes bool
	begin, end     int
}

func (o op) uses() []use {
	device := use{begin: o.at, end: o.at + o.size, writes: o.kind != 1}
	other := use{isHost: o.kind < 2, begin: o.host, end: o.host + o.size, writes: o.kind == 1}
	if o.kind == 2 {
		return []use{device}
	}
	return []use{device, other}
}

func conflicts(a, b op) bool {
	for _, x := range a.uses() {
		for _, y := range b.uses() {
			if x.isHost == y.isHost && max(x.begin, y.begin) < min(x.end, y.end) && (x.writes || y.writes) {
				return true
			}
		}
	}
	return false
}

// randomProgram returns ops with the edges that they need, each of which is needed.
func randomProgram(seed uint64) []op {
	rng := rand.New(rand.NewPCG(seed, 3))
	count := 2 + rng.IntN(3)
	var ops []op
	var earlier []map[int]bool // of each, all that come before it
	latest := make([]int, count)
	for i := range latest {
		latest[i] = -1
	}
	known := make(map[int]bool)
	for i := range 10 + rng.IntN(15) {
		o := op{stream: rng.IntN(count), kind: rng.IntN(4), at: 4 * rng.IntN(48), host: 4 * rng.IntN(48),
			size: 4 * (1 + rng.IntN(16)), heard: -1}
		if o.kind == 3 { // whose threads must not use one another's words
			o.at, o.host, o.size = o.at%96, 128+o.host%96, min(o.size, 32)
		}
		if i > 0 && rng.IntN(6) == 0 {
			o.heard = rng.IntN(i)
			known[o.heard] = true
			for j := range earlier[o.heard] {
				known[j] = true
			}
		}
		before := make(map[int]bool)
		add := func(j int) {
			before[j] = true
			for k := range earlier[j] {
				before[k] = true
			}
		}
		for j := range known {
			before[j] = true
		}
		if last := latest[o.stream]; last >= 0 {
			add(last)
		}
		for j := i - 1; j >= 0; j-- {
			if !before[j] && conflicts(ops[j], o) {
				add(j)
				o.after = append(o.after, j)
			}
		}
		latest[o.stream] = i
		ops, earlier = append(ops, o), append(earlier, before)
	}
	return ops
}

// play has a driver carry out a program without one of its edges, -1: none, and returns what is in memory then.
func play(t *testing.T, ops []op, without int, seed uint64) (string, error) {
	r := newRig(t, Options{Seed: seed})
	host, device := r.pin(2), r.alloc(256)
	add, _ := r.adder()
	for i := range host {
		host[i] = byte(i * 13)
	}
	var all []cuda.Stream
	for range 4 {
		all = append(all, r.stream())
	}
	r.do(r.d.Fill(all[0], device, 5, 64))
	r.do(r.d.Synchronize())
	records := make([]cuda.Event, len(ops))
	edges := 0
	for i, o := range ops {
		if o.heard >= 0 {
			r.d.Watch(all[ops[o.heard].stream], records[o.heard], uint64(i))
			if _, _, err := r.d.Next(t.Context(), nil); err != nil {
				return "", err
			}
		}
		for _, j := range o.after {
			if edges != without {
				r.do(r.d.Wait(all[o.stream], records[j]))
			}
			edges++
		}
		at, here := device+cuda.Address(o.at), host[o.host:][:o.size]
		switch o.kind {
		case 0:
			r.do(r.d.CopyIn(all[o.stream], at, here))
		case 1:
			r.do(r.d.CopyOut(all[o.stream], here, at))
		case 2:
			r.do(r.d.Fill(all[o.stream], at, uint32(i)*0x01020304, o.size/4))
		case 3:
			r.do(r.add(all[o.stream], add, at, device+cuda.Address(o.host), o.size/4))
		}
		records[i] = r.mark(all[o.stream])
	}
	if err := r.d.Synchronize(); err != nil {
		return "", err
	}
	r.do(r.d.CopyOut(all[0], host[4096:][:256], device))
	r.do(r.d.Synchronize())
	return fmt.Sprint(host), nil
}

// TestRandomPrograms shows that programs with all edges never are an error and have one result, and that they are an
// error, whatever the order, without any one of their edges.
func TestRandomPrograms(t *testing.T) {
	dropped := 0
	for program := range uint64(40) {
		ops := randomProgram(program)
		var want string
		for seed := range uint64(6) {
			got, err := play(t, ops, -1, seed)
			if err != nil {
				t.Fatalf("program %d, seed %d: %v", program, seed, err)
			}
			if want == "" {
				want = got
			} else if got != want {
				t.Fatalf("program %d, seed %d: another result than under seed 0", program, seed)
			}
		}
		edges := 0
		for _, o := range ops {
			edges += len(o.after)
		}
		for without := range edges {
			for seed := range uint64(2) {
				if _, err := play(t, ops, without, seed); err == nil {
					t.Errorf("program %d, seed %d: no error without edge %d of %d", program, seed, without, edges)
				}
				dropped++
			}
		}
	}
	if dropped < 500 {
		t.Errorf("only %d runs without an edge", dropped)
	}
}
