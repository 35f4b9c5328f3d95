package bench

import (
	"context"
	"fmt"
	"slices"

	"tensile/device"
	"tensile/graph/autodiff"
	"tensile/graph/text"
	"tensile/models/passes"
	"tensile/models/task"
)

// RealOptions say what MeasureReal measures.
type RealOptions struct {
	Scenes     []PaperScene // Shares are the budgets of policies that want one
	Settings   task.Settings
	Iterations int // of each job in a run
	Rounds     int // runs of each policy, each beside one without a plan

	Progress func(done float64) // as in PaperOptions
}

// RealSmall is what tensile bench real measures: networks that a processor trains in seconds.
func RealSmall() (RealOptions, error) {
	momentum, err := autodiff.ParseOptimizer("momentum", nil)
	return RealOptions{Settings: task.Settings{Optimizer: momentum, Image: 32}, Iterations: 4, Rounds: 3,
		Scenes: []PaperScene{
			{Models: []string{"lenet"}, Copies: 2, Batch: 32, Shares: []int{85}},
			{Models: []string{"resnet:1,1,1,1"}, Copies: 1, Batch: 8, Shares: []int{80}}}}, err
}

// RealQuick is a small part of what Real measures.
func RealQuick() (RealOptions, error) {
	o, err := RealSmall()
	o.Rounds, o.Scenes = 1, o.Scenes[:1]
	return o, err
}

// MeasureReal has every policy train small networks on a device with data, each run just after one without a plan, and
// compares times, and losses and weights to the bit.
func MeasureReal(ctx context.Context, d device.Device, o RealOptions) (*Tables, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &measuring{ctx: ctx, cancel: cancel, slots: make(chan struct{}, 1), progress: o.Progress}
	var results []*result
	for _, scene := range o.Scenes {
		var stages []*stage
		for range o.Rounds {
			stages = append(stages, &stage{ctx: ctx, device: func() device.Device { return d }, settings: o.Settings,
				iterations: o.Iterations, whole: true, scene: scene, names: scene.order(0)})
		}
		results = append(results, newResult(scene, scene.real(), stages))
	}
	if err := m.all(results); err != nil {
		return nil, err
	}
	t := Table{Name: "real", Title: "every policy on " + d.Name() + ", measured", Rows: []Row{},
		Notes: []string{fmt.Sprintf("%s of %d iterations, each just after one without a plan. eor is the middle of "+
			"what the rounds have, each of which compares the shortest iterations, as what else the machine does "+
			"only ever adds to them; eor_low and eor_high are the least and the greatest. Where they are further "+
			"apart than %.2g, a remark says that eor means nothing. first_iteration_eor is the mean over rounds. "+
			"bits says whether all losses and weights are those without a plan.", text.Count(o.Rounds, "run"),
			o.Iterations, meaningless)}}
	for _, r := range results {
		for k := range r.contenders {
			row := r.row(k, wholeRun, known{})
			row.Passes = passes.None
			row.spread(r.outcomes[k])
			t.Rows = append(t.Rows, row)
		}
	}
	return &Tables{[]Table{t}}, nil
}

// meaningless is how far apart the EORs of equal runs may be for their middle to mean anything.
const meaningless = 0.1

// spread puts the median of the rounds in place of their mean, says how far apart they are, and what that means.
func (row *Row) spread(rounds []*outcome) {
	if row.EOR == nil {
		return
	}
	var eors []float64
	for _, o := range rounds {
		eors = append(eors, o.phases[wholeRun].eor)
	}
	slices.Sort(eors)
	low, middle, high := eors[0], eors[len(eors)/2], eors[len(eors)-1]
	cbr, cbrAll := *row.MSRLive/middle, *row.MSRAll/middle
	row.EOR, row.CBR, row.CBRAll, row.EORLow, row.EORHigh = &middle, &cbr, &cbrAll, &low, &high
	if high-low > meaningless {
		row.Remark = "eor means nothing: the machine is busy"
	}
}
