package bench

import (
	"context"
	"sync"
	"time"

	"tensile/wire"
	"tensile/wire/bus"
)

// fakeExecutor is an executor that claims to train.
type fakeExecutor struct {
	name   string
	conn   *bus.Conn
	mu     sync.Mutex
	number int64
	orders wire.Orders   // the newest
	at     time.Time     // when they were heard
	news   chan struct{} // there are newer ones
}

func (d *fakeExecutor) hear(_ string, value []byte) {
	o, err := wire.DecodeAs[wire.Orders](value)
	if err != nil {
		return
	}
	now := time.Now()
	d.mu.Lock()
	d.orders, d.at = o, now
	d.mu.Unlock()
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// tell puts a status: all jobs train with what they were ordered.
func (d *fakeExecutor) tell(ctx context.Context) error {
	d.mu.Lock()
	d.number++
	s := wire.Status{Executor: d.name, Number: d.number, Life: "1", Device: "sim:" + networkDevice,
		Orders: d.orders.Number, Jobs: []wire.JobStatus{}}
	for _, o := range d.orders.Jobs {
		s.Jobs = append(s.Jobs, wire.JobStatus{Name: o.Spec.Name, ID: o.Spec.ID, Incarnation: o.Incarnation,
			State: wire.Running, Epoch: o.Epoch})
	}
	d.mu.Unlock()
	return d.conn.Put(ctx, wire.StatusKey(d.name), wire.Encode(s))
}

// await returns when orders were heard.
func (d *fakeExecutor) await(ctx context.Context, are func(wire.Orders) bool) (time.Time, error) {
	for {
		d.mu.Lock()
		o, at := d.orders, d.at
		d.mu.Unlock()
		if are(o) {
			return at, nil
		}
		select {
		case <-d.news:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

// trains is the epoch that orders name for a job, 0 for none.
func (d *fakeExecutor) trains(o wire.Orders, job string) int64 {
	for _, j := range o.Jobs {
		if j.Spec.Name == job {
			return j.Epoch
		}
	}
	return 0
}

func (d *fakeExecutor) epoch(job string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.trains(d.orders, job)
}
