package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"

	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models/task"
)

// PaperOptions say what MeasurePaper measures.
type PaperOptions struct {
	Facts      cost.Facts // of the simulated device
	Data       string     // folder with the figures of TENSILE's authors
	Batch      int        // of the tables I to IV
	Scenes     []PaperScene
	Settings   task.Settings // of the networks; the batch is the scene's
	Repeats    int           // of each scene: with other noise and mispredictions, and mixed jobs in another order
	Iterations int           // of each job at least; all train until the last has done them

	// Others measure what other papers have, beside the scenes; their tables come last.
	Others []func(context.Context) ([]Table, error)

	// Progress is told which share of the work is done, by one goroutine at a time; nil: nobody is.
	Progress func(done float64)
}

// PaperScene is jobs that train together, on which policies are compared.
type PaperScene struct {
	Models []string // one, or several for mixed jobs
	Copies int      // of one
	Batch  int
	Few    bool  // only some policies: those of the figures 6 and 7
	Shares []int // budgets for all policies, in percent of live memory, beside the others
}

// model is what rows call the scene's networks.
func (s *PaperScene) model() string {
	if len(s.Models) > 1 {
		return "mixed"
	}
	return s.Models[0]
}

func (s *PaperScene) jobs() int { return len(s.Models) * s.Copies }

// order is the order in which the scene's jobs come: a random one for mixed jobs.
func (s *PaperScene) order(repeat int) []string {
	if len(s.Models) == 1 {
		return []string{fmt.Sprintf("%s:%d", s.Models[0], s.Copies)}
	}
	names := slices.Clone(s.Models)
	rand.New(rand.NewPCG(uint64(repeat), 18)).Shuffle(len(names), func(i, j int) {
		names[i], names[j] = names[j], names[i]
	})
	return names
}

// paperModels are the networks that the TENSILE paper trains.
var paperModels = []string{"vgg16", "inceptionv3", "inceptionv4", "resnet50", "densenet121"}

// PaperWhole is what tensile bench paper measures, and PaperQuick a part of that. Times are a virtual A6000's,
// with the paper's batch; the seeds are fixed.
func PaperWhole() PaperOptions {
	o := paperOptions(3, 20)
	o.Others = otherPapers(false)
	for _, m := range paperModels {
		o.Scenes = append(o.Scenes, PaperScene{Models: []string{m}, Copies: 1, Batch: 16,
			Shares: []int{90, 80, 70, 60, 50, 40, 30, 20}})
		for _, batch := range []int{4, 8, 32, 64} {
			o.Scenes = append(o.Scenes, PaperScene{Models: []string{m}, Copies: 1, Batch: batch, Few: true})
		}
		for copies := range 4 {
			o.Scenes = append(o.Scenes, PaperScene{Models: []string{m}, Copies: copies + 1, Batch: 2, Few: true})
			if copies > 0 {
				o.Scenes = append(o.Scenes, PaperScene{Models: []string{m}, Copies: copies + 1, Batch: 16,
					Few: m != "resnet50"})
			}
		}
	}
	o.Scenes = append(o.Scenes, PaperScene{Models: paperModels, Copies: 1, Batch: 16})
	return o
}

// PaperQuick is a part of PaperWhole that takes a minute or two.
func PaperQuick() PaperOptions {
	o := paperOptions(1, 14)
	o.Others = otherPapers(true)
	one := func(batch int, few bool, shares []int, model string) {
		o.Scenes = append(o.Scenes, PaperScene{Models: []string{model}, Copies: 1, Batch: batch, Few: few,
			Shares: shares})
	}
	one(16, false, []int{80, 60, 40}, "resnet50")
	one(16, false, nil, "vgg16")
	one(16, false, nil, "densenet121")
	one(4, true, nil, "resnet50")
	o.Scenes = append(o.Scenes, PaperScene{Models: []string{"resnet50"}, Copies: 2, Batch: 16},
		PaperScene{Models: paperModels, Copies: 1, Batch: 16})
	return o
}

// otherPapers are the measurements of other papers.
func otherPapers(quick bool) []func(context.Context) ([]Table, error) {
	return []func(context.Context) ([]Table, error){
		func(ctx context.Context) ([]Table, error) { return superNeurons(ctx, quick) },
		func(ctx context.Context) ([]Table, error) { return autoSwap(ctx, quick) }}
}

func paperOptions(repeats, iterations int) PaperOptions {
	facts, err := cost.Device("a6000")
	if err != nil {
		panic(fmt.Sprintf("bench: %v", err)) // it is listed
	}
	adam, err := autodiff.ParseOptimizer("adam", nil)
	if err != nil {
		panic(fmt.Sprintf("bench: %v", err)) // it is known
	}
	return PaperOptions{Facts: facts, Batch: 16, Settings: task.Settings{Optimizer: adam}, Repeats: repeats,
		Iterations: iterations}
}

// MeasurePaper compares all policies on the jobs of the TENSILE paper.
func MeasurePaper(ctx context.Context, o PaperOptions) (*PaperReport, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &measuring{ctx: ctx, cancel: cancel, slots: make(chan struct{}, runtime.GOMAXPROCS(0)), progress: o.Progress}
	var results []*result
	for _, scene := range o.Scenes {
		var stages []*stage
		for repeat := range o.Repeats {
			stages = append(stages, o.stage(ctx, scene, repeat))
		}
		results = append(results, newResult(scene, scene.contenders(), stages))
	}
	others := make([][]Table, len(o.Others))
	for i, measure := range o.Others {
		m.work += otherWork
		m.do(otherWork, func() (err error) {
			others[i], err = measure(ctx)
			return err
		}, nil)
	}
	if err := m.all(results); err != nil {
		return nil, err
	}
	r, err := newPaperReport(&o, results)
	if err == nil {
		r.Tables.Tables = slices.Concat(append([][]Table{r.Tables.Tables}, others...)...)
	}
	return r, err
}

// otherWork is what the tables of another paper count for, in jobs that a policy plans for and trains.
const otherWork = 20
