package draft

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Where it fits, a fetch has ended by the slack of the step before the access that it is for; nowhere does slack cost
// a swap that fits without.
func TestSlack(t *testing.T) {
	early, late := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 52))
		s, style := randomJobs(rng, 1)
		const slack = 700 * time.Nanosecond
		for range s.Request.Jobs[0].Graph.Ops {
			s.Request.Jobs[0].Slack = append(s.Request.Jobs[0].Slack, slack)
		}
		d := s.Drafts(GraphOrder, style)[0]
		for _, x := range d.gaps {
			at := x.from + 1
			if x.Arrival() || x.kind != keep || x.to-x.from < 5 {
				continue
			}
			p, ok := d.fit(x, at, false)
			slacks := d.job.Slack
			d.job.Slack = nil
			without, fits := d.fit(x, at, false)
			d.job.Slack = slacks
			switch {
			case ok != fits:
				t.Errorf("seed %d: a gap fits: %v, without slack %v", seed, ok, fits)
			case !ok || p.fetchTakes == 0:
			case p.fetch+p.fetchTakes <= d.start(x.to)-slack:
				early++
			case p.fetch != without.fetch:
				t.Errorf("seed %d: a fetch at %v ends too late for its slack, and is not where it is without: %v",
					seed, p.fetch,
					without.fetch)
			default:
				late++
			}
		}
	}
	if t.Logf("%d fetches early, %d as without slack", early, late); early < 500 || late == 0 {
		t.Errorf("%d fetches early, %d late", early, late)
	}
}
