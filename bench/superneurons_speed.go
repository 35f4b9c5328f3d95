package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/peak"
	"tensile/plan/compile"
	"tensile/plan/pool"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/rivals/superneurons"
)

// snTimed is an iteration of a plan in the steady state, and what it copies.
type snTimed struct {
	time   time.Duration
	copied graph.Bytes
	arena  graph.Bytes
}

// snTime packs a study's plan and predicts its time.
func snTime(j *scheduler.Job, f cost.Facts, s superneurons.Study) (snTimed, error) {
	s.Plan.Graph = j.Graph.Digest()
	layout, err := compile.PlaceBy(j.Graph, s.Plan, snAlign, pool.Options{Method: "size"})
	if err != nil {
		return snTimed{}, err
	}
	timing := program.Time(compile.Compile(j.Graph, s.Plan, layout, compile.Options{}),
		program.Durations{Steps: s.Plan.Made, Out: f.Out, In: f.In})
	return snTimed{timing.Iteration, s.Plan.Swapped(j.Graph), layout.Arena}, nil
}

// snFigure11 compares speeds with and without the tensor cache.
func snFigure11(ctx context.Context, quick bool) (Table, error) {
	t := Table{Name: "superneurons-figure-11",
		Title: "SuperNeurons, figure 11: speed with and without the tensor cache on a K40",
		Notes: []string{"Virtual time; batch 128 for AlexNet, 32 for the others, no recomputation. The paper gives " +
			"no figures, but that a third of the speed is lost at most, and least on AlexNet and VGG16. Here copies " +
			"take nothing from ops beside them, and the link has 12 GB/s, not the 8 that the paper names."},
		Free: &Free{Columns: []string{"network", "batch", "with_images_per_s", "without_images_per_s", "loss_percent",
			"with_copied_mib", "without_copied_mib"}}}
	f := snDevice("k40")
	for _, name := range snNetworks(quick) {
		if ctx.Err() != nil {
			return t, context.Cause(ctx)
		}
		batch := 32
		if name == "alexnet" {
			batch = 128
		}
		j, err := snJob(name, batch, nil, f)
		if err != nil {
			return t, err
		}
		var timed [2]snTimed
		for i, o := range []superneurons.Options{{NoRecompute: true}, {NoRecompute: true, NoCache: true}} {
			study, err := superneurons.Of(&j, f.Out, f.In, snAlign, snMemory, o)
			if err != nil {
				return t, fmt.Errorf("%s at batch %d: %w", name, batch, err)
			}
			if timed[i], err = snTime(&j, f, study); err != nil {
				return t, err
			}
		}
		t.Free.Add(name, batch, snSpeed(batch, timed[0].time), snSpeed(batch, timed[1].time),
			snRound(100*(1-float64(timed[0].time)/float64(timed[1].time))), snMiB(timed[0].copied),
			snMiB(timed[1].copied))
	}
	return t, nil
}

// snSpeed is images per second.
func snSpeed(batch int, took time.Duration) float64 { return snRound(float64(batch) / took.Seconds()) }

func snRound(v float64) float64 { return float64(int64(v*10+0.5)) / 10 }

// snTable3 has what AlexNet copies with and without the tensor cache, over batches.
func snTable3(_ context.Context, _ bool) (Table, error) {
	t := Table{Name: "superneurons-table-3",
		Title: "SuperNeurons, table 3: what AlexNet copies in an iteration with and without the tensor cache on a K40",
		Notes: []string{"GiB both ways, inputs left out; 12 GB, no recomputation. Ours are the outputs of the five " +
			"convolutions, out and in, 4.95 MiB per image; the paper's grow by 1.9 times as much, so it copies more " +
			"than section 3.3.1 says."},
		Free: &Free{Columns: []string{"batch", "without_cache_gib", "paper_without_cache_gb", "cache_gib",
			"paper_cache_gb"}}}
	f := snDevice("k40")
	paper := []float64{2.56, 3.72, 4.88, 6.03, 8.35, 9.50}
	for i, batch := range []int{256, 384, 512, 640, 896, 1024, 1408, 1792} {
		j, err := snJob("alexnet", batch, nil, f)
		if err != nil {
			return t, err
		}
		line := []any{batch}
		for _, o := range []superneurons.Options{{NoRecompute: true, NoCache: true}, {NoRecompute: true}} {
			study, err := superneurons.Of(&j, f.Out, f.In, snAlign, snMemory, o)
			var copied any
			if err == nil {
				copied = snGiB(study.Plan.Swapped(j.Graph))
			}
			var said any
			if i < len(paper) {
				said = 0.0
				if o.NoCache {
					said = paper[i]
				} else if batch == 1024 {
					said = 0.88
				}
			}
			line = append(line, copied, said)
		}
		t.Free.Add(line...)
	}
	return t, nil
}

// snFigure12 is what workspaces the convolutions of AlexNet get within 3 GB.
func snFigure12(_ context.Context, _ bool) (Table, error) {
	t := Table{Name: "superneurons-figure-12",
		Title: "SuperNeurons, figure 12: workspaces of AlexNet's convolutions within 3 GB",
		Notes: []string{"By the variants of convolutions that the simulated device has. The paper gives no figures, " +
			"but that batch 300 gets less than batch 100, and that workspaces take its speed from 203 to 240 images " +
			"per second.",
			"That does not come out: conv2, conv4 and conv5 have two groups and conv1 has a stride, for which the " +
				"device has nothing faster than without a workspace; conv3 wants one of 6 MiB, for which there is " +
				"room at both batches. With one group conv2 would want 275 MiB at batch 100 and 600 at batch 300, " +
				"for which there is room as well."},
		Free: &Free{Columns: []string{"batch", "op", "variant", "workspace_mib", "fastest_mib", "free_mib"}}}
	f := snDevice("k40")
	for _, batch := range []int{100, 300} {
		j, err := snJob("alexnet", batch, nil, f)
		if err != nil {
			return t, err
		}
		study, err := superneurons.Of(&j, f.Out, f.In, snAlign, 3e9, superneurons.Options{})
		if err != nil {
			return t, err
		}
		used := peak.Of(j.Graph, study.Plan).Slots
		ran := make([]bool, len(j.Graph.Ops))
		for k, s := range study.Plan.Steps {
			op := &j.Graph.Ops[s.Op]
			if ran[s.Op] || !strings.HasPrefix(string(op.Kind), string(graph.Conv2D)) {
				continue
			}
			ran[s.Op] = true
			fastest := j.Variant(s.Op, 0)
			for i := range j.Variants[s.Op] {
				if v := j.Variant(s.Op, i); v.Latency < fastest.Latency {
					fastest = v
				}
			}
			t.Free.Add(batch, op.Name, s.Variant, snMiB(s.Scratch), snMiB(fastest.Scratch), snMiB(3e9-used[k]))
		}
	}
	return t, nil
}

// snTitan is the TITAN Xp of figure 14: the GTX 1080 Ti with 3840 cores instead of 3584, at the same 1582 MHz, and
// 547.7 GB/s, as told at its announcement (gamerevolution.com, news 13974; by hwsw.hu, news 57095, it has 1531 MHz).
func snTitan() cost.Facts {
	f := snDevice("gtx1080ti")
	f.Name, f.Compute, f.Bandwidth, f.Memory = "titanxp", 12.15e12, 547.7e9, snMemory
	return f
}

// snFigure14 is the speed over batches.
func snFigure14(ctx context.Context, quick bool) (Table, error) {
	t := Table{Name: "superneurons-figure-14", Title: "SuperNeurons, figure 14: speed over the batch",
		Notes: []string{"Virtual time on a TITAN Xp by its data sheet, with 12 GB, which slot peaks keep to; " +
			"none_live is a framework that frees what it does not need again. Null where that, or the method, does " +
			"not fit."},
		Free: &Free{Columns: []string{"network", "batch", "none_live_images_per_s", "superneurons_images_per_s",
			"copied_mib", "executed_again_ms"}}}
	f := snTitan()
	for _, name := range snNetworks(quick) {
		most := snWidest[name][0]
		for _, batch := range []int{most / 8, most / 4, most / 2, most * 3 / 4, most} {
			if ctx.Err() != nil {
				return t, context.Cause(ctx)
			}
			if quick && batch != most/4 && batch != most {
				continue
			}
			j, err := snJob(name, batch, nil, f)
			if err != nil {
				return t, err
			}
			line := []any{name, batch}
			for _, o := range []superneurons.Options{snLive, {}} {
				study, err := superneurons.Of(&j, f.Out, f.In, snAlign, snMemory, o)
				if err != nil {
					line = append(line, nil)
					if o == (superneurons.Options{}) {
						line = append(line, nil, nil)
					}
					continue
				}
				timed, err := snTime(&j, f, study)
				if err != nil {
					return t, err
				}
				line = append(line, snSpeed(batch, timed.time))
				if o == (superneurons.Options{}) {
					line = append(line, snMiB(timed.copied), snRound(study.Plan.Recomputation().Seconds()*1e3))
				}
			}
			t.Free.Add(line...)
		}
	}
	return t, nil
}
