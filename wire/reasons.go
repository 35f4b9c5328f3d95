package wire

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
)

// Reasons are why a planner has made a plan as it is. Nothing that runs depends on them.
type Reasons struct {
	Out cost.Link `json:"out" bound:"rate"` // the job's share of the link, with which the plan was made
	In  cost.Link `json:"in" bound:"rate"`
	// Unplanned is how long an iteration was to take without a plan, and Speed which share of that speed was expected
	// beside the others, where jobs share memory by gates; 0: nothing was.
	Unplanned time.Duration `json:"unplanned_ns" bound:"sum"`
	Speed     float64       `json:"speed,omitzero" bound:"ratio"`
	// Decisions are those about gaps between two uses of a storage. None: the policy does not decide by gaps.
	Decisions []Decision `json:"decisions"`
	Texts     []string   `json:"texts"` // of decisions, each once
}

// Decision is a scheduler.Decision. A plan has some hundred: the names are short, and its text is an index of Texts.
type Decision struct {
	Storage graph.StorageID `json:"s" bound:"count"`
	Kind    scheduler.Kind  `json:"k,omitzero" bound:"count"`
	From    int             `json:"f" bound:"step"`
	To      int             `json:"t" bound:"count"`
	Freed   int             `json:"n,omitzero" bound:"count"`
	Away    time.Duration   `json:"a,omitzero" bound:"signed"`
	Cost    time.Duration   `json:"c,omitzero" bound:"signed"`
	Text    int             `json:"r,omitzero" bound:"count"`
}

// ReasonsOf are the reasons of a job's plan; speed is as Reasons has it.
func ReasonsOf(s *scheduler.Scheduled, speed float64) *Reasons {
	r := &Reasons{Out: s.Out, In: s.In, Unplanned: s.Unplanned, Speed: speed, Decisions: []Decision{},
		Texts: []string{}}
	at := make(map[string]int)
	for _, d := range s.Decisions {
		text, known := at[d.Reason]
		if !known {
			text = len(r.Texts)
			at[d.Reason], r.Texts = text, append(r.Texts, d.Reason)
		}
		r.Decisions = append(r.Decisions, Decision{d.Storage, d.Kind, d.From, d.To, d.Freed, d.Away, d.Cost, text})
	}
	return r
}

// All are the decisions, in the planner's order.
func (r *Reasons) All() (list []scheduler.Decision) {
	for _, d := range r.Decisions {
		list = append(list, scheduler.Decision{Storage: d.Storage, Kind: d.Kind, From: d.From, To: d.To, Freed: d.Freed,
			Away: d.Away, Cost: d.Cost, Reason: r.Texts[d.Text]})
	}
	return list
}

// About are the decisions about a storage.
func (r *Reasons) About(s graph.StorageID) []scheduler.Decision {
	return slices.DeleteFunc(r.All(), func(d scheduler.Decision) bool { return d.Storage != s })
}

// check is for a plan of so many steps.
func (r *Reasons) check(c *checker, steps int) {
	for i, d := range r.Decisions {
		if d.Storage < 0 || d.Text < 0 || d.Text >= len(r.Texts) || d.From < -1 || d.From >= 2*steps || d.To < 0 ||
			d.To >= 2*steps {
			c.fail("decision %d, from step %d to %d, is not one about a plan of %d steps with %d reasons", i, d.From,
				d.To, steps, len(r.Texts))
			return
		}
	}
}
