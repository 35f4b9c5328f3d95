package policies_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/policies"
	"tensile/scheduler/rivals/paper"
)

// outside is the table with the policies of this file, which is no part of package policies: a row each.
func outside() policies.Table {
	return append(policies.All(),
		policies.Row{Name: "paper-barriers", Policy: withBarriers},
		policies.Row{Name: "fastest-variants", Policy: fastestVariants},
		policies.Row{Name: "earlier-when-late", Policy: earlierWhenLate},
	)
}

// byOutside schedules by a policy of outside and proves the result.
func byOutside(t *testing.T, what, policy string, r scheduler.Request) (scheduler.Result, error) {
	t.Helper()
	r.Policy = policy
	result, err := outside().Schedule(r, scheduler.Watch{})
	if err == nil {
		mustHold(t, what, r, result)
	}
	return result, err
}

func TestTableNamesPolicies(t *testing.T) {
	r := jobtest.New(rand.New(rand.NewPCG(1, 20)), 1)
	if _, err := policies.Schedule(r, nil); err != nil {
		t.Error(err)
	}
	r.Policy = "fastest-variants"
	want := `unknown policy "fastest-variants": tensile plan --help --all lists all`
	if _, err := policies.Schedule(r, nil); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	r.Options.Own = 7
	if _, err := outside().Schedule(r, scheduler.Watch{}); err == nil ||
		err.Error() != "options of type int: no policy has such options" {
		t.Error(err)
	}
}

// withBarriers is the method of the paper on its authors' executor: every copy out holds the job up until it has
// ended, and the iteration ends when all copies have.
func withBarriers(s *draft.Session) (scheduler.Result, error) {
	result, err := paper.Plan(s)
	for _, j := range result.Jobs {
		last := -1
		for i := range j.Plan.Moves {
			switch m := &j.Plan.Moves[i]; m.Kind {
			case plan.Out:
				m.Sync = true
			case plan.In:
				last = i
			}
		}
		if last >= 0 {
			j.Plan.Moves[last].Sync = true
		}
	}
	return result, err
}

// iteration is how long an iteration of the plan of a request's only job takes.
func iteration(r scheduler.Request, s scheduler.Scheduled) time.Duration {
	compiled := compile.Compile(r.Jobs[0].Graph, s.Plan, s.Layout, compile.Options{})
	return program.Time(compiled, program.Durations{Steps: s.Plan.Made, Out: s.Out, In: s.In}).Iteration
}

// TestPolicyEmitsSync shows that the barriers of a policy reach the program: no iteration is shorter, many are longer.
func TestPolicyEmitsSync(t *testing.T) {
	longer, equal := 0, 0
	for seed := range seeds(100) {
		what := fmt.Sprintf("seed %d", seed)
		r := jobtest.New(rand.New(rand.NewPCG(seed, 21)), 1)
		plain, err := byOutside(t, what, "tensile-paper", r)
		if err != nil {
			t.Fatal(what, err)
		}
		held, err := byOutside(t, what, "paper-barriers", r)
		if err != nil {
			t.Fatal(what, err)
		}
		switch before, after := iteration(r, plain.Jobs[0]), iteration(r, held.Jobs[0]); {
		case after < before:
			t.Errorf("%s: %v with barriers, %v without", what, after, before)
		case after > before:
			longer++
		default:
			equal++
		}
	}
	if t.Logf("%d longer, %d equal", longer, equal); longer < int(seeds(100))/2 {
		t.Errorf("only %d iterations are longer", longer)
	}
}

// fastestVariants swaps nothing. It begins with the fastest variant of every op and steps down to less scratch at the
// peak until the peaks fit the budget, as vDNN's dynamic policy chooses its convolutions.
func fastestVariants(s *draft.Session) (scheduler.Result, error) {
	r := &s.Request
	workingSets, err := r.CheckWorkingSets()
	if err != nil {
		return scheduler.Result{}, err
	}
	s.Stage(scheduler.Planning)
	choices := make([][]int, len(r.Jobs))
	for i := range r.Jobs {
		for op := range r.Jobs[i].Graph.Ops {
			choices[i] = append(choices[i], fastest(&r.Jobs[i], graph.OpID(op), graph.MaxBytes))
		}
	}
	for {
		var jobs []*draft.Draft
		lower := false
		for i := range r.Jobs {
			j := &r.Jobs[i]
			d := s.Draft(i, draft.FirstSteps(draft.GraphOrder(j.Graph)), draft.Style{Variants: choices[i]})
			at, _ := d.Peak()
			op := d.Steps()[at].Op
			if k := fastest(j, op, j.Variants[op][choices[i][op]].Scratch); k >= 0 {
				choices[i][op], lower = k, true
			}
			jobs = append(jobs, d)
		}
		if r.Budget == 0 || draft.SumOfPeaks(jobs) <= r.Budget {
			result, err := s.Finish(jobs, 0)
			if err != nil || r.Budget == 0 || result.Arena <= r.Budget {
				return result, err
			}
		}
		if !lower {
			return scheduler.Result{}, &scheduler.OverBudgetError{Need: max(workingSets, r.Budget+1), Budget: r.Budget,
				Reason: "no variant needs less"}
		}
	}
}

// fastest returns the fastest variant of an op with less scratch than a limit, -1 if there is none.
func fastest(j *scheduler.Job, op graph.OpID, below graph.Bytes) int {
	best := -1
	for k, v := range j.Variants[op] {
		if v.Scratch < below && (best < 0 || j.Variant(op, k).Latency < j.Variant(op, best).Latency) {
			best = k
		}
	}
	return best
}

// TestPolicyChoosesVariants gives each op three variants. Policies that do not choose take the first; one that does
// takes the fastest where there is room, and slower ones where there is not.
func TestPolicyChoosesVariants(t *testing.T) {
	taken := map[string]int{}
	for seed := range seeds(60) {
		rng := rand.New(rand.NewPCG(seed, 22))
		r := jobtest.New(rng, 1)
		j := &r.Jobs[0]
		what := fmt.Sprintf("seed %d", seed)
		one := schedule(t, what, r)
		for op, first := range j.Variants {
			more := first[0].Scratch + graph.Bytes(4+4*rng.IntN(400))
			j.Variants[op] = append(slices.Clone(first), scheduler.Variant{Name: "blocked", Scratch: more,
				Latency: 1 + j.Latency[op]/2},
				scheduler.Variant{Name: "transformed", Scratch: 3 * more, Latency: 1 + j.Latency[op]/4})
		}
		if several := schedule(t, what, r); text(t, one, nil) != text(t, several, nil) {
			t.Fatalf("%s: more variants change the plans of policy tensile", what)
		}
		ample, err := byOutside(t, what, "fastest-variants", r)
		if err != nil {
			t.Fatal(what, err)
		}
		live := schedule(t, what, withPolicy(r, "none-live")).Arena
		r.Budget = live + (ample.Arena-live)/6
		tight, err := byOutside(t, what, "fastest-variants", r)
		if err != nil {
			continue // it packs too badly
		}
		for slot, step := range tight.Jobs[0].Plan.Steps {
			k := slices.IndexFunc(j.Variants[step.Op], func(v scheduler.Variant) bool { return v.Name == step.Variant })
			if v := j.Variant(step.Op, k); v.Scratch != step.Scratch || v.Latency != tight.Jobs[0].Plan.Made[slot] {
				t.Fatalf("%s: step %+v takes %v, variant %+v", what, step, tight.Jobs[0].Plan.Made[slot], v)
			}
			taken[step.Variant]++
		}
		if a, b := ample.Jobs[0].Plan.Length(), tight.Jobs[0].Plan.Length(); a > b {
			t.Errorf("%s: %v with room for all variants, %v without", what, a, b)
		}
	}
	if t.Log(taken); taken[""] == 0 || taken["blocked"] == 0 || taken["transformed"] == 0 ||
		long.On() && min(taken[""], taken["blocked"], taken["transformed"]/2) < 50 {
		t.Errorf("variants taken: %v", taken)
	}
}

func withPolicy(r scheduler.Request, policy string) scheduler.Request {
	r.Policy, r.Budget = policy, 0
	return r
}

// earlierWhenLate swaps what costs no time by prediction. If an iteration shows that the job waited for a copy in, it
// begins that one a step earlier and asks for another iteration, as Capuchin's feedback does.
func earlierWhenLate(s *draft.Session) (scheduler.Result, error) {
	s.Stage(scheduler.Planning)
	plans := make([]*plan.Plan, len(s.Request.Jobs))
	again := false
	for i := range s.Request.Jobs {
		last := s.Request.Jobs[i].Last
		if last == nil {
			d := s.Draft(i, draft.FirstSteps(draft.GraphOrder(s.Request.Jobs[i].Graph)), draft.Style{})
			draft.SwapFreely([]*draft.Draft{d}, 0)
			plans[i], again = d.Plan(s.Request.Policy), again || d.Swaps() > 0
			continue
		}
		p := *last.Plan
		p.Moves = slices.Clone(p.Moves)
		for _, c := range last.Copies {
			again = c.Kind == plan.In && c.Stall > 0 && earlier(p.Moves, c) || again
		}
		plan.Sort(p.Moves)
		plans[i] = &p
	}
	result, err := s.Place(plans)
	result.Again = again
	return result, err
}

// earlier moves a copy in one step ahead, if its storage is away then.
func earlier(moves []plan.Move, c scheduler.Copy) bool {
	before := -1 // a step after which the storage leaves
	for i := range moves {
		switch m := &moves[i]; {
		case m.Storage != c.Storage || m.After > c.After:
		case m.Kind == plan.In && m.After == c.After:
			if m.After-1 <= before {
				return false
			}
			m.After--
			return true
		default:
			before = m.After
		}
	}
	return false
}

// observed is the report of an iteration of a plan on a link.
func observed(g *graph.Graph, s scheduler.Scheduled, r scheduler.Request) (report *scheduler.Report,
	stalled time.Duration) {
	compiled := compile.Compile(g, s.Plan, s.Layout, compile.Options{})
	timing := program.Time(compiled, program.Durations{Steps: s.Plan.Made, Out: r.Out, In: r.In})
	stalls := timing.Stalls(compiled)
	report = &scheduler.Report{Plan: s.Plan, Steps: s.Plan.Made}
	for i, c := range compiled.Body.Commands {
		if c.Kind != program.In && c.Kind != program.Out {
			continue
		}
		copied := scheduler.Copy{Kind: plan.Out, Storage: c.Storage, After: c.Slot, Start: timing.Start[i],
			End: timing.End[i]}
		if c.Kind == program.In {
			copied.Kind = plan.In
			for slot := c.Slot + 1; slot < len(s.Plan.Steps); slot++ {
				if slices.Contains(g.Touches(s.Plan.Steps[slot].Op), c.Storage) {
					copied.Stall = stalls[slot]
					break
				}
			}
		}
		report.Copies = append(report.Copies, copied)
	}
	return report, timing.Stall
}

// TestPolicyAsksAgain runs plans on a link that is slower than predicted, until the policy is content with what it
// sees.
func TestPolicyAsksAgain(t *testing.T) {
	var before, after time.Duration
	asked := 0
	for seed := range seeds(60) {
		r := jobtest.New(rand.New(rand.NewPCG(seed, 23)), 1)
		r.Jobs[0].MaxSwapRate = 0
		slow := r
		slow.In.Rate /= 2
		for round := 0; ; round++ {
			what := fmt.Sprintf("seed %d, round %d", seed, round)
			result, err := byOutside(t, what, "earlier-when-late", r)
			if err != nil {
				t.Fatal(what, err)
			}
			report, stalled := observed(r.Jobs[0].Graph, result.Jobs[0], slow)
			if round == 0 {
				before += stalled
			}
			if !result.Again {
				after += stalled
				break
			}
			r.Jobs[0].Last = report
			if asked++; round > 2000 {
				t.Fatalf("%s: it never has enough", what)
			}
		}
	}
	if t.Logf("stalls of %v, and %v after %d more iterations", before, after, asked); after*10 > before*9 ||
		asked < long.Or(5, 100) {
		t.Errorf("stalls of %v, and %v after %d more iterations", before, after, asked)
	}
}
