package draft

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
)

// Session is one request while it is being planned: the request, what is known of its graphs, how the link is divided
// and the work so far. All drafts of a request come from its session.
type Session struct {
	// Request is read only.
	Request scheduler.Request

	// wirings are the graphs, per job.
	wirings []*wiring
	// first are the first variants of the ops, per job.
	first []*chosen
	// digests are those of the graphs, per job.
	digests []graph.Digest
	// shares are those of the link, per job.
	shares []scheduler.Share
	// groups are the equal jobs.
	groups [][]int
	// rounds is how often plans were packed so far.
	rounds int
	// denied says that a swap was left out for want of host memory.
	denied bool
	// meter counts the work.
	meter *meter
	// stage is told how far planning is; nil: nobody is.
	stage func(scheduler.Stage)
}

// Open makes the session of a valid request, with even shares of the link, or with the whole link for each job where
// jobs share memory, and hands it to do. If the watch stops
// planning, do does not return, and the error is scheduler.ErrStopped.
func Open(r scheduler.Request, w scheduler.Watch,
	do func(*Session) (scheduler.Result, error)) (result scheduler.Result, err error) {
	s := &Session{Request: r, meter: newMeter(w), stage: w.Stage, shares: make([]scheduler.Share, len(r.Jobs))}
	if s.stage == nil {
		s.stage = func(scheduler.Stage) {}
	}
	for i := range s.shares {
		even := scheduler.Whole / int64(len(r.Jobs))
		if r.Together {
			even = scheduler.Whole
		}
		s.shares[i] = scheduler.Share{Out: even, In: even}
	}
	defer func() {
		if p := recover(); p != nil {
			if _, stopped := p.(workStopped); !stopped {
				panic(p)
			}
			result, err = scheduler.Result{}, scheduler.ErrStopped
		}
		result.Work = s.meter.steps
	}()
	s.groups = equals(r.Jobs)
	s.prepare()
	result, err = do(s)
	result.Limited = err == nil && s.meter.spent
	return result, err
}

// prepare looks through the graphs once for all plans that are tried.
func (s *Session) prepare() {
	s.stage(scheduler.Planning)
	jobs := s.Request.Jobs
	s.wirings, s.digests = make([]*wiring, len(jobs)), make([]graph.Digest, len(jobs))
	for i := range jobs {
		s.first = append(s.first, choose(&jobs[i], nil))
		if j := s.sameGraph(i); j < i {
			s.wirings[i] = s.wirings[j]
			continue
		}
		s.wirings[i] = newWiring(jobs[i].Graph, s.Request.Align, s.meter.tick)
		s.meter.count(4 * len(s.wirings[i].touches.all))
	}
	s.stage(scheduler.Packing) // a digest is part of the proof, not of planning
	for i := range jobs {
		if j := s.sameGraph(i); j < i {
			s.digests[i] = s.digests[j]
			continue
		}
		s.digests[i] = jobs[i].Graph.DigestBy(s.meter.tick)
		s.meter.count(8 * len(jobs[i].Graph.Ops))
	}
}

// sameGraph returns the job before job i if it is a copy of the same graph, or else i.
func (s *Session) sameGraph(i int) int {
	if i > 0 && s.Request.Jobs[i-1].Graph == s.Request.Jobs[i].Graph {
		return i - 1
	}
	return i
}

// Count adds steps to the work so far. A policy calls it in its loops, so that planning can be stopped or limited
// there.
func (s *Session) Count(steps int) { s.meter.count(steps) }

// Tick is Count for work that is not counted: planning can be stopped there, and has no limit.
func (s *Session) Tick(steps int) { s.meter.tick(steps) }

// Work is the limit of the request's work, in steps.
func (s *Session) Work() int64 { return s.Request.Options.Steps() }

// Search does something until the work is used up, and reports whether it came to its end. What it was working on is
// otherwise left in the middle of a change.
func (s *Session) Search(do func()) bool { return s.meter.search(s.Work(), do) }

// Spent reports whether a search has reached the limit of work.
func (s *Session) Spent() bool { return s.meter.spent }

// Stage tells the watch that a stage begins.
func (s *Session) Stage(stage scheduler.Stage) { s.stage(stage) }

// Rounds is how often plans were packed so far.
func (s *Session) Rounds() int { return s.rounds }

// Shares returns the jobs' shares of the link.
func (s *Session) Shares() []scheduler.Share { return slices.Clone(s.shares) }

// Divide gives the jobs other shares of the link, for the drafts that follow.
func (s *Session) Divide(shares []scheduler.Share) { s.shares = slices.Clone(shares) }

// Links returns the share of job i of the request's links.
func (s *Session) Links(i int) (out, in cost.Link) {
	share := s.shares[i]
	return s.Request.Out.Share(share.Out, scheduler.Whole), s.Request.In.Share(share.In, scheduler.Whole)
}

// Drafts begins a draft per job.
func (s *Session) Drafts(order func(*graph.Graph) []graph.OpID, style Style) []*Draft {
	jobs := make([]*Draft, len(s.Request.Jobs))
	for i := range jobs {
		s.meter.count(4 * len(s.Request.Jobs[i].Graph.Ops))
		jobs[i] = s.Draft(i, FirstSteps(order(s.Request.Jobs[i].Graph)), style)
	}
	s.Together(jobs)
	return jobs
}

// Draft begins a draft of job i with these steps, in which nothing is decided.
func (s *Session) Draft(i int, steps []Step, style Style) *Draft {
	j := &s.Request.Jobs[i]
	d := &Draft{wiring: s.wirings[i], job: j, copies: 1, chosen: s.first[i], align: s.Request.Align, steps: steps,
		style: style, meter: s.meter}
	if style.Variants != nil {
		d.chosen = choose(j, style.Variants)
	}
	d.out, d.in = s.Links(i)
	d.reset()
	return d
}

// UnplannedTime is what an iteration of job i takes when nothing is swapped or recomputed. All-reduces go on beside the
// other ops.
func (s *Session) UnplannedTime(i int) time.Duration {
	d := s.untouched(i)
	g := d.Job().Graph
	if g.Replicas() == 1 {
		return d.period
	}
	var computed, reduced time.Duration
	means := make(map[graph.TensorID]time.Duration) // when they are there
	for op := range g.Ops {
		o, takes := &g.Ops[op], d.Latency(graph.OpID(op))
		if o.Kind == graph.AllReduce {
			reduced = max(reduced, computed) + takes
			means[o.Outputs[0]] = reduced
			continue
		}
		for _, t := range o.Inputs {
			computed = max(computed, means[t])
		}
		computed += takes
	}
	return computed
}

// Serial is what the steps of job i take one after the other, when nothing is swapped or recomputed: the time of
// drafts, in which all-reduces are steps like others.
func (s *Session) Serial(i int) time.Duration { return s.untouched(i).period }

func (s *Session) untouched(i int) *Draft {
	return s.Draft(i, FirstSteps(GraphOrder(s.Request.Jobs[i].Graph)), Style{})
}
