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
				r.d.Run(func() { order += fmt.Sprint("f", i) }, uint64(i))
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

// TestWake shows what Next does without a token to return.
func TestWake(t *testing.T) {
	r := newRig(t, Options{})
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	ran := false
	r.d.Run(func() { ran = true }, 1)
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
