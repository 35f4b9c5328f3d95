package simulate

import (
	"fmt"
	"time"

	"tensile/executor"
	"tensile/graph"
)

// baseline is FIFO or Pack. Its jobs have no plan: each has an arena as large as it needs when every storage is freed
// after its last use, for as long as it trains.
type baseline struct {
	*world
	waiting []*job
	used    map[*node]graph.Bytes
	running map[*node]int
}

func newBaseline(w *world) *baseline {
	return &baseline{world: w, used: make(map[*node]graph.Bytes), running: make(map[*node]int)}
}

func (b *baseline) tick() (time.Duration, error) { return noTime, nil }

func (b *baseline) counts() (replans, moves int) { return 0, 0 }

func (b *baseline) arrive(j *job) error {
	if j.kind.peak > b.Budget {
		return fmt.Errorf("job %s (%s, batch %d) needs %s without a plan, and a device has %s: give a smaller batch",
			j.name, j.Model, j.Batch, j.kind.peak, b.Budget)
	}
	b.waiting = append(b.waiting, j)
	return b.place()
}

func (b *baseline) takeEvents(n *node, events []executor.Event) error {
	for _, e := range events {
		if e.Ended == nil {
			continue
		}
		if e.Ended.Err != nil {
			return fmt.Errorf("job %s: %w", e.Job, e.Ended.Err)
		}
		b.used[n] -= b.find(e.Job).kind.peak
		b.running[n]--
		if err := n.tell(b.now, func(h *executor.Host) { h.Remove(e.Job) }); err != nil {
			return err
		}
	}
	return b.place()
}

// place begins jobs that wait. With FIFO no job overtakes another. With Pack a job for which there is room overtakes
// those for which there is none.
func (b *baseline) place() error {
	left := b.waiting[:0]
	for i, j := range b.waiting {
		n := b.findRoom(j)
		if n == nil && b.Way == FIFO {
			left = append(left, b.waiting[i:]...)
			break
		}
		if n == nil {
			left = append(left, j)
			continue
		}
		if err := b.begin(n, j); err != nil {
			return err
		}
	}
	b.waiting = left
	return nil
}

// findRoom returns the device on which a job begins: that with the fewest jobs, and of these the one with the most free
// memory. nil: there is none now.
func (b *baseline) findRoom(j *job) *node {
	var best *node
	for _, n := range b.nodes {
		if b.Way == FIFO && b.running[n] > 0 || b.used[n]+j.kind.peak > b.Budget {
			continue
		}
		if best == nil || b.running[n] < b.running[best] || b.running[n] == b.running[best] &&
			b.used[n] < b.used[best] {
			best = n
		}
	}
	return best
}

func (b *baseline) begin(n *node, j *job) error {
	b.used[n] += j.kind.peak
	b.running[n]++
	t := j.kind.task
	t.Name = j.name
	spec := executor.SpecOf(t, j.Iterations, nil)
	n.add(spec)
	return n.tell(b.now, func(h *executor.Host) { h.Submit(spec, j.kind.program) })
}
