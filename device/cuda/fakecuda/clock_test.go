package fakecuda

import (
	"testing"
	"time"

	"tensile/device/cuda"
	"tensile/graph"
	"tensile/graph/cost"
	_ "tensile/internal/long" // the flag -long
)

// card copies a byte a nanosecond out, two in, and fills one in half a nanosecond; a kernel or fill takes 100 ns to
// launch.
var card = cost.Facts{Name: "card", Compute: 1e9, Bandwidth: 4e9, ComputeShare: 0.5, BandwidthShare: 0.5,
	Out: cost.Link{Rate: 1e9, Latency: 10}, In: cost.Link{Rate: 2e9}, Launch: 100, Memory: 10 * graph.MiB}

// since returns the time between two events that have ended.
func (r rig) since(a, b cuda.Event) time.Duration {
	r.Helper()
	return must[time.Duration](r)(r.d.Elapsed(a, b))
}

// TestTimes shows what overlaps and what does not, whatever the order in which operations are carried out.
func TestTimes(t *testing.T) {
	for seed := range uint64(5) {
		r := newRig(t, Options{Seed: seed, Facts: card})
		a, host := r.alloc(1<<20), r.pin(2)
		one, two, three, four := r.stream(), r.stream(), r.stream(), r.stream()
		r.do(r.d.Fill(one, a, 0, 1<<18))
		r.do(r.d.Synchronize())
		if got := r.d.Now(); got != 100+1<<19 {
			t.Errorf("seed %d: Now = %v, want that of the fill", seed, got)
		}
		start := r.mark(one)
		r.do(r.d.CopyOut(one, host[:1000], a))
		r.do(r.d.CopyOut(two, host[1000:2000], a))
		r.do(r.d.CopyIn(three, a+4096, host[4096:5096]))
		r.do(r.d.Fill(four, a+8192, 1, 1000))
		firstOut, secondOut, in, fill := r.mark(one), r.mark(two), r.mark(three), r.mark(four)
		r.do(r.d.Wait(four, in))
		r.do(r.d.Wait(four, secondOut))
		joined := r.mark(four)
		r.do(r.d.Fill(three, a+16384, 1, 100))
		secondFill := r.mark(three)
		r.do(r.d.Synchronize())
		for _, c := range []struct {
			name string
			end  cuda.Event
			want time.Duration
		}{{"first copy out", firstOut, 1010}, {"second copy out, behind the first", secondOut, 2020},
			{"copy in, beside both", in, 500}, {"fill, beside all", fill, 2100}, {"record after waits", joined, 2100},
			{"second fill, behind the first", secondFill, 2400}} {
			if got := r.since(start, c.end); got != c.want {
				t.Errorf("seed %d: %s ends after %v, want %v", seed, c.name, got, c.want)
			}
		}
	}
}

// TestLaterIsNotEarlier shows that what the host puts when it has heard of an end starts then at the earliest, behind
// what was ready before.
func TestLaterIsNotEarlier(t *testing.T) {
	r := newRig(t, Options{Facts: card, Dry: true, Latency: func(cuda.Launch) time.Duration { return 0 }})
	a, host := r.alloc(1<<20), r.pin(1)
	one, two := r.stream(), r.stream()
	start := r.mark(one)
	r.do(r.d.CopyIn(one, a, host[:1000]))
	r.d.Watch(one, r.mark(one), 1)
	r.do(r.d.CopyIn(one, a, host[:2000]))
	if _, _, err := r.d.Next(t.Context(), nil); err != nil || r.d.Now() != 500 {
		t.Fatalf("Next: %v at %v, want it at 500 ns", err, r.d.Now())
	}
	r.do(r.d.CopyIn(two, a+4096, host[3000:4000]))
	r.do(r.d.CopyOut(two, host[3000:4000], a+4096))
	end := r.mark(two)
	r.do(r.d.Synchronize())
	if got := r.since(start, end); got != 500+1000+500+1010 {
		t.Errorf("the copies end after %v, want 3.01 us", got)
	}
}

// TestFirstCome shows that an engine serves in the order in which operations become ready, those of one instant in that
// of their calls, also when the host puts some of them later.
func TestFirstCome(t *testing.T) {
	r := newRig(t, Options{Facts: card, Dry: true, Latency: func(cuda.Launch) time.Duration { return 0 }})
	a, host := r.alloc(1<<20), r.pin(1)
	streams := []cuda.Stream{r.stream(), r.stream(), r.stream(), r.stream(), r.stream()}
	part := func(i int) (cuda.Address, []byte) { return a + cuda.Address(4096*i), host[400*i:][:400] }
	var ends []cuda.Event
	copyIn := func(i int) {
		to, from := part(i)
		r.do(r.d.CopyIn(streams[i], to, from)) // 200 ns
		ends = append(ends, r.mark(streams[i]))
	}
	start := r.mark(streams[0])
	r.do(r.d.Fill(streams[3], a+65536, 0, 50)) // 200 ns
	copyIn(0)
	copyIn(3) // ready at 200 ns
	copyIn(1)
	copyIn(2)
	r.d.Watch(streams[2], ends[3], 2)
	r.d.Watch(streams[0], ends[0], 1)
	for want := uint64(1); want <= 2; want++ {
		token, _, err := r.d.Next(t.Context(), nil)
		if r.do(err); token != want || r.d.Now() != time.Duration(want*400-200) {
			t.Fatalf("Next = %d at %v, want %d", token, r.d.Now(), want)
		}
		if want == 1 {
			copyIn(4) // at 200 ns, after what was put to be ready then
		}
	}
	r.do(r.d.Synchronize())
	for i, want := range []time.Duration{200, 800, 400, 600, 1000} {
		if got := r.since(start, ends[i]); got != want {
			t.Errorf("copy %d ends after %v, want %v", i, got, want)
		}
	}
}

// TestBetween shows that times have the precision of CUDA's.
func TestBetween(t *testing.T) {
	slow := card
	slow.In.Rate = 1 // an hour for 3600 bytes
	r := newRig(t, Options{Facts: slow})
	a, host, s := r.alloc(1<<20), r.pin(2), r.stream()
	first := r.mark(s)
	r.do(r.d.CopyIn(s, a, host[:3600]))
	hour := r.mark(s)
	r.do(r.d.Fill(s, a, 0, 200)) // 500 ns
	last := r.mark(s)
	if _, err := r.d.Elapsed(first, last); err == nil {
		t.Error("Between has an answer before the end")
	} else {
		r.refused(err, cuda.NotReady, "has not ended")
	}
	r.do(r.d.Synchronize())
	if got := r.since(hour, last); got != 500 {
		t.Errorf("Between = %v, want 500ns", got)
	}
	if near, far := r.since(first, hour), r.since(first, last); far != near || far != time.Hour {
		t.Errorf("Between = %v and %v, want an hour without the half microsecond", near, far)
	}
	if back := r.since(last, hour); back != -500 {
		t.Errorf("Between = %v, want -500ns", back)
	}
}

// TestEnded shows that asking again and again comes to an end.
func TestEnded(t *testing.T) {
	r := newRig(t, Options{Facts: card})
	a, s := r.alloc(1<<20), r.stream()
	for range 5 {
		r.do(r.d.Fill(s, a, 0, 1000))
	}
	e := r.mark(s)
	for asked := 0; ; asked++ {
		ended, err := r.d.Ended(e)
		r.do(err)
		if ended {
			if asked == 0 || r.d.Now() != 5*2100 {
				t.Errorf("ended when asked for time %d, at %v", asked, r.d.Now())
			}
			return
		} else if asked > 20 {
			t.Fatal("it does not end")
		}
	}
}
