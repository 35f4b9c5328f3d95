package each

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/rivals/replay"

	_ "tensile/internal/long" // the flag -long
)

// oldest is a run-time method: what has been on the device longest leaves first.
type oldest struct{ order []graph.StorageID }

func (o *oldest) Used(s graph.StorageID) {
	for _, have := range o.order {
		if have == s {
			return
		}
	}
	o.order = append(o.order, s)
}

func (o *oldest) Victim(candidates []replay.Candidate) graph.StorageID {
	for _, s := range o.order {
		for _, c := range candidates {
			if c.Storage == s {
				return s
			}
		}
	}
	return candidates[0].Storage
}

func (o *oldest) Left(s graph.StorageID) {
	for i, have := range o.order {
		if have == s {
			o.order = append(o.order[:i:i], o.order[i+1:]...)
			return
		}
	}
}

// A method for one job plans any number of jobs: each within its part of the budget, equal jobs once, and with less
// until the plans pack into it.
func TestEach(t *testing.T) {
	planned, repeated, refused := 0, 0, 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 91))
		r := jobtest.New(rng, 1+rng.IntN(3))
		for i := range r.Jobs {
			r.Jobs[i].MaxSwapRate = 0
		}
		if seed%4 == 0 { // and a copy
			r.Jobs = append(r.Jobs, r.Jobs[len(r.Jobs)-1])
			r.Jobs[len(r.Jobs)-1].Name, r.Jobs[len(r.Jobs)-1].Epoch = "copy", 7
		}
		r.Policy = "oldest"
		sets, _ := r.WorkingSets()
		r.Budget = 0
		free, calls := each(t, r)
		if copies := len(r.Jobs) > 1 && r.Jobs[len(r.Jobs)-1].Name == "copy"; copies && calls != len(r.Jobs)-1 {
			t.Fatalf("seed %d: %d jobs, two of them equal, were planned %d times", seed, len(r.Jobs), calls)
		}
		r.Budget = sets + (free.Arena-sets)*graph.Bytes(20+rng.IntN(70))/100
		result, calls := each(t, r)
		if result.Jobs == nil {
			refused++
			continue
		}
		planned++
		if calls > len(r.Jobs) {
			repeated++
		}
		if result.Arena > r.Budget {
			t.Fatalf("seed %d: arenas of %d within %d", seed, result.Arena, r.Budget)
		}
		for i, j := range result.Jobs {
			if p := j.Plan; p.Job != r.Jobs[i].Name || p.Epoch != r.Jobs[i].Epoch || p.Policy != "oldest" {
				t.Fatalf("seed %d: plan of %s, epoch %d, policy %s", seed, p.Job, p.Epoch, p.Policy)
			}
		}
	}
	t.Logf("%d planned, %d with less than their part at first, %d refused", planned, repeated, refused)
	if planned < 100 || repeated < 10 {
		t.Errorf("%d planned, %d with less than their part at first, %d refused", planned, repeated, refused)
	}
	r := jobtest.New(rand.New(rand.NewPCG(1, 91)), 1)
	r.Jobs[0].MaxSwapRate, r.Policy = .5, "oldest"
	_, err := draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) { return Plan(s, nil) })
	if want := "job 0: policy oldest has no limit of swaps: leave its max swap rate out"; err == nil ||
		err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// each plans by the method oldest, and returns how often it was asked; no jobs if it was refused.
func each(t *testing.T, r scheduler.Request) (result scheduler.Result, calls int) {
	t.Helper()
	result, err := draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
		return Plan(s, func(i int, part Part) (*plan.Plan, error) {
			calls++
			return replay.Plan(&s.Request.Jobs[i], "oldest", part.Capacity, r.Align, &oldest{})
		})
	})
	var over *scheduler.OverBudgetError
	if err != nil && !(errors.As(err, &over) && over.Need > r.Budget) {
		t.Fatal(fmt.Errorf("budget %d: %w", r.Budget, err))
	}
	return result, calls
}

// TestParts divides budgets: of what is above the working sets each job has as much as goes by what it needs more than
// its own without a plan, and what is left beyond that evenly. Where jobs share memory each has what the others' bases
// leave.
func TestParts(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 92))
		r := jobtest.New(rng, 2+rng.IntN(2))
		if seed%3 == 0 { // and a copy
			r.Jobs = append(r.Jobs, r.Jobs[len(r.Jobs)-1])
			r.Jobs[len(r.Jobs)-1].Name = "copy"
		}
		jobs := graph.Bytes(len(r.Jobs))
		parts := func() (parts, sets, lives, bases []graph.Bytes) {
			_, err := draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
				for i := range r.Jobs {
					d := s.Draft(i, draft.FirstSteps(draft.GraphOrder(r.Jobs[i].Graph)), draft.Style{})
					_, live := d.Peak()
					sets = append(sets, scheduler.WorkingSetOf(r.Jobs[i], r.Align).Bytes)
					lives, bases = append(lives, live), append(bases, d.Base())
				}
				parts = make([]graph.Bytes, len(r.Jobs))
				for _, c := range divide(s, nil).claims {
					for _, i := range c.jobs {
						parts[i] = c.part.Bytes
					}
				}
				return scheduler.Result{}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return parts, sets, lives, bases
		}
		free, sets, lives, bases := parts()
		var set, live, base graph.Bytes
		for i := range sets {
			set, live, base = set+sets[i], live+lives[i], base+bases[i]
			if free[i] != lives[i] {
				t.Fatalf("seed %d: without a budget job %d has %d, want %d", seed, i, free[i], lives[i])
			}
		}
		r.Budget = (set + live) / 2
		for i, part := range first(parts()) {
			if half := (sets[i] + lives[i]) / 2; part < half-1 || part > half {
				t.Fatalf("seed %d: within %d job %d has %d, want %d", seed, r.Budget, i, part, half)
			}
		}
		r.Budget = live + 1000*jobs
		for i, part := range first(parts()) {
			if part != lives[i]+1000 {
				t.Fatalf("seed %d: within %d job %d has %d, want %d", seed, r.Budget, i, part, lives[i]+1000)
			}
		}
		r.Budget, r.Together = live, true
		for i, part := range first(parts()) {
			if want := max(sets[i], live-base+bases[i]); part != want {
				t.Fatalf("seed %d: together within %d job %d has %d, want %d", seed, r.Budget, i, part, want)
			}
		}
	}
}

func first(parts, _, _, _ []graph.Bytes) []graph.Bytes { return parts }

// demanding is a method for jobs that need some capacity at least. Some keep to that plan whatever they are given.
type demanding struct {
	least []graph.Bytes // per job
	fixed []bool
	asked []Part // per job: last
	calls int
}

func (m *demanding) plan(r *scheduler.Request) Method {
	return func(i int, part Part) (*plan.Plan, error) {
		m.calls++
		m.asked[i] = part
		capacity := part.Capacity
		if capacity < m.least[i] {
			return nil, &scheduler.OverBudgetError{Need: 1000 + m.least[i] - capacity, Budget: 1000, Reason: "it is"}
		}
		if m.fixed[i] {
			capacity = m.least[i]
		}
		return replay.Plan(&r.Jobs[i], r.Policy, capacity, r.Align, &oldest{})
	}
}

// packed is what the plans of a method pack into that are given their least.
func (m *demanding) packed(t *testing.T, r scheduler.Request) (sum graph.Bytes) {
	t.Helper()
	_, err := draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
		plans := make([]*plan.Plan, len(r.Jobs))
		for i := range r.Jobs {
			var err error
			if plans[i], err = m.plan(&r)(i, Part{m.least[i], m.least[i]}); err != nil {
				t.Fatal(err)
			}
		}
		result, err := s.Place(plans)
		sum = result.Least
		return scheduler.Result{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestEachRaises: a job whose method refuses its part gets what it needs from those that have more than they need. The
// jobs are refused only if what they need least does not pack into the budget, and that is what the refusal says.
func TestEachRaises(t *testing.T) {
	raised, planned, refused, most := 0, 0, 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 93))
		r := jobtest.New(rng, 2+rng.IntN(2))
		if seed%3 == 0 { // and a copy
			r.Jobs = append(r.Jobs, r.Jobs[len(r.Jobs)-1])
			r.Jobs[len(r.Jobs)-1].Name = "copy"
		}
		r.Policy, r.Budget = "demanding", 0
		m := &demanding{make([]graph.Bytes, len(r.Jobs)), make([]bool, len(r.Jobs)), make([]Part, len(r.Jobs)), 0}
		var sum graph.Bytes
		_, err := draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
			for _, c := range divide(s, nil).claims {
				part, fixed := graph.Bytes(rng.IntN(101)), rng.IntN(3) == 0
				for _, i := range c.jobs {
					m.least[i], m.fixed[i] = c.need+(c.live-c.need)*part/100, fixed
					sum += c.live
				}
			}
			return scheduler.Result{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		least := m.packed(t, r)
		r.Budget = least + (sum-least)*graph.Bytes(rng.IntN(60)-10)/100
		var short bool
		m.calls = 0
		result, err := draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
			if sets, _ := r.WorkingSets(); r.Budget >= sets {
				for _, c := range divide(s, nil).claims {
					short = short || c.part.Capacity < m.least[c.jobs[0]]
				}
			}
			return PlanUnswapped(s, m.plan(&s.Request))
		})
		most = max(most, m.calls)
		if err == nil {
			planned++
			for i := range r.Jobs {
				if m.asked[i] != (Part{}) && m.asked[i].Capacity < m.least[i] { // the first of equal jobs is
					t.Fatalf("seed %d: job %d within %v, needs %v", seed, i, m.asked[i], m.least[i])
				}
			}
			if short {
				raised++
			}
			if result.Least > r.Budget {
				t.Fatalf("seed %d: %v within %v", seed, result.Least, r.Budget)
			}
			continue
		}
		refused++
		over, ok := errors.AsType[*scheduler.OverBudgetError](err)
		if !ok || over.Budget != r.Budget || over.Need <= r.Budget {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if least <= r.Budget {
			t.Errorf("seed %d: %v, but %v are enough", seed, err, least)
		}
	}
	if planned < 75 || raised < 25 || refused < 5 || most > 100 {
		t.Errorf("%d planned, %d of these with a raised part, %d refused, asked up to %d times", planned, raised,
			refused, most)
	}
}

// TestEachLeast: the refusal of several jobs says what the least of each packs into, also of those whose part was not
// refused; and a method that never has enough is asked a few times.
func TestEachLeast(t *testing.T) {
	r := jobtest.New(rand.New(rand.NewPCG(3, 94)), 2)
	r.Policy, r.Budget = "demanding", 0
	m := &demanding{make([]graph.Bytes, 2), []bool{true, true}, make([]Part, 2), 0}
	_, err := draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
		for _, c := range divide(s, nil).claims {
			m.least[c.jobs[0]] = (c.need + c.live) / 2
		}
		return scheduler.Result{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	need := m.packed(t, r)
	r.Budget = m.least[0] + scheduler.WorkingSetOf(r.Jobs[1], r.Align).Bytes
	_, err = draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
		return PlanUnswapped(s, m.plan(&s.Request))
	})
	want := fmt.Sprintf("budget %s is too small: %s needed: policy demanding needs at least %s for job %s, %s for "+
		"job %s; policy tensile goes lower", r.Budget, need, m.least[0], r.Jobs[0].Name, m.least[1], r.Jobs[1].Name)
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	calls := 0
	_, err = draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
		return PlanUnswapped(s, func(_ int, part Part) (*plan.Plan, error) {
			calls++
			return nil, &scheduler.OverBudgetError{Need: 2, Budget: 1}
		})
	})
	if !errors.Is(err, scheduler.ErrNoPlan) || calls > 20 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
