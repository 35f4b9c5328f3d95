package external

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/policies"
)

// player carries lines out as a script does: it runs the ops in their order, lets storages go where the recorded
// iteration did, unless an op that is run again is to find them, and follows the boundaries.
type player struct {
	t       *testing.T
	g       *graph.Graph
	p       *Plan
	device  map[graph.StorageID]int // versions
	host    map[graph.StorageID]int
	needed  map[graph.StorageID]graph.OpID // the last boundary that has to do with it
	ran     graph.OpID                     // ops
	used    int                            // actions
	visited []map[graph.StorageID]bool     // what was on the device, per step
}

func newPlayer(t *testing.T, g *graph.Graph, p *Plan) *player {
	x := &player{t: t, g: g, p: p, device: make(map[graph.StorageID]int), host: make(map[graph.StorageID]int),
		needed: make(map[graph.StorageID]graph.OpID)}
	for _, s := range g.Storages {
		if s.Role.Persistent() {
			x.host[s.ID] = 0 // it comes from Home
		}
	}
	for _, s := range p.Entry {
		x.device[s] = 0
	}
	for _, b := range p.Boundaries {
		for _, a := range b.Do {
			if a.Do != Again {
				x.needed[*a.Storage] = b.Before
				continue
			}
			for _, s := range g.Touches(*a.Op) {
				x.needed[s] = b.Before
			}
		}
	}
	return x
}

// iteration plays one iteration.
func (x *player) iteration() {
	last := x.g.LastTouches()
	boundaries := x.p.Boundaries
	for x.ran = 0; ; x.ran++ {
		for s, storage := range x.g.Storages {
			id := graph.StorageID(s)
			if gone := max(last[s]+1, storage.Until); !storage.Role.Persistent() && gone == x.ran &&
				(x.needed[id] < gone || x.needed[id] == 0) {
				delete(x.device, id)
			}
		}
		if len(boundaries) > 0 && boundaries[0].Before == x.ran {
			for _, a := range boundaries[0].Do {
				x.do(a)
			}
			boundaries = boundaries[1:]
		}
		if int(x.ran) == len(x.g.Ops) {
			break
		}
		x.run(x.ran, nil)
	}
	if len(boundaries) > 0 {
		x.t.Fatalf("boundaries %v are beyond the last op", boundaries)
	}
	versions := x.g.LastVersions()
	for _, where := range [2]map[graph.StorageID]int{x.device, x.host} { // the last versions become version 0
		for s, v := range where {
			switch {
			case !x.g.Storages[s].Role.Persistent() || v != versions[s]:
				delete(where, s)
			default:
				where[s] = 0
			}
		}
	}
	for s, storage := range x.g.Storages {
		_, there := x.device[graph.StorageID(s)]
		_, away := x.host[graph.StorageID(s)]
		if storage.Role.Persistent() && !there && !away {
			x.t.Fatalf("%s is lost", storage.Name)
		}
	}
}

func (x *player) run(op graph.OpID, outputs []int) {
	for _, r := range x.g.Reads(op) {
		if v, ok := x.device[r.Storage]; !ok || v != r.Number {
			x.t.Fatalf("%s before op %d reads version %d of %s, there is %d, %v", x.g.Ops[op].Name, x.ran, r.Number,
				x.g.Storages[r.Storage].Name, v, ok)
		}
	}
	for i, w := range x.g.Writes(op) {
		if len(outputs) == 0 || slices.Contains(outputs, i) {
			x.device[w.Storage] = w.Number
		}
	}
	there := make(map[graph.StorageID]bool)
	for s := range x.device {
		there[s] = true
	}
	x.visited = append(x.visited, there)
}

func (x *player) do(a Action) {
	x.used++
	if a.Do == Again {
		x.run(*a.Op, a.Outputs)
		return
	}
	s := *a.Storage
	version, there := x.device[s]
	switch a.Do {
	case Out:
		if !there {
			x.t.Fatalf("%s before op %d is copied out and not there", x.g.Storages[s].Name, x.ran)
		}
		x.host[s] = version
	case Drop:
		if !there {
			x.t.Fatalf("%s before op %d is dropped and not there", x.g.Storages[s].Name, x.ran)
		}
		delete(x.device, s)
	case In:
		if _, ok := x.host[s]; !ok || there {
			x.t.Fatalf("%s before op %d is copied in: %v on the host, %v on the device", x.g.Storages[s].Name, x.ran,
				ok, there)
		}
		x.device[s] = x.host[s]
	}
}

// residents lists per slot of a plan what is on the device.
func residents(g *graph.Graph, p *plan.Plan) []map[graph.StorageID]bool {
	all := make([]map[graph.StorageID]bool, len(p.Steps))
	for slot := range all {
		all[slot] = make(map[graph.StorageID]bool)
	}
	for _, r := range plan.StaysOf(g, p).Residencies {
		for _, span := range r.Spans {
			for slot := span.From; slot < span.To; slot++ {
				all[slot][r.Storage] = true
			}
		}
	}
	return all
}

func plays(t *testing.T, g *graph.Graph, p *plan.Plan) (used int) {
	t.Helper()
	c := Compile(g, p)
	c.Number, c.Graph = 1, 1
	line, err := Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(line[:len(line)-1], Sidecar)
	if err != nil {
		t.Fatal(err)
	}
	read := m.(Plan)
	x := newPlayer(t, g, &read)
	for range 3 {
		x.visited = nil
		x.iteration()
		want := residents(g, p)
		for slot := range want {
			for s := range want[slot] {
				if !x.visited[slot][s] {
					t.Fatalf("slot %d: %s is not there\n%s", slot, g.Storages[s].Name, p.Text(g))
				}
			}
			for s := range x.visited[slot] {
				if !want[slot][s] {
					t.Fatalf("slot %d: %s is still there\n%s", slot, g.Storages[s].Name, p.Text(g))
				}
			}
		}
	}
	return x.used
}

// TestCompile plays plans of random scripts: every op finds its inputs, and in each
// slot just what the plan says is on the device.
func TestCompile(t *testing.T) {
	used := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 21))
		g := graphtest.Script(rng)
		j := scheduler.Job{Name: "j", Graph: g}
		for range g.Ops {
			j.Latency = append(j.Latency, time.Duration(1+rng.IntN(10000)))
		}
		link := cost.Link{Rate: cost.BytesPerSecond(1e6 * (1 + rng.Float64()*200))}
		r := scheduler.Request{Policy: "tensile", Jobs: []scheduler.Job{j}, Out: link, In: link, Align: 64}
		plain, err := policies.Schedule(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		low, _ := r.WorkingSets()
		for _, percent := range []graph.Bytes{20, 60} {
			r.Budget = low + (plain.Arena-low)*percent/100
			if result, err := policies.Schedule(r, nil); err == nil {
				used += plays(t, g, result.Jobs[0].Plan)
			}
		}
	}
	if used < 1500 {
		t.Errorf("%d actions were played, too few", used)
	}
}
