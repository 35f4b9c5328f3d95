package simulate

import (
	"testing"
	"time"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
)

// courseOf is a job whose newest iterations ended so long after each other.
func courseOf(iterations int, took ...time.Duration) *nodeJob {
	c := &nodeJob{name: "one", iterations: iterations, done: len(took), endTimes: []time.Duration{0}}
	for _, d := range took {
		c.endTimes = append(c.endTimes, c.endTimes[len(c.endTimes)-1]+d)
	}
	return c
}

// A device is folded when the last four iterations of each job took as long as the four before them, and not at its
// last iterations. Then it goes on when the first of its jobs comes to these.
func TestRefold(t *testing.T) {
	const s = time.Second
	even := courseOf(100, s, s, s, s, s, s, s, s)
	for _, c := range []struct {
		what string
		jobs []*nodeJob
		wake time.Duration // 0: it is not folded
	}{
		{"even iterations", []*nodeJob{even}, (100 - 8 - margin) * s},
		{"too few", []*nodeJob{courseOf(100, s, s, s, s, s, s, s)}, 0},
		{"longer ones", []*nodeJob{courseOf(100, s, s, s, s, s, s, s, s+16*s/1000)}, 0},
		{"a longer one before", []*nodeJob{courseOf(100, 2*s, s, s, s, s, s, s, s, s)}, (100 - 9 - margin) * s},
		{"the last ones", []*nodeJob{courseOf(8+margin, s, s, s, s, s, s, s, s)}, 0},
		{"one that rests", []*nodeJob{even, {atRest: true}}, (100 - 8 - margin) * s},
		{"a shorter job", []*nodeJob{even, courseOf(20, s, s, s, s, s, s, s, s)}, (20 - 8 - margin) * s},
		{"nothing", nil, 0},
	} {
		n := newNode("any", options(t, FIFO, 1, graph.GiB).Facts, true)
		n.jobs = c.jobs
		if n.refold(); n.folded != (c.wake > 0) || n.wake != c.wake {
			t.Errorf("%s: folded %v until %v, want %v", c.what, n.folded, n.wake, c.wake)
		}
		n.host.Close()
		n.device.Close()
	}
}

// What a device has done since it was folded counts up to when it was to go on, in whole iterations. What is left over
// counts the next time.
func TestUnfold(t *testing.T) {
	const s = time.Second
	n := newNode("any", options(t, FIFO, 1, graph.GiB).Facts, true)
	defer n.device.Close()
	defer n.host.Close()
	c := courseOf(100, s, s, s, s, s, s, s, s)
	c.lastCopied = 10
	n.jobs = []*nodeJob{c}
	for _, step := range []struct {
		now  time.Duration // since it was folded
		done int
		part float64
	}{{2*s + s/2, 10, 0.5}, {s + s/2, 12, 0}, {s / 4, 12, 0.25}, {1000 * s, 97, 0.25}} {
		n.folded, n.foldedAt, n.wake, c.iterationTime = true, n.now(), n.now()+time.Duration(100-margin-c.done)*s,
			float64(s)
		if n.unfold(n.now() + step.now); c.done != step.done || c.fraction != step.part ||
			c.copied != graph.Bytes(10*(step.done-8)) {
			t.Errorf("%v later it has done %d and %v iterations, and copied %v; want %d and %v", step.now, c.done,
				c.fraction, c.copied, step.done, step.part)
		}
	}
}
