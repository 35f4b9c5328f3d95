package cost

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// slowOthers is BusyOthers by its definition: a job finds the others as they are in the mean without it. It looks at
// each set of jobs anew.
func slowOthers(s Sharing, jobs []Use, of int) (others float64) {
	rest := append(append([]Use(nil), jobs[:of]...), jobs[of+1:]...)
	for i, u := range rest {
		others += u.busy(s.Slowdown(slowOthers(s, rest, i)))
	}
	return others
}

// TestOthers compares the means with the slow ones, for few jobs, some of them equal. The form for many jobs gives no
// less, and an eighth of a job more at most.
func TestOthers(t *testing.T) {
	var room Room
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := Sharing{Share: 1 / float64(1+r.IntN(3))}
		jobs := make([]Use, 1+r.IntN(6))
		for i := range jobs {
			jobs[i] = Use{time.Duration(r.IntN(5)), time.Duration(r.IntN(9))}
		}
		ones := make([]int, len(jobs))
		for i := range ones {
			ones[i] = 1
		}
		got, many := s.BusyOthers(jobs), s.byLess(&Room{uses: jobs, count: ones})
		if again := s.busyOthers(&room, jobs, maxMixes); !slices.Equal(again, got) {
			t.Fatalf("seed %d: jobs of %v meet %v others, in used memory %v", seed, jobs, got, again)
		}
		for i := range jobs {
			want := slowOthers(s, jobs, i)
			if math.Abs(got[i]-want) > 1e-9 {
				t.Fatalf("seed %d: job %d of %v meets %v others, want %v", seed, i, jobs, got[i], want)
			}
			if many[i] < want-1e-9 || many[i] > want+0.125 {
				t.Errorf("seed %d: by the mean of all, job %d of %v meets %v others, want %v or a little more", seed, i,
					jobs, many[i], want)
			}
		}
	}
}

// slowMean is byMean by the definition, in rounds that come nearer to it.
func slowMean(s Sharing, jobs []Use) (mean float64) {
	others := make([]float64, len(jobs))
	for range 2000 {
		mean = 0
		for i, u := range jobs {
			mean += u.busy(s.Slowdown(others[i]))
		}
		for i, u := range jobs {
			others[i] = max(0, mean-u.busy(s.Slowdown(others[i])))
		}
	}
	return mean
}

// The form for many jobs has the means of the slow rounds, whatever it was asked before.
func TestOthersByMean(t *testing.T) {
	var room Room
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		s := Sharing{Share: 1 / float64(1+r.IntN(4))}
		if r.IntN(20) == 0 {
			s.Share = 0
		}
		kinds := make([]Use, 1+r.IntN(12))
		for i := range kinds {
			kinds[i] = Use{time.Duration(r.IntN(1 << r.IntN(12))), time.Duration(r.IntN(1 << r.IntN(12)))}
		}
		jobs := make([]Use, 1+r.IntN(20))
		for i := range jobs {
			jobs[i] = kinds[r.IntN(len(kinds))]
		}
		got := s.busyOthers(&room, jobs, 0)
		for i := range jobs {
			want := slowMean(s, slices.Delete(slices.Clone(jobs), i, i+1))
			if math.Abs(got[i]-want) > 1e-6 {
				t.Fatalf("seed %d: job %d of %v meets %v others, want %v", seed, i, jobs, got[i], want)
			}
		}
	}
}

func TestOthersExamples(t *testing.T) {
	const us = time.Microsecond
	half, all := Use{us, us}, Use{0, us}
	for _, test := range []struct {
		name  string
		share float64
		jobs  []Use
		want  []float64 // stretches
	}{
		{"nobody else", 1, []Use{half}, []float64{1}},
		{"jobs without launches", 1, []Use{all, all, all}, []float64{3, 3, 3}},
		{"one that is busy half of its time alone", 1, []Use{all, half}, []float64{1.5, 2}},
		{"nothing to do", 1, []Use{{}, all}, []float64{2, 1}},
		{"nothing is shared", 0, []Use{all, all, all}, []float64{1, 1, 1}},
		{"as many as the device has room for", 0.5, []Use{all, all}, []float64{1, 1}},
		{"twice as many", 0.5, []Use{all, all, all, all}, []float64{2, 2, 2, 2}},
	} {
		s := Sharing{Share: test.share}
		for i, others := range s.BusyOthers(test.jobs) {
			if got := s.Slowdown(others); math.Abs(got-test.want[i]) > 1e-9 {
				t.Errorf("%s: job %d is stretched %v times, want %v", test.name, i, got, test.want[i])
			}
		}
	}
}

// Thousands of jobs take no time, of one kind or of many: stretches stay between 1 and the number of jobs, and nearly
// reach that where jobs do little but work.
func TestOthersOfMany(t *testing.T) {
	for _, kinds := range []int{1, 2, 40, 2000} {
		jobs := make([]Use, 2000)
		for i := range jobs {
			jobs[i] = Use{1, time.Duration(100 + i%kinds)}
		}
		s := Facts{}.Sharing()
		for i, others := range s.BusyOthers(jobs) {
			if x := s.Slowdown(others); x < 0.98*2000 || x > 2000 {
				t.Fatalf("%d kinds: job %d of %d is stretched %v times", kinds, i, len(jobs), x)
			}
		}
	}
}

// Contended slows down work alone, and Uncontended is its inverse, to the nanosecond or so.
func TestBeside(t *testing.T) {
	s := Facts{Launch: 5}.Sharing()
	for _, test := range []struct {
		alone   time.Duration
		stretch float64
		want    time.Duration
	}{{0, 3, 0}, {4, 3, 4}, {5, 3, 5}, {25, 3, 65}, {25, 1, 25}} {
		got := s.Contended(test.alone, test.stretch)
		if got != test.want || s.Uncontended(got, test.stretch) != test.alone {
			t.Errorf("%v stretched %v times is %v, want %v; back it is %v", test.alone, test.stretch, got, test.want,
				s.Uncontended(got, test.stretch))
		}
	}
	if u := s.Use([]time.Duration{3, 25, 0, 5}); u != (Use{13, 20}) || math.Abs(u.Busy()-20.0/33) > 1e-12 {
		t.Errorf("use %+v, busy for %v", u, u.Busy())
	}
}
