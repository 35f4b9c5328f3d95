package bench

import (
	"context"
	"fmt"
	"strings"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/rivals/superneurons"
)

// snCurve is what a plan has on the device of data: bytes and tensors per step, without parameters, optimizer states
// and the gradients of parameters, which the paper does not count.
type snCurve struct {
	steps   []plan.Step
	bytes   []graph.Bytes
	tensors []int
	peak    graph.Bytes
	at      int
}

func snData(g *graph.Graph, p *plan.Plan) snCurve {
	weights := make([]bool, len(g.Storages))
	for i := range g.Ops {
		if op := &g.Ops[i]; op.Phase == graph.Optimize {
			for _, s := range g.Touches(op.ID) {
				weights[s] = true
			}
		}
	}
	c := snCurve{steps: p.Steps, bytes: make([]graph.Bytes, len(p.Steps)), tensors: make([]int, len(p.Steps))}
	for _, r := range plan.StaysOf(g, p).Residencies {
		if s := &g.Storages[r.Storage]; !weights[s.ID] && !s.Role.Persistent() {
			for _, span := range r.Spans {
				for k := span.From; k < span.To; k++ {
					c.bytes[k] += s.Bytes
					c.tensors[k]++
				}
			}
		}
	}
	for k, b := range c.bytes {
		if b > c.peak {
			c.peak, c.at = b, k
		}
	}
	return c
}

// name is the op of the peak.

func (c *snCurve) name(g *graph.Graph) string { return g.Ops[c.steps[c.at].Op].Name }

// The parts of the method one after the other, as figure 10 shows them. Recomputation is on though everything fits.
var (
	snLive      = superneurons.Options{NoOffload: true, NoRecompute: true, NoWorkspace: true}
	snOffload   = superneurons.Options{NoCache: true, NoRecompute: true, NoWorkspace: true}
	snRecompute = superneurons.Options{NoCache: true, Always: true, NoWorkspace: true}
)

// snStudy applies the method to a job with enough memory that nothing has to leave, and links that take no time: what
// is on the device then follows from the method alone.
func snStudy(j *scheduler.Job, o superneurons.Options) (superneurons.Study, error) {
	return superneurons.Of(j, cost.Link{}, cost.Link{}, snAlign, 1<<50, o)
}

// snTight is snStudy with as few bytes as the method gets by with: what is prefetched waits until there is room. Table
// 1 has the least peaks that the strategies reach.
func snTight(j *scheduler.Job, o superneurons.Options) (superneurons.Study, error) {
	return superneurons.Of(j, cost.Link{}, cost.Link{}, snAlign, 0, o)
}

// snCounted is what table 1 says of a network.
type snCounted struct {
	name  string
	batch int
	paper scheduler.Job // its layers as the paper has them
	extra [3]int        // by strategy: executed again
	peak  [3]float64    // MB
}

// snStrategies are those of table 1, in its order.
var snStrategies = [3]superneurons.Strategy{superneurons.SpeedCentric, superneurons.MemoryCentric,
	superneurons.CostAware}

func snTable1Says() []snCounted {
	image := [3]int{3, 224, 224}
	return []snCounted{
		{"alexnet", 200, layered("alexnet", paperAlexNet(), [3]int{3, 227, 227}, 200), [3]int{14, 23, 17},
			[3]float64{993.018, 886.23, 886.23}},
		{"resnet50", 32, layered("resnet50", paperResNet([4]int{3, 4, 6, 3}), image, 32), [3]int{84, 118, 85},
			[3]float64{455.125, 401, 401}},
		{"resnet101", 32, layered("resnet101", paperResNet([4]int{3, 4, 23, 3}), image, 32), [3]int{169, 237, 170},
			[3]float64{455.125, 401, 401}},
	}
}

// snGraphs are the forms of a network that tables compare: the paper's layers, our graph, and that with ops in place.
var snGraphs = []string{"paper", "ours", "ours in place"}

// snForm is a network in one of the forms.
func snForm(form, name string, batch int, paper scheduler.Job) (scheduler.Job, error) {
	switch form {
	case "paper":
		return paper, nil
	case "ours":
		return snJob(name, batch, nil, snDevice("k40"))
	}
	return snJob(name, batch, snInPlace, snDevice("k40"))
}

// snTable1 counts what recomputation executes again, on the paper's layers and on our graphs.
func snTable1(_ context.Context, _ bool) (Table, error) {
	t := Table{Name: "superneurons-table-1",
		Title: "SuperNeurons, table 1: layers executed again, and the peak of data, by strategy of recomputation",
		Notes: []string{
			"AlexNet at batch 200, ResNets at batch 32; sizes in MiB, which the paper writes MB, of data without " +
				"parameters; copies take no time.",
			"The paper's layers: AlexNet by its footnote 3, ResNets by He et al. without a normalisation in " +
				"projections. A layer that reads two layers, or that two read, is never made again: only so do the " +
				"counts come out.",
			"Peaks are the least that the method gets by with. Those of ResNets are of the projection behind the " +
				"first stage: four tensors of 98 MiB that the layer and its sum work on, and what is kept or " +
				"prefetched for the next one. The paper gives no batch; 401 is four of these at batch 32 and " +
				"9 MiB, as much as the largest convolution's parameters.",
			"Our graphs have the batch on the device as well, 117.9 MiB of AlexNet's.",
			"differs names the layers that the speed-centric strategy executes again on one side alone: nothing in " +
				"our backward passes reads the output of a block's last normalisation (bn3), nor with ops in place " +
				"that of a convolution before its ReLU, which has its place.",
		},
		Free: &Free{Columns: []string{"network", "layers", "speed_extra", "paper_speed_extra", "speed_peak_mib",
			"paper_speed_peak_mib", "memory_extra", "paper_memory_extra", "memory_peak_mib", "paper_memory_peak_mib",
			"aware_extra", "paper_aware_extra", "aware_peak_mib", "paper_aware_peak_mib", "differs"}}}
	for _, n := range snTable1Says() {
		var paper map[graph.Kind]snRepeats
		for _, form := range snGraphs {
			j, err := snForm(form, n.name, n.batch, n.paper)
			if err != nil {
				return t, err
			}
			cells := []any{n.name, form}
			var repeats map[graph.Kind]snRepeats
			for k, strategy := range snStrategies {
				o := snRecompute
				o.Strategy = strategy
				study, err := snTight(&j, o)
				if err != nil {
					return t, err
				}
				c := snData(j.Graph, study.Plan)
				cells = append(cells, study.Extra, n.extra[k], snMiB(c.peak), n.peak[k])
				if strategy == superneurons.SpeedCentric {
					repeats = snRepeated(j.Graph, study.Plan)
				}
			}
			if form == "paper" {
				paper = repeats
			}
			t.Free.Add(append(cells, snDiffers(paper, repeats))...)
		}
	}
	return t, nil
}

// snRepeats are the layers of a kind: how many are executed again, and the first that is not.
type snRepeats struct {
	count int
	first string
}

// snRepeated counts the layers that a plan executes again, by kind.
func snRepeated(g *graph.Graph, p *plan.Plan) map[graph.Kind]snRepeats {
	times := make([]int, len(g.Ops))
	for _, s := range p.Steps {
		times[s.Op]++
	}
	all := make(map[graph.Kind]snRepeats)
	for i := range g.Ops {
		op := &g.Ops[i]
		if op.Phase != graph.Forward {
			continue
		}
		kind := op.Kind
		if kind == graph.MaxPoolIndices {
			kind = graph.MaxPool
		}
		r := all[kind]
		if times[i] > 1 {
			r.count++
		} else if r.first == "" {
			r.first = op.Name
		}
		all[kind] = r
	}
	return all
}

// snDiffers says of which kinds ours executes fewer or more layers again than the paper's does, and the first layer of
// the kind that is not executed again.
func snDiffers(paper, ours map[graph.Kind]snRepeats) string {
	var words []string
	for _, kind := range []graph.Kind{graph.ReLU, graph.BatchNorm, graph.LRN, graph.MaxPool, graph.AvgPool,
		graph.Dropout} {
		if less := paper[kind].count - ours[kind].count; less > 0 {
			words = append(words, fmt.Sprintf("%d %s less: not %s", less, kind, ours[kind].first))
		} else if less < 0 {
			words = append(words, fmt.Sprintf("%d %s more", -less, kind))
		}
	}
	return strings.Join(words, "; ")
}

// snFigure10 is AlexNet at batch 200 with one part of the method after the other.
func snFigure10(_ context.Context, _ bool) (Table, error) {
	t := Table{Name: "superneurons-figure-10",
		Title: "SuperNeurons, figure 10: AlexNet at batch 200, one part after the other: peaks of data",
		Notes: []string{"Sizes in MiB, which the paper writes MB, without parameters; copies take no time, and " +
			"nothing has to leave because memory is short. tensors are those at the peak. superneurons-steps has the " +
			"curves.",
			"Our graphs have the batch on the device as well, 117.9 MiB."},
		Free: &Free{Columns: []string{"layers", "parts", "peak_mib", "paper_mib", "tensors", "paper_tensors", "at"}}}
	says := snTable1Says()[0]
	for _, form := range snGraphs {
		j, err := snForm(form, says.name, says.batch, says.paper)
		if err != nil {
			return t, err
		}
		all, tensors := snNaive(j.Graph)
		t.Free.Add(form, "none", snMiB(all), 2189.437, tensors, 36, nil)
		for _, part := range []struct {
			name    string
			options superneurons.Options
			paper   float64
			tensors any
		}{{"liveness", snLive, 1489.355, 17}, {"and offloading", snOffload, 1132.155, 9},
			{"and recomputation", snRecompute, 886.385, nil}} {
			study, err := snStudy(&j, part.options)
			if err != nil {
				return t, err
			}
			c := snData(j.Graph, study.Plan)
			t.Free.Add(form, part.name, snMiB(c.peak), part.paper, c.tensors[c.at], part.tensors, c.name(j.Graph))
		}
	}
	return t, nil
}

// snNaive is what a graph's data takes if nothing is freed: the paper's baseline.
func snNaive(g *graph.Graph) (sum graph.Bytes, tensors int) {
	weights := make([]bool, len(g.Storages))
	for i := range g.Ops {
		if op := &g.Ops[i]; op.Phase == graph.Optimize {
			for _, s := range g.Touches(op.ID) {
				weights[s] = true
			}
		}
	}
	const small = 4096 // the loss, labels and the like are no data tensors
	for i := range g.Storages {
		if s := &g.Storages[i]; !weights[i] && !s.Role.Persistent() && s.Bytes > small {
			sum += s.Bytes
			tensors++
		}
	}
	return sum, tensors
}

// snSteps has the curves of figure 10: what is on the device in each forward and backward step of the paper's layers.
func snSteps(_ context.Context, _ bool) (Table, error) {
	t := Table{Name: "superneurons-steps",
		Title: "SuperNeurons, figure 10: AlexNet at batch 200, data on the device in each step",
		Notes: []string{"The paper's 23 layers, forward and backward; of a step with recomputation, the most from " +
			"the one before on. Sizes in MiB."},
		Free: &Free{Columns: []string{"step", "layer", "live_mib", "live_tensors", "offload_mib", "offload_tensors",
			"recompute_mib", "recompute_tensors"}}}
	j := layered("alexnet", paperAlexNet(), [3]int{3, 227, 227}, 200)
	lines := make([][]any, len(j.Graph.Ops))
	for i := range lines {
		lines[i] = []any{i + 1, j.Graph.Ops[i].Name}
	}
	for _, o := range []superneurons.Options{snLive, snOffload, snRecompute} {
		study, err := snStudy(&j, o)
		if err != nil {
			return t, err
		}
		c := snData(j.Graph, study.Plan)
		ran := make([]bool, len(lines))
		var most graph.Bytes
		tensors := 0
		for k, s := range c.steps {
			most, tensors = max(most, c.bytes[k]), max(tensors, c.tensors[k])
			if !ran[s.Op] {
				ran[s.Op] = true
				lines[s.Op] = append(lines[s.Op], snMiB(most), tensors)
				most, tensors = 0, 0
			}
		}
	}
	for _, line := range lines {
		t.Free.Add(line...)
	}
	return t, nil
}
