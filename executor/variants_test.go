package executor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/sim"
	"tensile/executor"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies"
)

// inVariants plans a task with the variants that choose names for each op, of so many, and swaps what costs no time.
func (k *task) inVariants(d device.Device, choose func(variants int) int) proof.Proven {
	k.t.Helper()
	facts, err := cost.Device("a6000")
	if err != nil {
		k.t.Fatal(err)
	}
	on := planner.Describe(d, planner.Roofline(facts))
	profile, err := on.Profile(k.g)
	if err != nil {
		k.t.Fatal(err)
	}
	chosen := make([]int, len(k.g.Ops))
	for op := range chosen {
		chosen[op] = choose(len(profile.Variants[op]))
	}
	table := policies.Table{{Name: "chosen", Policy: func(s *draft.Session) (scheduler.Result, error) {
		d := s.Draft(0, draft.FirstSteps(draft.GraphOrder(k.g)), draft.Style{Variants: chosen})
		draft.SwapFreely([]*draft.Draft{d}, 0)
		return s.Finish([]*draft.Draft{d}, 0)
	}}}
	r := on.Request(profile.Job(k.name, 1, k.g))
	r.Policy, r.Out, r.In = "chosen", facts.Out, facts.In
	result, err := table.Schedule(r, scheduler.Watch{})
	if err != nil {
		k.t.Fatal(err)
	}
	scheduled := result.Jobs[0]
	for slot, step := range scheduled.Plan.Steps {
		if v := profile.Variants[step.Op][chosen[step.Op]]; step.Variant != v.Name || step.Scratch != v.Scratch ||
			scheduled.Plan.Made[slot] != v.Takes(profile.Latency[step.Op]) {
			k.t.Fatalf("step %d is %+v in %v, variant %+v of %v", slot, step, scheduled.Plan.Made[slot], v,
				profile.Latency[step.Op])
		}
	}
	proven, err := compile.Prove(k.g, scheduled.Plan, scheduled.Layout, compile.Options{Poison: true,
		Durations: program.Durations{Out: facts.Out, In: facts.In, Host: facts.Host}})
	if err != nil {
		k.t.Fatal(err)
	}
	return proven
}

// choices are ways to choose a variant of so many: the second, the third, the fourth, and any.
func choices() map[string]func(variants int) int {
	r := rand.New(rand.NewPCG(1, 1))
	all := map[string]func(int) int{"any": r.IntN}
	for at := range 3 {
		all[fmt.Sprint(at+1)] = func(variants int) int { return min(at+1, variants-1) }
	}
	return all
}

// A network whose convolutions are planned in every variant trains to the bits of the first, with swaps.
func TestVariantsTrainToTheSameBits(t *testing.T) {
	const iterations = 2
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	k := newTask(t, "vgg", "vgg11-cifar", models.Config{Batch: 1, Image: 32, Classes: 10}, 3)
	want := k.vanilla(d, iterations)
	seen := map[string]int{}
	all := choices()
	if !long.On() {
		all = map[string]func(int) int{"any": all["any"]}
	}
	for name, choose := range all {
		again, h := k.again(), newHost(d, nil)
		p := again.inVariants(d, choose)
		for _, step := range p.Program().Plan.Steps {
			seen[step.Variant]++
		}
		if moves := len(p.Program().Plan.Moves); moves < 10 {
			t.Errorf("variants %s: the plan has %d moves", name, moves)
		}
		h.Submit(again.spec(iterations), p)
		if err := run(context.Background(), h.Host); err != nil {
			t.Fatal(err)
		}
		again.take(h.ended[k.name])
		again.same(want)
		closeHost(t, h.Host)
	}
	if t.Log(seen); long.On() && min(seen["columns-256k"], seen["columns-64k"]) < 4 {
		t.Errorf("variants that were executed: %v", seen)
	}
}

// On a simulated device a network takes what the variants of its plan say, to the nanosecond.
func TestVariantsInVirtualTime(t *testing.T) {
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	k := newTask(t, "vgg", "vgg11-cifar", models.Config{Batch: 64, Image: 32, Classes: 10}, 3)
	for name, choose := range choices() {
		d := sim.New(facts, sim.Options{})
		h := newHost(d, func(r *executor.Report) { k.reports = append(k.reports, r) })
		p := k.inVariants(d, choose)
		h.Submit(k.spec(3), p)
		if err := run(context.Background(), h.Host); err != nil {
			t.Fatal(err)
		}
		closeHost(t, h.Host)
		last := k.reports[len(k.reports)-1]
		for slot, took := range last.Steps {
			if made := p.Program().Plan.Made[slot]; took != made {
				t.Fatalf("variants %s: step %d, %+v, takes %v and was planned with %v", name, slot,
					p.Program().Plan.Steps[slot], took, made)
			}
		}
	}
}
