package policies_test

import (
	"errors"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/policies"
)

// TestMixed plans unlike jobs within little more than they need at least. By size their parts would be too small for
// the one of which less can leave: it gets what the other one does not need.
func TestMixed(t *testing.T) {
	for _, policy := range []string{"autoswap", "superneurons", "dtr", "dtr-eq", "vdnn-dyn"} {
		r := jobtest.Network(t, "vgg16-cifar", 64)
		r.Jobs = append(r.Jobs, jobtest.Network(t, "resnet:1,1,1,1", 8).Jobs...)
		r.Jobs[1].Name = "resnet"
		r.Policy = policy
		sets, _ := r.WorkingSets()
		r.Budget = sets
		_, err := policies.Schedule(r, nil)
		over, ok := errors.AsType[*scheduler.OverBudgetError](err)
		if !ok {
			t.Fatalf("%s within the working sets, %v: %v", policy, sets, err)
		}
		r.Budget = over.Need + over.Need/50
		result, err := policies.Schedule(r, nil)
		if err != nil {
			t.Errorf("%s: %v", policy, err)
			continue
		}
		if result.Arena > r.Budget {
			t.Errorf("%s: %v within %v", policy, result.Arena, r.Budget)
		}
		if r.Budget = over.Need - r.Align; strings.HasPrefix(policy, "dtr") {
			continue // which looks for the least to a 16th
		}
		if _, err := policies.Schedule(r, nil); !errors.Is(err, scheduler.ErrNoPlan) {
			t.Errorf("%s: a plan within less than %v: %v", policy, over.Need, err)
		}
	}
}

// TestLeastScratch plans within less than steps need with their first variants: what chooses variants gets there, what
// takes the first refuses. Where the sum of the jobs' sets fits, a part that is too small for one is raised.
func TestLeastScratch(t *testing.T) {
	const scratch = graph.GiB
	r := jobtest.Network(t, "vgg16-cifar", 64)
	r.Jobs = append(r.Jobs, jobtest.Network(t, "resnet:1,1,1,1", 8).Jobs...)
	r.Jobs[1].Name = "resnet"
	j := &r.Jobs[0]
	j.Variants = make([][]scheduler.Variant, len(j.Graph.Ops))
	for op := range j.Variants {
		j.Variants[op] = []scheduler.Variant{{Name: "a"}}
		if j.Graph.Ops[op].Kind == graph.Conv2D {
			j.Variants[op] = []scheduler.Variant{{Name: "b", Scratch: scratch}, {Name: "a", Latency: 2 * j.Latency[op]}}
		}
	}
	least, _ := r.WorkingSets()
	first, _ := r.FirstWorkingSets()
	if first < least+scratch/2 {
		t.Fatalf("working sets of %v, of %v with the first variants", least, first)
	}
	for _, test := range []struct {
		policies string
		budget   graph.Bytes
		fits     bool
	}{
		{"superneurons vdnn-dyn vdnn-all", scratch, true},
		{"lru capuchin tensile tensile-paper autoswap dtr", scratch, false},
		{"lru capuchin tensile autoswap", first + first/8, true},
	} {
		for _, policy := range strings.Fields(test.policies) {
			r.Policy, r.Budget = policy, test.budget
			result, err := policies.Schedule(r, nil)
			if (err == nil) != test.fits || err != nil && !errors.Is(err, scheduler.ErrNoPlan) ||
				result.Arena > test.budget {
				t.Errorf("%s: %v within %v, %v", policy, result.Arena, test.budget, err)
			}
		}
	}
}
