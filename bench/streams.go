package bench

import (
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/pool"
	"tensile/scheduler/rivals/waterwave"
)

// The replays here are of Waterwave's allocator (pool.Streams), as it would serve plans that move nothing: an
// operation's blocks are allocated when it is scheduled, in the order of the plan's steps.

// streamAlign is what TensorFlow rounds every block up to.
const streamAlign = 256

// streamed is an iteration of a job as it is scheduled: what each step allocates, and what may be freed after it.
type streamed struct {
	stays  []int64 // sizes of what the job holds over the boundary between two iterations
	before [][]int // per step: blocks that it is the first to need
	after  [][]int // per step: blocks that it is the last to need
	sizes  []int64 // per block
	growth []int64 // per step
	peak   int64   // the most bytes of a step, with what stays
	steps  int
}

// streamedOf returns an iteration of a plan.
func streamedOf(g *graph.Graph, p *plan.Plan) *streamed {
	n := len(p.Steps)
	s := &streamed{before: make([][]int, n), after: make([][]int, n), growth: make([]int64, n), steps: n}
	for _, b := range spansApart(compile.Buffers(g, p, streamAlign)) {
		from, to := b.Spans[0].From, b.Spans[0].To
		if b.Size == 0 {
			continue
		}
		if from == 0 && to == n {
			s.stays = append(s.stays, b.Size)
			continue
		}
		id := len(s.sizes)
		s.sizes = append(s.sizes, b.Size)
		s.before[from], s.after[to-1] = append(s.before[from], id), append(s.after[to-1], id)
		s.growth[from] += b.Size
		s.growth[to-1] -= b.Size
	}
	var now int64
	for _, size := range s.stays {
		now += size
	}
	for step := range n {
		for _, id := range s.before[step] {
			now += s.sizes[id]
		}
		s.peak = max(s.peak, now)
		for _, id := range s.after[step] {
			now -= s.sizes[id]
		}
	}
	return s
}

// freedRun is what an iteration held whose blocks were freed by one rule.
type freedRun struct {
	Peak graph.Bytes   // the most that was allocated at a time
	At   time.Duration // when it came to that
	Ends time.Duration // when the last operation has been computed
}

// freed replays an iteration of one job on one stream (Figure 2 of Waterwave). The host takes dispatch to schedule a
// step, and goes on whatever the device does, which computes each step for as long as it takes. A block is freed when
// the last step that needs it is scheduled, or when that has been computed.
func (s *streamed) freed(dispatch time.Duration, takes []time.Duration, computed bool) freedRun {
	a := pool.NewStreams(0, 1)
	place := make([]int64, len(s.sizes))
	var r freedRun
	for _, size := range s.stays {
		mustAlloc(a, size)
	}
	ends := make([]time.Duration, s.steps) // of the computation
	done := 0                              // steps whose blocks are free, being computed
	for step := range s.steps {
		now := time.Duration(step) * dispatch
		if computed {
			for ; done < step && ends[done] <= now; done++ {
				for _, id := range s.after[done] {
					a.FreeComputed(place[id])
				}
			}
		}
		for _, id := range s.before[step] {
			place[id] = mustAlloc(a, s.sizes[id])
		}
		if used := graph.Bytes(a.Used()); used > r.Peak {
			r.Peak, r.At = used, now
		}
		r.Ends = max(r.Ends, now+dispatch) + takes[step]
		ends[step] = r.Ends
		if !computed {
			for _, id := range s.after[step] {
				a.Free(place[id], 0)
			}
		}
	}
	return r
}

// mustAlloc allocates without a limit.
func mustAlloc(a *pool.Streams, size int64) int64 {
	at, err := a.Alloc(size, 0)
	if err != nil {
		panic("bench: " + err.Error())
	}
	return at
}

// cut returns the step after the last one of each node group, and how many of them allocate: a node group ends when
// memory has grown or shrunk by split since it began, after the peak by shrink, and at the peak. Waterwave orders
// operations by their depth in the graph (section 4.4), this by the plan.
func (s *streamed) cut(split, shrink int64) (ends []int, grow int) {
	peak, now, most := 0, int64(0), int64(-1)
	for step := range s.steps {
		for _, id := range s.before[step] {
			now += s.sizes[id]
		}
		if now > most {
			peak, most = step, now
		}
		for _, id := range s.after[step] {
			now -= s.sizes[id]
		}
	}
	var grown int64
	for step := range s.steps {
		grown += s.growth[step]
		size := split
		if step > peak {
			size = shrink
		}
		if max(grown, -grown) < size && step != peak && step < s.steps-1 {
			continue
		}
		ends, grown = append(ends, step+1), 0
		if step <= peak {
			grow++
		}
	}
	return ends, grow
}

// pairedRun is a round of jobs on two streams: an iteration of each.
type pairedRun struct {
	Fits   bool
	Pairs  int
	Forced int // synchronisations that allocations needed, beside one between two pairs
}

// round replays a round with node groups that allocate as much as the split. Waterwave prefers node groups that
// deallocate more than that, so that there is memory for the next one that allocates (section 4.4). It does not say how
// much more: the jobs fit if they do with as much, one and a half times or twice as much. The run is the first that
// fits.
func round(jobs []*streamed, capacity, split int64) (r pairedRun) {
	for _, shrink := range []int64{split, split * 3 / 2, split * 2} {
		if r = paired(jobs, capacity, split, shrink); r.Fits {
			break
		}
	}
	return r
}

// paired replays a round of jobs on two streams (Waterwave, section 4.3): the host schedules the two node groups of a
// pair step by step in turns. With one job there are no pairs, and one stream.
func paired(jobs []*streamed, capacity, split, shrink int64) pairedRun {
	a := pool.NewStreams(capacity, 2)
	limit := capacity
	shapes, ends := make([]waterwave.Shape, len(jobs)), make([][]int, len(jobs))
	places := make([][]int64, len(jobs))
	for i, s := range jobs {
		var stays int64
		for _, size := range s.stays {
			if _, err := a.Alloc(size, 0); err != nil {
				return pairedRun{}
			}
			stays += size
		}
		limit -= stays
		var grow int
		ends[i], grow = s.cut(split, shrink)
		shapes[i] = waterwave.Shape{Groups: len(ends[i]), Grow: grow, Peak: int(s.peak - stays)}
		places[i] = make([]int64, len(s.sizes))
	}
	schedule := func(job, step, stream int) bool {
		s := jobs[job]
		for _, id := range s.before[step] {
			at, err := a.Alloc(s.sizes[id], stream)
			if err != nil {
				return false
			}
			places[job][id] = at
		}
		for _, id := range s.after[step] {
			a.Free(places[job][id], stream)
		}
		return true
	}
	list := waterwave.Pairs(shapes, int(limit), int(split))
	if len(jobs) == 1 {
		for step := range jobs[0].steps {
			if !schedule(0, step, 0) {
				return pairedRun{Forced: a.Forced()}
			}
		}
		return pairedRun{Fits: true, Forced: a.Forced()}
	}
	for _, pair := range list {
		a.Sync()
		var next, to [2]int
		for stream, g := range pair {
			if g == waterwave.None {
				continue
			}
			if to[stream] = ends[g.Job][g.Group]; g.Group > 0 {
				next[stream] = ends[g.Job][g.Group-1]
			}
		}
		for next != to {
			for stream := len(pair) - 1; stream >= 0; stream-- { // what deallocates comes first
				if next[stream] == to[stream] {
					continue
				}
				if !schedule(pair[stream].Job, next[stream], stream) {
					return pairedRun{Pairs: len(list), Forced: a.Forced()}
				}
				next[stream]++
			}
		}
	}
	return pairedRun{Fits: true, Pairs: len(list), Forced: a.Forced()}
}
