package capuchin

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// facts is what never changes between the iterations of a job that are tried.
type facts struct {
	session  *draft.Session
	job      *scheduler.Job
	g        *graph.Graph
	latency  []time.Duration // per op, as observed
	scratch  []graph.Bytes   // per op, rounded up
	bytes    []graph.Bytes   // per storage, rounded up
	touches  [][]graph.StorageID
	reads    [][]graph.Version
	writes   [][]graph.Version
	fresh    [][]graph.StorageID // per op: whose first content it makes
	uses     [][]int             // per storage: the ops that touch it
	last     []int               // per storage: its last version
	maker    []graph.OpID        // per storage of one version that a pure op makes: that op; else NoOp
	out, in  cost.Link
	capacity graph.Bytes
}

func newFacts(s *draft.Session, i int, latency []time.Duration) *facts {
	j := &s.Request.Jobs[i]
	g := j.Graph
	n := len(g.Ops)
	f := &facts{session: s, job: j, g: g, latency: latency, scratch: make([]graph.Bytes, n),
		touches: make([][]graph.StorageID, n), reads: make([][]graph.Version, n), writes: make([][]graph.Version, n),
		fresh: make([][]graph.StorageID, n), bytes: make([]graph.Bytes, len(g.Storages)),
		uses: make([][]int, len(g.Storages)), last: g.LastVersions(), maker: make([]graph.OpID, len(g.Storages))}
	f.out, f.in = s.Links(i)
	for s := range g.Storages {
		f.bytes[s] = scheduler.RoundUp(g.Storages[s].Bytes, f.session.Request.Align)
		f.maker[s] = graph.NoOp
	}
	for k := range g.Ops {
		op := graph.OpID(k)
		f.scratch[k] = scheduler.RoundUp(j.Variant(op, 0).Scratch, s.Request.Align)
		f.touches[k], f.reads[k], f.writes[k] = g.Touches(op), g.Reads(op), g.Writes(op)
		s.Count(4 * len(f.touches[k]))
		for _, t := range f.touches[k] {
			f.uses[t] = append(f.uses[t], k)
		}
		for o, w := range f.writes[k] {
			if !g.Fresh(op, o) {
				continue
			}
			f.fresh[k] = append(f.fresh[k], w.Storage)
			if role := g.Storages[w.Storage].Role; g.Pure(op) && f.last[w.Storage] == w.Number &&
				!role.Persistent() && role != graph.Output {
				f.maker[w.Storage] = op
			}
		}
	}
	return f
}

// lastTouch is the last op that touches a storage; -1: none does.
func (f *facts) lastTouch(s graph.StorageID) int {
	if n := len(f.uses[s]); n > 0 {
		return f.uses[s][n-1]
	}
	return -1
}

// nextTouch returns the first op from k on that touches a storage; the number of ops if none does.
func (f *facts) nextTouch(s graph.StorageID, k int) int {
	i, _ := slices.BinarySearch(f.uses[s], k)
	if i == len(f.uses[s]) {
		return len(f.g.Ops)
	}
	return f.uses[s][i]
}
