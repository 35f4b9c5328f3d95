package vdnn_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/models/nettest"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/jobtest"
	"tensile/scheduler/policies"

	_ "tensile/scheduler/rivals"
)

// network returns a request for a small network whose convolutions have three variants: without scratch, four times as
// fast with some, and twice as fast with a quarter of that.
func network(t *testing.T, name string, scratch graph.Bytes) scheduler.Request {
	t.Helper()
	g, err := nettest.BuildBatch(name, 16)
	if err != nil {
		t.Fatal(err)
	}
	r := jobtest.Of(t, g)
	j := &r.Jobs[0]
	j.Variants = make([][]scheduler.Variant, len(g.Ops))
	for op := range g.Ops {
		all := []scheduler.Variant{{Name: "m"}}
		if convolves(g.Ops[op].Kind) {
			j.Latency[op] *= 4
			all = append(all, scheduler.Variant{Name: "p", Scratch: scratch, Latency: j.Latency[op] / 4},
				scheduler.Variant{Name: "q", Scratch: scratch / 4, Latency: j.Latency[op] / 2})
		}
		j.Variants[op] = all
	}
	return r
}

// trialOf returns what a plan offloads, none, conv or all, and the variants of its convolutions, each once.
func trialOf(g *graph.Graph, p *plan.Plan) string {
	offload := "none"
	for _, m := range p.Moves {
		if m.Kind == plan.Out && g.Storages[m.Storage].Role == graph.Activation {
			if offload == "none" {
				offload = "conv"
			}
			if g.Ops[p.Steps[m.After+1].Op].Kind != graph.Conv2D {
				offload = "all"
			}
		}
	}
	var variants []string
	for _, s := range p.Steps {
		if convolves(g.Ops[s.Op].Kind) {
			variants = append(variants, s.Variant)
		}
	}
	slices.Sort(variants)
	return fmt.Sprint(offload, slices.Compact(variants))
}

func convolves(k graph.Kind) bool {
	return k == graph.Conv2D || k == graph.Conv2DDW || k == graph.Conv2DDX
}

// vdnn-dyn goes through its trials in their order as the budget shrinks, and refuses what the least of them does not
// fit.
func TestTrials(t *testing.T) {
	for _, c := range []struct {
		scratch graph.Bytes
		want    string
	}{
		{512 << 10, "none[p] conv[p] all[p] all slower"},
		{2 << 20, "none[p] conv[p] all[p] conv slower all slower"},
	} {
		r := network(t, "vgg16-cifar", c.scratch)
		r.Policy, r.Lowest = "vdnn-all", true
		least := schedule(t, r)
		r.Policy, r.Lowest = "none-all", false
		all := schedule(t, r).Arena + 2*c.scratch
		r.Policy = "vdnn-dyn"
		var trials []string
		for budget := all; ; budget -= all / 128 {
			r.Budget = budget
			result, err := policies.Schedule(r, nil)
			if over, ok := errors.AsType[*scheduler.OverBudgetError](err); ok {
				if over.Need != least.Arena {
					t.Errorf("%v, but %v are enough", err, least.Arena)
				}
				break
			} else if err != nil {
				t.Fatal(err)
			}
			trial := trialOf(r.Jobs[0].Graph, result.Jobs[0].Plan)
			if offload, _, _ := strings.Cut(trial, "["); !strings.HasSuffix(trial, "[p]") {
				trial = offload + " slower" // as slow as it takes, at last all[m]
			}
			if !slices.Contains(trials, trial) {
				trials = append(trials, trial)
			} else if trials[len(trials)-1] != trial {
				t.Errorf("within %v again %s, after %s", budget, trial, trials[len(trials)-1])
			}
		}
		if got := strings.Join(trials, " "); got != c.want {
			t.Errorf("with a scratch of %v: %s, want %s", c.scratch, got, c.want)
		}
	}
}

// The static policies take the fastest variants, and those of least scratch where the plans do not fit or are to be as
// low as they get.
func TestStaticVariants(t *testing.T) {
	r := network(t, "vgg16-cifar", 2<<20)
	for _, policy := range []string{"vdnn-conv", "vdnn-all"} {
		r.Policy, r.Budget, r.Lowest = policy, 0, false
		fast := schedule(t, r)
		r.Lowest = true
		low := schedule(t, r)
		r.Budget, r.Lowest = fast.Arena-1, false
		within := schedule(t, r)
		which := policy[len("vdnn-"):]
		for want, result := range map[string]scheduler.Result{"[p]": fast, "[m]": low} {
			if got := trialOf(r.Jobs[0].Graph, result.Jobs[0].Plan); got != which+want {
				t.Errorf("%s: %s, want %s", policy, got, which+want)
			}
		}
		if got := trialOf(r.Jobs[0].Graph, within.Jobs[0].Plan); got != which+"[m]" {
			t.Errorf("%s: %s within a byte less than the fastest need", policy, got)
		}
		r.Budget = low.Arena - 1
		_, err := policies.Schedule(r, nil)
		if over, ok := errors.AsType[*scheduler.OverBudgetError](err); !ok || over.Need != low.Arena {
			t.Errorf("%s within a byte less than the least scratch needs, %v: %v", policy, low.Arena, err)
		}
	}
}

func schedule(t *testing.T, r scheduler.Request) scheduler.Result {
	t.Helper()
	result, err := policies.Schedule(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// What TENSILE's authors ran as vDNN saves what their table III says (.1733 and .1381), if CUDA and its libraries took
// 2,000 MB of both peaks; the paper's vDNN saves more than twice as much.
func TestTensileTable(t *testing.T) {
	const mb, beside = 1e6, 2000.0
	for name, want := range map[string]float64{"resnet50": .1733, "densenet121": .1381} {
		r := jobtest.Network(t, name, 16)
		peak := map[string]float64{}
		for _, policy := range []string{"none-all", "vdnn-tensile", "vdnn-conv"} {
			r.Policy = policy
			peak[policy] = float64(schedule(t, r).SlotPeak)/mb + beside
		}
		saves := func(policy string) float64 { return 1 - peak[policy]/peak["none-all"] }
		if ours := saves("vdnn-tensile"); ours < want-.01 || ours > want+.01 || saves("vdnn-conv") < 2.5*ours {
			t.Errorf("%s: saves %.4f, vDNN %.4f; want %.4f", name, ours, saves("vdnn-conv"), want)
		}
	}
}
