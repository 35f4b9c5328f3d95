package draft

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/models/passes"
	"tensile/scheduler"
)

// tiledVGG returns vgg16, whose parameters above 16 MiB are in tiles.
func tiledVGG(t *testing.T, o autodiff.Optimizer) *graph.Graph {
	t.Helper()
	g, err := models.Build("vgg16", models.Config{Optimizer: o})
	if err != nil {
		t.Fatal(err)
	}
	g, _, err = passes.Tiles(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// placesOf returns where in an order the ops stand whose names begin so.
func placesOf(g *graph.Graph, order []graph.OpID, prefix string) []int {
	var places []int
	for i, op := range order {
		if strings.HasPrefix(g.Ops[op].Name, prefix) {
			places = append(places, i)
		}
	}
	return places
}

// Updates of the parts of a parameter stand one after the other, each behind the gradient of its part, after the last
// op that reads the parameter.
func TestEarlyUpdatesOfParts(t *testing.T) {
	g := tiledVGG(t, nil)
	order := EarlyUpdates(g)
	gradients, updates := placesOf(g, order, "fc6.dw.tile"), placesOf(g, order, "fc6.w.update.tile")
	if len(updates) != 26 || len(gradients) != 26 {
		t.Fatalf("%d gradients and %d updates of parts", len(gradients), len(updates))
	}
	last := placesOf(g, order, "fc6.dx")[0]
	for i := range updates {
		if gradients[i] != last+1+2*i || updates[i] != gradients[i]+1 {
			t.Errorf("part %d: gradient at %d, update at %d, and fc6.dx at %d", i, gradients[i], updates[i], last)
		}
	}
}

// sessionOf returns a session of a graph whose ops take a millisecond each, with a link that takes as long for so many
// bytes.
func sessionOf(g *graph.Graph, bytes graph.Bytes) *Session {
	link := cost.Link{Rate: cost.BytesPerSecond(bytes) * 1000}
	return opened(scheduler.Request{Jobs: []scheduler.Job{{Name: "job", Graph: g,
		Latency: slices.Repeat([]time.Duration{time.Millisecond}, len(g.Ops))}}, Out: link, In: link, Align: 4})
}

// between returns the numbers of ops between the updates of fc6's parts.
func between(t *testing.T, g *graph.Graph, order []graph.OpID) []int {
	t.Helper()
	updates := placesOf(g, order, "fc6.w.update.tile")
	if len(updates) != 26 {
		t.Fatalf("%d updates", len(updates))
	}
	var gaps []int
	for i, at := range updates[1:] {
		gaps = append(gaps, at-updates[i]-2) // its gradient and itself are not between
	}
	return gaps
}

func sum(counts []int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// Updates of parts are as far apart as the link needs for what Adam keeps of a part; where there is not the time for
// that they share what there is, and updates that keep nothing follow at once.
func TestUpdatesKeepApart(t *testing.T) {
	g := tiledVGG(t, nil)
	state := 2 * 160 * 25088 * graph.ElementBytes
	// an op between two, and more where gradients and small updates have moved
	fast := between(t, g, sessionOf(g, state).EarlyUpdates(0))
	if sum(fast) < 25 || sum(fast) > 60 || slices.Max(fast) > 4 {
		t.Errorf("%v ops between parts, want about one", fast)
	}
	order := sessionOf(g, state/100).EarlyUpdates(0)
	slow, at := between(t, g, order), placesOf(g, order, "fc6.w.update.tile25")[0]
	if slices.Max(slow) > 6 || at < len(order)-12 {
		t.Errorf("with a slow link %v ops between parts, the last of which is op %d of %d", slow, at, len(order))
	}
	none := tiledVGG(t, autodiff.SGD{})
	if gaps := between(t, none, sessionOf(none, state).EarlyUpdates(0)); slices.Max(gaps) > 0 {
		t.Errorf("%v ops between parts that keep nothing", gaps)
	}
}

// Parts whose gradients need more than they are themselves to be made later stay where they are made.
func TestUpdatesThatStay(t *testing.T) {
	b := graph.NewBuilder("wide")
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{1 << 15, 256})
	w := b.Persistent("w", graph.Parameter, graph.Shape{256, 256}, graph.Init{Kind: graph.InitOne})
	h := b.Op("h", graph.Linear, graph.Attrs{}, x, w)[0]
	y := b.Op("y", graph.Linear, graph.Attrs{}, b.Op("gelu", graph.GELU, graph.Attrs{}, h)[0], b.Persistent("v",
		graph.Parameter, graph.Shape{256, 256}, graph.Init{Kind: graph.InitOne}))[0]
	loss := b.Op("loss", graph.MeanSquare, graph.Attrs{}, y, x)[0]
	b.Output(loss)
	grads, err := autodiff.Backward(b, loss)
	if err == nil {
		err = autodiff.Optimize(b, grads, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	g, o, err := passes.Tiles(g, func(s graph.Shape) int { return s[0] / 4 })
	if err != nil || o.Changed != 2 {
		t.Fatalf("%d parameters in tiles, %v", o.Changed, err)
	}
	order := sessionOf(g, 1000).EarlyUpdates(0)
	updates, next := placesOf(g, order, "v.update.tile"), placesOf(g, order, "y.dx")
	for i, at := range updates {
		if at != next[0]+1+i {
			t.Errorf("updates of v at %v, with y.dx at %v", updates, next)
		}
	}
}
