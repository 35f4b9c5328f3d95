package bench

import (
	"context"
	"fmt"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/peak"
	"tensile/scheduler"
	"tensile/scheduler/rivals/superneurons"
)

// snAll is what a network needs if nothing is freed within an iteration, snFreed if everything is after its last use,
// and snLeast the least that the method gets by with; all in slots.
func snAll(j *scheduler.Job) (graph.Bytes, error) {
	all, _ := peak.Vanilla(j.Graph)
	return all, nil
}

func snFreed(j *scheduler.Job) (graph.Bytes, error) {
	_, live := peak.Vanilla(j.Graph)
	return live, nil
}

func snLeast(j *scheduler.Job) (graph.Bytes, error) {
	study, err := superneurons.Of(j, cost.Link{}, cost.Link{}, snAlign, 0, superneurons.Options{})
	return study.Capacity, err
}

// snLargest finds the largest size of a network that a method can have within a memory. What it needs grows evenly from
// some size on, so that a line through two sizes says where to look; the sizes next to the limit are tried.
func snLargest(ctx context.Context, low, high int, fits func(int) (graph.Bytes, error)) (int, error) {
	known := map[int]graph.Bytes{}
	need := func(n int) (graph.Bytes, error) {
		if b, ok := known[n]; ok {
			return b, nil
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		b, err := fits(n)
		known[n] = b
		return b, err
	}
	a, err := need(low)
	if err != nil || a > snMemory {
		return 0, err
	}
	b, err := need(high)
	if err != nil {
		return 0, err
	}
	for b <= snMemory { // go on until one does not fit
		next := high + max(1, int(float64(snMemory-b)/max(1, float64(b-a))*float64(high-low)))
		low, a, high = high, b, next
		if b, err = need(high); err != nil {
			return 0, err
		}
	}
	for high-low > 1 { // low fits, high does not
		guess := low + int(float64(snMemory-a)/float64(b-a)*float64(high-low))
		guess = min(max(guess, low+1), high-1)
		c, err := need(guess)
		if err != nil {
			return 0, err
		}
		if c <= snMemory {
			low, a = guess, c
		} else {
			high, b = guess, c
		}
	}
	return low, nil
}

// snTable4 is how deep a ResNet can be.
func snTable4(ctx context.Context, _ bool) (Table, error) {
	t := Table{Name: "superneurons-table-4",
		Title: "SuperNeurons, table 4: the deepest ResNet of batch 16 within 12 GB",
		Notes: []string{"depth = 3(n1+n2+n3+n4)+2 with n1 = 6, n2 = 32, n4 = 6, by slot peaks, with momentum, " +
			"without workspaces.",
			"Parameters and their momentum stay on the device and are most of it at the limit."},
		Free: &Free{Columns: []string{"method", "n3", "depth", "paper_depth"}}}
	for _, m := range []struct {
		name  string
		need  func(*scheduler.Job) (graph.Bytes, error)
		paper any
	}{
		{"none-all", snAll, nil},
		{"none-live", snFreed, nil},
		{"superneurons", snLeast, 1920},
	} {
		n3, err := snLargest(ctx, 1, 20, func(n int) (graph.Bytes, error) {
			j, err := snJob(fmt.Sprintf("resnet:6,32,%d,6", n), 16, nil, snDevice("k40"))
			if err != nil {
				return 0, err
			}
			return m.need(&j)
		})
		if err != nil {
			return t, err
		}
		depth := any(3*(6+32+n3+6) + 2)
		if n3 == 0 {
			depth = nil
		}
		t.Free.Add(m.name, n3, depth, m.paper)
	}
	for _, said := range []struct {
		name  string
		depth int
	}{{"Caffe", 148}, {"MXNet", 480}, {"Torch", 152}, {"TensorFlow", 592}} {
		t.Free.Add(said.name, nil, nil, said.depth)
	}
	return t, nil
}

// snWidest are the paper's largest batches (table 5): of SuperNeurons, and the best of the other frameworks.
var snWidest = map[string][2]int{"alexnet": {1792, 1408}, "vgg16": {224, 80}, "inceptionv4": {240, 64},
	"resnet50": {384, 128}, "resnet101": {256, 80}, "resnet152": {176, 48}}

// snTable5 is how wide networks can be.
func snTable5(ctx context.Context, quick bool) (Table, error) {
	t := Table{Name: "superneurons-table-5", Title: "SuperNeurons, table 5: the largest batch within 12 GB",
		Notes: []string{"By slot peaks, with momentum, without workspaces. The paper's have workspaces and steps of " +
			"16 or more; TensorFlow is the best of its four frameworks throughout."},
		Free: &Free{Columns: []string{"network", "none_all", "none_live", "superneurons", "superneurons_in_place",
			"paper_superneurons", "paper_tensorflow"}}}
	for _, name := range snNetworks(quick) {
		line := []any{name}
		for _, m := range []struct {
			passes []string
			need   func(*scheduler.Job) (graph.Bytes, error)
		}{
			{nil, snAll}, {nil, snFreed}, {nil, snLeast}, {snInPlace, snLeast},
		} {
			batch, err := snLargest(ctx, 8, 64, func(batch int) (graph.Bytes, error) {
				j, err := snJob(name, batch, m.passes, snDevice("k40"))
				if err != nil {
					return 0, err
				}
				return m.need(&j)
			})
			if err != nil {
				return t, err
			}
			line = append(line, batch)
		}
		t.Free.Add(append(line, snWidest[name][0], snWidest[name][1])...)
	}
	return t, nil
}

// snFigure13 is the memory of the widest networks without any method.
func snFigure13(_ context.Context, quick bool) (Table, error) {
	t := Table{Name: "superneurons-figure-13",
		Title: "SuperNeurons, figure 13: what networks of the paper's largest batches need if nothing is freed",
		Notes: []string{"Storages of all ops, parameters and optimizer states too, without workspaces. The paper " +
			"gives no figures, but that SuperNeurons' largest is 19.8 times Caffe's. superneurons_gib is the least " +
			"that the method gets by with."},
		Free: &Free{Columns: []string{"network", "batch", "none_all_gib", "none_live_gib", "superneurons_gib"}}}
	for _, name := range snNetworks(quick) {
		batch := snWidest[name][0]
		j, err := snJob(name, batch, nil, snDevice("k40"))
		if err != nil {
			return t, err
		}
		all, live := peak.Vanilla(j.Graph)
		whole, err := snLeast(&j)
		if err != nil {
			return t, err
		}
		t.Free.Add(name, batch, snGiB(all), snGiB(live), snGiB(whole))
	}
	return t, nil
}
