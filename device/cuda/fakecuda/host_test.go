package fakecuda

import (
	"context"
	"fmt"
	"testing"

	"tensile/device/cuda"
)

// TestRun shows that functions are executed in every order, each before its token, and in one order for a seed.
func TestRun(t *testing.T) {
	orders := make(map[string]bool)
	for seed := range uint64(40) {
		var first string
		for range 2 {
			r := newRig(t, Options{Seed: seed})
			var order string
			for i := range 3 {
				r.d.Run(func() { order += fmt.Sprint("f", i) }, nil, nil, uint64(i))
			}
			for range 3 {
				token, ok, err := r.d.Next(t.Context(), nil)
				if r.do(err); !ok {
					t.Fatal("Next has no token")
				}
				order += fmt.Sprint("t", token)
			}
			for i := range 3 {
				if ran, told := at(order, "f", i), at(order, "t", i); ran < 0 || told < ran {
					t.Fatalf("seed %d: %s", seed, order)
				}
			}
			if first == "" {
				first = order
			} else if first != order {
				t.Errorf("seed %d: %s and %s", seed, first, order)
			}
		}
		orders[first] = true
	}
	if len(orders) < 20 {
		t.Errorf("%d orders under 40 seeds", len(orders))
	}
}

func at(order, kind string, i int) int {
	for k := 0; k < len(order); k += 2 {
		if order[k:k+2] == fmt.Sprint(kind, i) {
			return k
		}
	}
	return -1
}

// TestTokens shows that those of a stream come in their order and others in any, each once.
func TestTokens(t *testing.T) {
	orders := make(map[string]bool)
	for seed := range uint64(30) {
		r := newRig(t, Options{Seed: seed, Facts: card})
		a := r.alloc(1 << 16)
		for s := range 2 {
			stream := r.stream()
			for i := range 2 {
				r.do(r.d.Fill(stream, a+cuda.Address(4096*s), 0, 10))
				r.d.Watch(stream, r.mark(stream), uint64(2*s+i))
			}
		}
		var order string
		for range 4 {
			token, _, err := r.d.Next(t.Context(), nil)
			r.do(err)
			order += fmt.Sprint("t", token)
		}
		if at(order, "t", 0) > at(order, "t", 1) || at(order, "t", 2) > at(order, "t", 3) {
			t.Errorf("seed %d: %s", seed, order)
		}
		orders[order] = true
	}
	if len(orders) < 4 {
		t.Errorf("%d orders under 30 seeds", len(orders))
	}
}

// TestWrongWatch shows that what is wrong with a Watch is told once, and that others keep their tokens.
func TestWrongWatch(t *testing.T) {
	b := newBench(t, 0)
	b.d.Watch(b.one, b.mark(b.one), 5)
	b.d.Watch(b.one, b.event(), 6)
	b.refused(next(b), invalidHandle, "never recorded")
	if token, ok, err := b.d.Next(t.Context(), nil); token != 5 || !ok || err != nil {
		t.Errorf("Next = %d, %v, %v, want token 5", token, ok, err)
	}
}

// TestRunRaces shows that the memory that a function uses is judged as that of copies is, whatever the order.
func TestRunRaces(t *testing.T) {
	in := func(b *bench) error { return b.d.CopyIn(b.one, b.a, b.host[:64]) }
	out := func(b *bench) error { return b.d.CopyOut(b.one, b.host[:64], b.a) }
	reads := func(b *bench) error {
		b.d.Run(func() {}, b.host[60:70], nil, 9)
		return nil
	}
	writes := func(b *bench) error {
		b.d.Run(func() {}, nil, b.host[60:70], 9)
		return nil
	}
	watch := func(b *bench) error {
		b.d.Watch(b.one, b.mark(b.one), 8)
		return nil
	}
	none := func(*bench) error { return nil }
	type step func(*bench) error
	for _, c := range []struct {
		name        string
		first, last step
		hear        []step // between them, for which the host has to wait
		isRace      bool
	}{
		{"copy out, then read", out, reads, []step{watch, next}, true},
		{"copy out, then write", out, writes, []step{watch, next}, true},
		{"copy in, then write", in, writes, []step{watch, next}, true},
		{"copy in, then read", in, reads, []step{none}, false},
		{"read, then copy out", reads, out, []step{next}, true},
		{"write, then copy out", writes, out, []step{next}, true},
		{"write, then copy in", writes, in, []step{next}, true},
		{"read, then read", reads, reads, []step{none}, false},
		{"read, then write", reads, writes, []step{next}, true},
		{"write, then write", writes, writes, []step{next}, true},
		{"read, then Unpin", reads, func(b *bench) error { return b.d.Unpin(b.host) }, []step{next}, true},
	} {
		for seed := range uint64(8) {
			for _, isOrdered := range []bool{true, false} {
				b := newBench(t, seed)
				steps := []step{c.first, c.last, watch, (*bench).rest, (*bench).synchronize}
				if isOrdered {
					steps = append(append([]step{c.first}, c.hear...), c.last, (*bench).synchronize, (*bench).rest)
				}
				var err error
				for _, do := range steps {
					if err = do(b); err != nil {
						break
					}
				}
				if isRace := err != nil; isRace != (c.isRace && !isOrdered) {
					t.Errorf("%s, seed %d, ordered: %v: got error %v", c.name, seed, isOrdered, err)
				} else if isRace {
					b.refused(err, cuda.Unknown, "race", "function 9 of the host")
				}
			}
		}
	}
	b := newBench(t, 0)
	b.d.Run(func() {}, make([]byte, 10), nil, 1)
	b.refused(next(b), cuda.InvalidValue, "10 bytes of host memory", "not pinned")
}

func (b *bench) synchronize() error { return b.d.Synchronize() }

// rest takes all events that the host has not taken yet.
func (b *bench) rest() error {
	for len(b.d.owed) > 0 {
		if err := next(b); err != nil {
			return err
		}
	}
	return nil
}

// TestWake shows what Next does without a token to return.
func TestWake(t *testing.T) {
	r := newRig(t, Options{})
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	ran := false
	r.d.Run(func() { ran = true }, nil, nil, 1)
	if _, ok, err := r.d.Next(t.Context(), wake); ok || err != nil || ran {
		t.Errorf("Next = %v, %v with a wake, ran: %v", ok, err, ran)
	}
	if token, ok, err := r.d.Next(t.Context(), wake); !ok || err != nil || token != 1 || !ran {
		t.Errorf("Next = %d, %v, %v, ran: %v", token, ok, err, ran)
	}
	go func() { wake <- struct{}{} }()
	if _, ok, err := r.d.Next(t.Context(), wake); ok || err != nil {
		t.Errorf("Next = %v, %v when woken", ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok, err := r.d.Next(ctx, wake); ok || err != nil {
		t.Errorf("Next = %v, %v when ctx is done", ok, err)
	}
	_, _, err := r.d.Next(t.Context(), nil)
	r.refused(err, cuda.Unknown, "nothing is watched", "no wake can come", "the streams are empty")
	a, s := r.alloc(100), r.stream()
	r.do(r.d.Fill(s, a, 0, 10))
	_, _, err = r.d.Next(t.Context(), nil)
	r.refused(err, cuda.Unknown, "1 operations", "fill of 40 bytes")
}

// A tensor of bytes is written by element, and copied by word.
func TestCopyOfBytes(t *testing.T) {
	r := newRig(t, Options{})
	a, s, host := r.alloc(32), r.stream(), r.pin(1)
	for size := 29; size <= 32; size++ {
		copy(host, "thirty bytes, and two more at the end"[32-size:])
		want := string(host[:size])
		r.do(r.d.CopyIn(s, a, host[:size]))
		r.do(r.d.Synchronize())
		clear(host)
		r.do(r.d.CopyOut(s, host[:32], a))
		r.do(r.d.Synchronize())
		if got := string(host[:size]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
