package trace

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tensile/plan/pool"
)

// slowPeak is the most bytes that a trace holds at once, from the definition: after each malloc, of all blocks that are
// malloced by then and freed later.
func slowPeak(t Trace) int64 {
	freed := make([]int, len(t))
	for m, e := range t {
		for freed[m] = m + 1; e.Kind == Malloc && freed[m] < len(t); freed[m]++ {
			if t[freed[m]].Kind == Free && t[freed[m]].Block == e.Block {
				break
			}
		}
	}
	var most int64
	for i := range t {
		var now int64
		for m, e := range t[:i+1] {
			if e.Kind == Malloc && freed[m] > i {
				now += e.Bytes
			}
		}
		most = max(most, now)
	}
	return most
}

// checkAnswer checks that nothing that is said of a record is below what it held at once.
func checkAnswer(tb testing.TB, what string, r *Record) *Answer {
	tb.Helper()
	a, err := AnswerOf(r, false)
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
	layout, err := pool.Pack(a.Lifetimes.Buffers, pool.Options{Method: "greedy"})
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
	peak := slowPeak(r.Trace)
	if a.Peak != peak || max(a.WarmUp, a.Steady, a.Tail) > peak || a.Lifetimes.Load != peak ||
		pool.Load(a.Lifetimes.Buffers) != peak || layout.LowerBound < peak || layout.Height < peak {
		tb.Fatalf("%s: %v\n%+v: peak %d, load %d, bound %d, height %d, want %d at least", what, r.Trace, a.Found,
			a.Peak, a.Lifetimes.Load, layout.LowerBound, layout.Height, peak)
	}
	if max(a.WarmUp, a.Steady, a.Tail) != peak {
		tb.Fatalf("%s: warm-up %d, steady %d, tail %d, but a peak of %d", what, a.WarmUp, a.Steady, a.Tail, peak)
	}
	if a.Whole != (a.Found.Repeats == 1 || a.Peak > a.Steady) {
		tb.Fatalf("%s: %+v of steady %d, peak %d: the layout is of the whole record: %v", what, a.Found, a.Steady,
			a.Peak, a.Whole)
	}
	inside, err := AnswerOf(r, true)
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
	if a.Found.Repeats > 1 && inside.Lifetimes.Load != a.Steady {
		tb.Fatalf("%s: an iteration of load %d, steady %d", what, inside.Lifetimes.Load, a.Steady)
	}
	return a
}

func TestAnswerIsNeverBelowThePeak(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 20))
		tr := randomTrace(rng)
		before := 0
		for before < len(tr) && tr[before].Kind == Malloc {
			before++
		}
		checkAnswer(t, fmt.Sprintf("seed %d", seed), &Record{Trace: tr, Before: rng.IntN(before + 1)})
	}
}

// job makes records of jobs, with the blocks named after what they are.
type job struct {
	t Trace
	n int
}

func (j *job) malloc(size int64) string {
	j.n++
	id := fmt.Sprint("b", j.n)
	j.t = append(j.t, Event{Malloc, id, size})
	return id
}

func (j *job) free(ids ...string) {
	for _, id := range ids {
		j.t = append(j.t, Event{Kind: Free, Block: id})
	}
}

func (j *job) scratch(sizes ...int64) {
	for _, size := range sizes {
		j.free(j.malloc(size))
	}
}

// jobOptions say what a job is like. The zero value is one step of no layers.
type jobOptions struct {
	layers, steps int
	inference     bool // layers leave nothing but what they give to the next
	workspace     bool // the first step tries algorithms
	late          bool // the output stays until that of the next step is there
	state         bool // the optimizer mallocs its state in the first step, and scratch per layer in each
	cacheEvery    int  // a cache is replaced in every so many steps, by turns of two; 0: none
	load          bool // the weights come with the record
	eval          bool // an evaluation follows
	cut           int  // events that are missing at the end
}

// record makes the record of a job. All sizes are different where the blocks are of different kinds.
func (o jobOptions) record() *Record {
	j := &job{}
	for range o.layers {
		j.malloc(4096)
	}
	before := len(j.t)
	if o.load {
		before = 0
	}
	output, caches := "", []string{}
	for step := range o.steps {
		if o.cacheEvery > 0 && step%o.cacheEvery == 0 {
			caches = append(caches, j.malloc(900))
			if len(caches) > 2 {
				j.free(caches[0])
				caches = caches[1:]
			}
		}
		x, mask := j.malloc(1000), j.malloc(77)
		acts := []string{x}
		for range o.layers {
			if o.workspace && step == 0 {
				j.scratch(500_000, 700_000)
			}
			y := j.malloc(1000)
			wide := j.malloc(4000)
			j.scratch(500)
			j.free(wide)
			if o.inference {
				j.free(acts[len(acts)-1])
				acts = acts[:0]
			}
			acts = append(acts, y)
		}
		norm, logits := j.malloc(1001), j.malloc(8000)
		j.free(norm)
		if output != "" {
			j.free(output)
			output = ""
		}
		var grads []string
		for i := len(acts) - 1; i >= 0; i-- {
			if !o.inference {
				j.scratch(1000)
				grads = append(grads, j.malloc(4096))
			}
			j.free(acts[i])
		}
		for range grads {
			if o.state && step == 0 {
				j.malloc(4097)
			}
			if o.state {
				j.scratch(4096, 4098)
			}
		}
		j.free(grads...)
		j.free(mask)
		if o.late {
			output = logits
		} else {
			j.free(logits)
		}
	}
	if o.eval {
		j.scratch(1000, 3333, 8000, 5, 6, 7, 8, 9, 10)
	}
	return &Record{Trace: j.t[:max(before, len(j.t)-o.cut)], Before: before}
}

// A recording of one step is one step, whatever its layers do.
func TestOneStepHasNoIteration(t *testing.T) {
	for _, layers := range []int{2, 3, 4, 12, 48} {
		for bits := range 32 {
			o := jobOptions{layers: layers, steps: 1, inference: bits&1 > 0, workspace: bits&2 > 0, late: bits&4 > 0,
				state: bits&8 > 0, load: bits&16 > 0}
			a := checkAnswer(t, fmt.Sprintf("%+v", o), o.record())
			if a.Found.Repeats > 1 {
				t.Errorf("%+v: %+v", o, a.Found)
			}
		}
	}
}

// Several steps are iterations, each of which is one step; the first may be another one, and more than the others need.
func TestStepsAreIterations(t *testing.T) {
	for _, layers := range []int{2, 3, 12} {
		for bits := range 16 {
			for _, steps := range []int{3, 4, 7} {
				o := jobOptions{layers: layers, steps: steps, inference: bits&1 > 0, workspace: bits&2 > 0,
					state: bits&4 > 0, load: bits&8 > 0}
				what := fmt.Sprintf("%+v", o)
				a := checkAnswer(t, what, o.record())
				fewer := o
				fewer.steps--
				events := len(o.record().Trace) - len(fewer.record().Trace)
				if a.Found.Events != events || a.Found.Repeats < steps-1 {
					t.Errorf("%s: %+v, %v, want iterations of %d events", what, a.Found, a.Part, events)
				}
				if o.workspace && (a.WarmUp != a.Peak || a.Steady >= a.Peak || !a.Whole) {
					t.Errorf("%s: warm-up %d, steady %d, peak %d, whole %v", what, a.WarmUp, a.Steady, a.Peak, a.Whole)
				}
			}
		}
	}
}

// An output that stays until the next one is there lives for longer than a step: two steps are one iteration.
func TestLateOutput(t *testing.T) {
	o := jobOptions{layers: 4, steps: 4, late: true}
	a := checkAnswer(t, "4 steps", o.record())
	if a.Part == nil || a.Part.Repeats != 2 {
		t.Errorf("of 4 steps %+v, %v, want a repetition", a.Found, a.Part)
	}
	o.steps = 7
	b := checkAnswer(t, "7 steps", o.record())
	if a.Part != nil && (b.Found.Events != 2*a.Part.Events || b.Found.Repeats < 2) {
		t.Errorf("of 7 steps %+v, %v, want iterations of two steps", b.Found, b.Part)
	}
}

// Whatever a job is like, nothing is said that is below what it held at once.
func TestAnswersOfJobs(t *testing.T) {
	found, caches := 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 21))
		coin := func() bool { return rng.IntN(2) == 0 }
		o := jobOptions{layers: rng.IntN(6), steps: 1 + rng.IntN(9), inference: coin(), workspace: coin(), late: coin(),
			state: coin(), load: coin(), eval: rng.IntN(4) == 0, cacheEvery: rng.IntN(4)}
		if coin() {
			o.cut = rng.IntN(60)
		}
		a := checkAnswer(t, fmt.Sprintf("seed %d: %+v", seed, o), o.record())
		if a.Found.Repeats > 1 {
			found++
			if o.cacheEvery > 0 {
				caches++
			}
		}
	}
	if found < 80 || caches < 20 {
		t.Errorf("%d of 600 jobs have iterations, %d of them with caches", found, caches)
	}
}

// The cases in which a layer, or what is not all of the record, was taken for the iteration.
func TestAnswers(t *testing.T) {
	layers := &job{} // four layers that repeat within one step
	layers.malloc(5000)
	layers.malloc(5001)
	layers.malloc(5002)
	var acts []string
	for range 4 {
		acts = append(acts, layers.malloc(4000))
		a, b := layers.malloc(1500), layers.malloc(700)
		layers.free(a, b)
	}
	for i := range acts {
		layers.scratch(900 + int64(i))
		layers.free(acts[len(acts)-1-i])
	}
	caches := &job{} // a block that is replaced in the pass after the next
	var k []string
	for i := range 6 {
		k = append(k, caches.malloc(900))
		x, y := caches.malloc(1200), caches.malloc(300)
		caches.free(x)
		if i > 1 {
			caches.free(k[i-2])
		}
		caches.free(y)
	}
	warm := &job{}
	for i := range 6 {
		a := warm.malloc(2000)
		if i == 0 {
			warm.scratch(50_000)
		}
		warm.scratch(300)
		warm.free(a)
	}
	for _, c := range []struct {
		name                   string
		t                      Trace
		repeats                int
		peak, warmUp, steadily int64
	}{
		{"layers", layers.t, 1, 33203, 15003, 33203}, {"caches", caches.t, 1, 4200, 4200, 4200},
		{"warm-up", warm.t, 5, 52000, 52000, 2300},
	} {
		a := checkAnswer(t, c.name, &Record{Trace: c.t})
		if a.Found.Repeats != c.repeats || a.Peak != c.peak || a.WarmUp != c.warmUp || a.Steady != c.steadily ||
			!a.Whole {
			t.Errorf("%s: %+v, peak %d, warm-up %d, steady %d, whole %v", c.name, a.Found, a.Peak, a.WarmUp, a.Steady,
				a.Whole)
		}
	}
}
