package paper

import (
	"fmt"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	_ "tensile/internal/long" // the flag -long
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// TestStoppingRule has three hundred small storages that could be swapped at a peak that a large one makes: the
// paper's loop gives up soon after its hundredth iteration, since each brings too little; policy tensile goes on.
func TestStoppingRule(t *testing.T) {
	const small, steps = 300, 900
	g := &graph.Graph{Name: "small"}
	add := func(name string, role graph.Role, bytes graph.Bytes) graph.TensorID {
		id := graph.StorageID(len(g.Storages))
		g.Storages = append(g.Storages, graph.Storage{ID: id, Name: name, Role: role, Bytes: bytes})
		g.Tensors = append(g.Tensors, graph.Tensor{ID: graph.TensorID(id), Name: name, Storage: id,
			Shape: graph.Shape{int(bytes / graph.ElementBytes)}})
		return graph.TensorID(id)
	}
	large := add("large", graph.Parameter, 1<<30)
	for i := range steps {
		op := graph.Op{ID: graph.OpID(i), Name: fmt.Sprint(i), Kind: graph.ReLU, Forward: graph.NoOp,
			Inputs: []graph.TensorID{large}}
		switch {
		case i < small:
			op.Outputs = []graph.TensorID{add(fmt.Sprint("s", i), graph.Activation, 4096)}
		case i >= steps-small:
			op.Inputs = append(op.Inputs, graph.TensorID(steps-i)) // the last made is needed first
			op.Outputs = []graph.TensorID{add(fmt.Sprint("g", i), graph.Activation, 4)}
		default:
			op.Outputs = []graph.TensorID{add(fmt.Sprint("m", i), graph.Activation, 4)}
		}
		g.Ops = append(g.Ops, op)
	}
	j := scheduler.Job{Name: "small", Graph: g, Latency: make([]time.Duration, steps)}
	for i := range j.Latency {
		j.Latency[i] = time.Millisecond
	}
	swaps := map[string]int{}
	for _, policy := range []string{"tensile-paper", "tensile"} {
		jobs := drafts(t, j)
		if policy == "tensile-paper" {
			swapAll(jobs)
		} else {
			jobs[0].SwapSmall()
			draft.SwapFreely(jobs, 0)
		}
		swaps[policy] = jobs[0].Swaps()
	}
	if n := swaps["tensile-paper"]; n <= firstCheck || n > firstCheck+recent+2 ||
		swaps["tensile"] < small-1 { // one is in use at the peak
		t.Errorf("swaps: %v; the rule stops after iteration %d", swaps, firstCheck)
	}
}

// drafts begins a draft of a job on a link of 1 GB/s.
func drafts(t *testing.T, j scheduler.Job) (jobs []*draft.Draft) {
	t.Helper()
	r := scheduler.Request{Policy: "tensile-paper", Jobs: []scheduler.Job{j}, Out: cost.Link{Rate: 1e9},
		In:    cost.Link{Rate: 1e9},
		Align: 4}
	_, err := draft.Open(r, scheduler.Watch{}, func(s *draft.Session) (scheduler.Result, error) {
		jobs = s.Drafts(draft.GraphOrder, style)
		return scheduler.Result{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}
