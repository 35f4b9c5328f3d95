package pool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkMethods packs by every method. No layout that a search includes is lower than that of the search, buffers stay
// as they are, and twice the same is packed twice the same: also at other slots, and with other numbers for the groups.
func checkMethods(t *testing.T, name string, buffers []Buffer) {
	t.Helper()
	before, again := cloneBuffers(buffers), cloneBuffers(buffers)
	for i := range again {
		b := &again[i]
		for k := range b.Spans {
			b.Spans[k].From, b.Spans[k].To = b.Spans[k].From-1000, b.Spans[k].To-1000
		}
		b.Alias *= -7
	}
	layouts := make(map[string]Layout)
	for _, method := range Methods() {
		name := name + ", " + method
		if method == "online" && slices.ContainsFunc(buffers, func(b Buffer) bool { return b.Fixed }) {
			if _, err := Pack(buffers, Options{Method: method}); err == nil || !strings.Contains(err.Error(),
				"is fixed at") {
				t.Fatalf("%s: error %v", name, err)
			}
			continue
		}
		l := packedBy(t, name, buffers, Options{Method: method})
		if diff := cmp.Diff(before, buffers); diff != "" {
			t.Fatalf("%s: the buffers are no longer the same (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(l, packedBy(t, name, again, Options{Method: method})); diff != "" {
			t.Fatalf("%s: packed again (-want +got):\n%s", name, diff)
		}
		if l.Optimal != (l.Height == l.LowerBound) {
			t.Fatalf("%s: height %d, lower bound %d, optimal %v", name, l.Height, l.LowerBound, l.Optimal)
		}
		layouts[method] = l
	}
	for _, method := range []string{"greedy", "smartpool", "first-fit", "size", "area", "lifetime"} {
		if layouts["search"].Height > layouts[method].Height {
			t.Fatalf("%s: height %d by a search, %d by %s", name, layouts["search"].Height, layouts[method].Height,
				method)
		}
	}
}

func TestMethods(t *testing.T) {
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 38))
		checkMethods(t, fmt.Sprintf("seed %d", seed), pinned(rng, randomBuffers(rng)))
	}
}

// So many buffers that a search looks at the substantial ones first, and that they are placed by the index.
func TestMethodsWithMany(t *testing.T) {
	for seed, buffers := range [][]Buffer{trainingStep(fewItems+1, 1), scattered(fewItems+100, 2),
		trainingStep(flatItems+1, 3)} {
		rng := rand.New(rand.NewPCG(uint64(seed), 39))
		checkMethods(t, fmt.Sprintf("%d buffers", len(buffers)), pinned(rng, buffers))
	}
}

// Every method is right where little or nothing is to be packed.
func TestMethodsWithLittle(t *testing.T) {
	one, wrapped := []Span{{3, 5}}, []Span{{0, 1}, {1, 2}, {8, 9}}
	for i, buffers := range [][]Buffer{
		nil,
		{},
		{{Size: 0, Spans: one}},
		{{Size: 0, Spans: one, Align: 64, Alias: 1}, {Size: 0, Spans: wrapped, Alias: 1}},
		{{Size: 0, Spans: one}, {Size: 5, Spans: one}, {Size: 0, Spans: wrapped, Align: 4}},
		{{Size: 0, Spans: one, Alias: -1}, {Size: 5, Spans: wrapped, Alias: -1}, {Size: 3, Spans: one}},
		{{Size: 7, Spans: wrapped, Align: 1 << 40}},
		{{Size: 7, Spans: one}, {Size: 7, Spans: one}, {Size: 7, Spans: one}},
		{{Size: 7, Spans: one, Align: 8}, {Size: 7, Spans: one, Align: 8}, {Size: 7, Spans: one, Align: 8}},
		{{Size: 7, Spans: one, Alias: 1}, {Size: 7, Spans: one, Alias: 1}, {Size: 9, Spans: wrapped, Alias: 1}},
	} {
		checkMethods(t, fmt.Sprintf("case %d", i), buffers)
	}
	for i, buffers := range [][]Buffer{
		{{Size: 0, Spans: one, Fixed: true, At: 1000}},
		{{Size: 0, Spans: one, Fixed: true, At: 2}, {Size: 9, Spans: one, Fixed: true}},
		{{Size: 0, Spans: one, Fixed: true, At: 8, Alias: 2}, {Size: 0, Spans: one, Alias: 2}},
		{{Size: 0, Spans: one, Alias: 2}, {Size: 0, Spans: one, Fixed: true, At: 8, Alias: 2}, {Size: 9, Spans: one}},
		{{Size: 7, Spans: one, Fixed: true, At: 1 << 50}, {Size: 1, Spans: one}},
		{{Size: 4, Spans: one, Fixed: true, At: 8, Alias: 2}, {Size: 6, Spans: one, Alias: 2}, {Size: 9, Spans: one}},
		{{Size: 4, Spans: one, Fixed: true}, {Size: 4, Spans: wrapped, Fixed: true}, {Size: 4, Spans: wrapped}},
		{{Size: 5, Spans: one, Fixed: true, Align: 8}, {Size: 5, Spans: one, Fixed: true, At: 8, Align: 8}},
	} {
		checkMethods(t, fmt.Sprintf("fixed, case %d", i), buffers)
	}
}
