package controller

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/wire"
)

// Stored is what a controller before this one left.
type Stored struct {
	Records []wire.Record
	Graphs  map[graph.Digest]*graph.Graph
	Layouts map[string][]*wire.Layout // per job
	Orders  map[string]wire.Orders    // per executor, the newest
}

// Restore returns the machine of a controller that goes on where another ended. Executors keep their names; those that
// were started for jobs are awaited as if this controller had started them. The error names what is missing of a job.
func Restore(c Config, s Stored) (*Machine, error) {
	m := NewMachine(c)
	m.stored = s.Orders
	slices.SortFunc(s.Records, func(a, b wire.Record) int { return int(a.Order - b.Order) })
	for _, r := range s.Records {
		j := &job{record: r, written: r}
		m.jobs, m.last = append(m.jobs, j), max(m.last, r.Order)
		if r.Phase.Over() {
			continue
		}
		if r.Phase != wire.Queued && r.Device != "" && r.Device != c.Identity {
			return nil, fmt.Errorf("job %s runs on %s, and this controller is for %s: start it for that device, or stop the jobs with one that is",
				r.Spec.Name, r.Device, c.Identity)
		}
		if j.graph = s.Graphs[r.Spec.Graph]; j.graph == nil {
			return nil, fmt.Errorf("the graph of job %s is not in the state directory", r.Spec.Name)
		}
		var err error
		if j.profile, err = c.Profile(j.graph); err != nil {
			return nil, fmt.Errorf("job %s: %w", r.Spec.Name, err)
		}
		m.expect(j)
		j.assumed = j.latencySum()
		if err := j.restore(c.Align, s.Layouts[r.Spec.Name]); err != nil {
			return nil, fmt.Errorf("job %s: %w", r.Spec.Name, err)
		}
		if name := r.Executor; name != "" && m.executors[name] == nil {
			orders := m.before(name)
			m.executors[name] = &executor{name: name, life: orders.Life, own: owned(name), orders: orders, refused: orders.Refused}
		}
	}
	return m, nil
}

// Resume returns what is to be done before the first step.
func (m *Machine) Resume() []Output {
	m.out = nil
	m.rebudget()
	m.admit()
	_ = m.complete() // a job without plans says why
	m.grant()
	m.place()
	m.write()
	return m.out
}

// restore takes up the layouts from the one that was granted last on. The claim that was stored stands until an executor
// says which is in force.
func (j *job) restore(align graph.Bytes, layouts []*wire.Layout) error {
	for _, w := range layouts {
		if w.Plan.Epoch > j.record.Epoch || w.Plan.Epoch < j.record.Applied || j.record.Phase == wire.Queued {
			continue
		}
		l, err := prove(j.graph, align, w)
		if err != nil {
			return fmt.Errorf("layout %d is wrong: %w", w.Plan.Epoch, err)
		}
		l.granted, l.delivered = w.Plan.Epoch <= j.record.Granted, w.Plan.Epoch <= j.record.Granted
		j.layouts = append(j.layouts, l)
	}
	slices.SortFunc(j.layouts, func(a, b *layout) int { return int(a.epoch() - b.epoch()) })
	return nil
}

// owned reports whether executors of this name are started from here. Others may not call themselves so.
// owned reports whether an executor is of the names that controllers give to those that they start.
func owned(name string) bool { return wire.Owned(name) }

// before are the newest orders that an executor had from a controller before this one, or none.
func (m *Machine) before(name string) wire.Orders { return m.stored[name] }
