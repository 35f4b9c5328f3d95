package plans

import (
	"math/rand/v2"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Of a budget jobs get what contexts leave: those of processes that there are, and of those that they start. What does
// not fit is told with the contexts.
func TestPlannerContexts(t *testing.T) {
	g := graphtest.New(rand.New(rand.NewPCG(1, 1)), graphtest.Options{Ops: 3})
	p := newTestWorker(Settings{Policy: "none-live"})
	ask := func(q Request, jobs int) (*Result, []graph.Bytes) {
		for i := range jobs {
			q.Jobs = append(q.Jobs, Candidate{Spec: wire.Spec{Name: string('a' + rune(i)), Iterations: 1},
				Graph: g, Epoch: 1, Unchecked: true, StartsProcess: i != 1})
		}
		var budgets []graph.Bytes
		p.Known = func(r scheduler.Request) *planner.Planned {
			budgets = append(budgets, r.Budget)
			return nil
		}
		return p.Plan(t.Context(), &q), budgets
	}
	one, _ := ask(Request{}, 1)
	arena := one.Jobs[0].Layout.Wire.Arena
	const context = 100
	contexts := wire.Contexts{Processes: 2, Each: context}
	all := 2*arena + 3*context
	got, budgets := ask(Request{Budget: all, Contexts: contexts}, 2)
	if len(got.Jobs) != 2 || got.NoPlan != nil || budgets[0] != 2*arena {
		t.Errorf("got plans for %d jobs within %v, want 2 within %v; %+v", len(got.Jobs), budgets, 2*arena, got.NoPlan)
	}
	got, budgets = ask(Request{Budget: all, Contexts: contexts}, 4) // the third and fourth have contexts, too
	if len(got.Jobs) != 2 || budgets[0] != 2*arena-2*context {
		t.Errorf("got plans for %d jobs within %v", len(got.Jobs), budgets)
	}
	want := NoPlan{Need: 3*arena + 4*context, Budget: all, Contexts: wire.Contexts{Processes: 4, Each: context}}
	why := *got.NoPlan
	if text := "(the budget but for 4 contexts of 100B each)"; !strings.HasSuffix(why.Why, text) {
		t.Errorf("got %q, want %q", why.Why, text)
	}
	if why.Why = ""; why != want {
		t.Errorf("got %+v, want %+v", why, want)
	}
	// Those that cannot be reached leave less; what is told is of what is left.
	got, budgets = ask(Request{Budget: all, Contexts: contexts, Reserved: 64}, 2)
	if budgets[0] != 2*arena-64 || got.NoPlan.Need != all || got.NoPlan.Budget != all-64 {
		t.Errorf("got %v, %+v", budgets, got.NoPlan)
	}
	// A job is alone with the controller, whatever other processes there are.
	got, _ = ask(Request{Budget: arena + 2*context - 1, Contexts: contexts}, 1)
	if text := ", with 2 contexts of 100B each, and the budget is "; !strings.Contains(got.NeverFit[0], text) ||
		!strings.Contains(got.NeverFit[0], "it needs "+(arena+2*context).String()) {
		t.Errorf("got %q, want %q", got.NeverFit[0], text)
	}
	if got, _ = ask(Request{Budget: arena + 2*context, Contexts: contexts}, 1); len(got.NeverFit) > 0 ||
		got.NoPlan.Need == 0 {
		t.Errorf("got %+v", got)
	}
}

// Where planning ends at its limit, a job needs what the best plans do that were found.
func TestPlannerLimit(t *testing.T) {
	over := &scheduler.OverBudgetError{Need: 30, Budget: 20}
	for err, need := range map[error]graph.Bytes{
		over: 530, &scheduler.WorkLimitError{Work: 1, Last: over}: 530, &scheduler.WorkLimitError{Work: 1}: 0,
		&scheduler.WorkLimitError{Work: 1, Last: &scheduler.OverBudgetError{Need: 10, Budget: 9}}: 521} {
		w := planJob{Worker: &Worker{}, message: &Request{Budget: 520,
			Contexts: wire.Contexts{Processes: 5, Each: 100}}}
		if got := w.explainNoPlan(err); got.Need != need || need > 0 && got.Budget != 520 {
			t.Errorf("after %q got %+v, want that it needs %s", err, got, need)
		}
	}
}

// What a job needs is above the budget that it does not fit, also where that is less than a page of the device, or a
// few bytes more than some.
func TestPlannerPages(t *testing.T) {
	g := graphtest.New(rand.New(rand.NewPCG(1, 1)), graphtest.Options{Ops: 3})
	for budget, page := range map[graph.Bytes]graph.Bytes{20 * graph.KiB: graph.MiB, 968: 512, 1000: 512} {
		p := newTestWorker(Settings{Policy: "none-live", MemorySharing: wire.Slices, Page: page})
		got := p.Plan(t.Context(), &Request{Budget: budget, Contexts: wire.Contexts{Processes: 1, Each: 200},
			Jobs: []Candidate{{Spec: wire.Spec{Name: "a", Iterations: 1}, Graph: g, Epoch: 1}}})
		if got.NoPlan == nil || got.NoPlan.Need <= got.NoPlan.Budget {
			t.Errorf("budget %s, pages of %s: got %+v, want that it needs more than the budget", budget, page,
				got.NoPlan)
		}
	}
}
