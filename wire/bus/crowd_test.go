package bus

import (
	"fmt"
	"sync"
	"testing"

	"tensile/wire"
)

// TestCrowd connects a thousand executors, each of which says its status, hears its orders and reports.
func TestCrowd(t *testing.T) {
	executors := 1000
	if raceEnabled {
		executors = 100
	}
	s := start(t, Options{})
	ctx, c := within(t), rule(t, s)
	statuses, reports := newEvents(), newEvents()
	_, err := c.Watch(ctx, wire.StatusKey("*"), statuses.each)
	must(t, err)
	_, err = c.Subscribe(wire.ReportSubject("*", "*"), reports.each)
	must(t, err)

	conns := make([]*Conn, executors)
	orders := make([]events, executors)
	crowd := func(act func(i int)) {
		var group sync.WaitGroup
		for worker := range 32 {
			group.Go(func() {
				for i := worker; i < executors; i += 32 {
					act(i)
				}
			})
		}
		group.Wait()
	}
	name := func(i int) string { return fmt.Sprintf("e%d", i) }
	crowd(func(i int) {
		x, err := connect(ctx, s.Credentials(Executor(name(i))), ConnOptions{}, s, connectTimeout)
		if err != nil {
			t.Error(err)
			return
		}
		conns[i], orders[i] = x, make(events, 10)
		if _, err := x.Watch(ctx, wire.OrdersKey(name(i)), orders[i].each); err != nil {
			t.Error(err)
		}
		if err := x.Put(ctx, wire.StatusKey(name(i)), []byte("here")); err != nil {
			t.Error(err)
		}
	})
	defer crowd(func(i int) {
		if conns[i] != nil {
			conns[i].Close()
		}
	})
	if t.Failed() {
		return
	}
	crowd(func(i int) {
		if err := c.Put(ctx, wire.OrdersKey(name(i)), []byte(name(i))); err != nil {
			t.Error(err)
		}
		if err := conns[i].Publish(wire.ReportSubject(name(i), "job"), nil); err != nil {
			t.Error(err)
		}
	})
	told, reported := map[string]bool{}, map[string]bool{}
	for i := range executors {
		orders[i].want(t, fmt.Sprintf("orders.%s=%s", name(i), name(i)))
		told[(<-statuses).name], reported[(<-reports).name] = true, true
	}
	if len(told) != executors || len(reported) != executors {
		t.Errorf("%d statuses and %d reports came", len(told), len(reported))
	}

	again := newEvents()
	_, err = c.Watch(ctx, wire.StatusKey("*"), again.each)
	must(t, err)
	if len(again) != executors {
		t.Errorf("a new watcher is told %d statuses", len(again))
	}
}
