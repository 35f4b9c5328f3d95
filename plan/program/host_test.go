package program_test

import (
	"cmp"
	"slices"
	"testing"

	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/program"
)

// What lives on the host has the same slot in both graphs, whatever its number, and is paired by name.
func TestMatch(t *testing.T) {
	job, other := devicetest.Tiny(), devicetest.Rewritten()
	slots, kept := program.HostSlots(job)
	others, otherKept := program.HostSlots(other)
	if kept != otherKept || kept <= 0 {
		t.Errorf("%d bytes are kept, and %d of the graph with one op more", kept, otherKept)
	}
	ids, err := program.Match(job, other)
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for _, s := range other.Storages {
		lives := s.Role.FromHost() || s.Role == graph.Output
		switch id := ids[s.ID]; {
		case !lives && (id != -1 || others[s.ID] != -1):
			t.Errorf("%s, which is made within an iteration, is storage %d of the job, at byte %d", s.Name, id,
				others[s.ID])
		case !lives:
		case id < 0 || job.Storages[id].Name != s.Name || slots[id] != others[s.ID] || others[s.ID]+s.Bytes > kept:
			t.Errorf("%s at byte %d is storage %d of the job", s.Name, others[s.ID], id)
		case id != s.ID:
			moved++
		}
	}
	if moved < 3 {
		t.Errorf("%d storages have another number: too few to show much", moved)
	}
	if ids, err := program.Match(job, job); err != nil || ids[0] != 0 {
		t.Errorf("of the job's own graph: %v, error %v", ids, err)
	}
}

// Graphs that keep other storages on the host are refused, in one line that says which.
func TestMatchRefuses(t *testing.T) {
	job := devicetest.Tiny()
	find := func(g *graph.Graph, name string) *graph.Storage {
		return &g.Storages[slices.IndexFunc(g.Storages, func(s graph.Storage) bool { return s.Name == name })]
	}
	for _, test := range []struct {
		name  string
		spoil func(g *graph.Graph)
		want  string
	}{
		{"missing", func(g *graph.Graph) { find(g, "w2").Role = graph.Activation },
			`graph "rewritten" has no parameter w2, the job's has one`},
		{"the last one missing", func(g *graph.Graph) { find(g, "x").Role = graph.Activation },
			`graph "rewritten" has no input x, the job's has one`},
		{"one more", func(g *graph.Graph) { find(g, "dz").Role = graph.Output },
			`graph "rewritten" has output dz, the job's has none`},
		{"one more at the end", func(g *graph.Graph) { find(g, "z").Role = graph.State },
			`graph "rewritten" has state z, the job's has none`},
		{"another name", func(g *graph.Graph) { find(g, "b1").Name = "c1" },
			`graph "rewritten" has no parameter b1, the job's has one`},
		{"the same name twice", func(g *graph.Graph) { find(g, "w2").Name = "w1" },
			`graph "rewritten" has two storages w1 on the host, whose names must differ`},
		{"another role", func(g *graph.Graph) { find(g, "w2").Role = graph.State },
			`w2 is state of 60 bytes of float32 in graph "rewritten" ` +
				`and parameter of 60 bytes of float32 in the job's`},
		{"another size", func(g *graph.Graph) { find(g, "w2").Bytes = 64 },
			`w2 is parameter of 64 bytes of float32 in graph "rewritten" and parameter of 60 bytes of float32 in ` +
				`the job's`},
		{"another type", func(g *graph.Graph) {
			for i := range g.Tensors {
				if g.Tensors[i].Storage == find(g, "labels").ID {
					g.Tensors[i].DType = graph.Int64
				}
			}
		}, `labels is input of 16 bytes of int64 with "" in graph "rewritten" and input of 16 bytes of float32 with ` +
			`"" in the job's`},
		{"another meaning", func(g *graph.Graph) { find(g, "labels").Holds = graph.Labels },
			`labels is input of 16 bytes of float32 with "labels" in graph "rewritten" and input of 16 bytes of ` +
				`float32 with "" in the job's`},
	} {
		g := devicetest.Rewritten()
		test.spoil(g)
		if _, err := program.Match(job, g); err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v, want %s", test.name, err, test.want)
		}
	}
}

// Under any plan the host region has a slot of whole pages for what lives on the host and for what the plan copies out,
// none for anything else, and no byte more: no two slots overlap, and a program copies to nowhere else.
func TestSlotsOf(t *testing.T) {
	spilled := 0
	for seed := range uint64(300) {
		s := random(t, seed, graphtest.Options{})
		slots, size := program.SlotsOf(s.g, s.p)
		home, kept := program.HostSlots(s.g)
		want := kept
		type span struct{ from, to graph.Bytes }
		var spans []span
		for id, at := range slots {
			storage := s.g.Storages[id]
			out := slices.ContainsFunc(s.p.Moves, func(m plan.Move) bool {
				return m.Kind == plan.Out && m.Storage == graph.StorageID(id)
			})
			switch {
			case home[id] >= 0 && at != home[id]:
				t.Fatalf("%s: %s lives at %d and has slot %d", s.name, storage.Name, home[id], at)
			case home[id] < 0 && out:
				spilled++
				want += program.HostBytes(storage.Bytes)
			case home[id] < 0 && at != -1:
				t.Fatalf("%s: %s never comes to the host and has slot %d", s.name, storage.Name, at)
			}
			if at >= 0 {
				spans = append(spans, span{at, at + storage.Bytes})
			}
		}
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		for i := range spans {
			if i > 0 && spans[i].from < spans[i-1].to || spans[i].to > size {
				t.Fatalf("%s: slots %v of %d bytes", s.name, spans, size)
			}
		}
		if size != want || s.c.Host != size {
			t.Fatalf("%s: a host region of %d, %d in the program, want %d", s.name, size, s.c.Host, want)
		}
	}
	if spilled < 300 {
		t.Errorf("only %d storages were copied out that do not live on the host", spilled)
	}
}
