package cpu_test

import (
	"context"
	"testing"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/devicetest"
	"tensile/device/lease"
	"tensile/executor"
	"tensile/graph"
	"tensile/plan/compile"
)

// inspector is a lease that looks at what the jobs' arenas take of the machine whenever one gives pages back.
type inspector struct {
	t        *testing.T
	machine  *lease.Machine
	jobs     *[]device.Job
	capacity graph.Bytes
	looked   int
	most     graph.Bytes
}

func (l *inspector) Step(in lease.Input) []lease.Output {
	if in.Passed != nil {
		l.looked++
		var sum graph.Bytes
		for _, j := range *l.jobs {
			resident, held := cpu.Resident(l.t, j)
			if sum += resident; resident > held {
				l.t.Errorf("an arena takes %v, %v are held", resident, held)
			}
		}
		if l.most = max(l.most, sum); sum > l.capacity {
			l.t.Errorf("the arenas take %v, the capacity is %v", sum, l.capacity)
		}
	}
	return l.machine.Step(in)
}

// opens remembers the jobs of a device.
type opens struct {
	device.Pager
	jobs []device.Job
}

func (o *opens) Open(g *graph.Graph, options device.JobOptions) (device.Job, error) {
	j, err := o.Pager.Open(g, options)
	o.jobs = append(o.jobs, j)
	return j, err
}

// What two jobs under gates take of the machine is never more than the capacity, by what the system says is resident.
func TestResidentUnderGates(t *testing.T) {
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	g := devicetest.Paged(d.Page())
	p := devicetest.Build(t, d, g, devicetest.Freed(g), compile.Options{})
	divided, err := compile.ProveGroups(p, d.Page(), d.Page())
	if err != nil {
		t.Fatal(err)
	}
	base, peak := divided.Groups().Base.Count(), divided.Groups().Peak()
	w := &opens{Pager: d}
	l := &inspector{t: t, machine: lease.NewMachine(lease.Options{Still: -1}), jobs: &w.jobs,
		capacity: graph.Bytes(base+peak) * d.Page()}
	var ended int
	h := executor.NewHost(w, func(e executor.Event) {
		if e.Ended != nil {
			if ended++; e.Ended.Err != nil {
				t.Error(e.Ended.Err)
			}
		}
	})
	h.Share(executor.Sharing{Lease: l, Every: d.Page()})
	h.Capacity(l.capacity, 1)
	for _, name := range []string{"a", "b"} {
		h.Submit(executor.Spec{Graph: g, Iterations: 4, Init: func(graph.Storage, []float32) {},
			JobOptions: device.JobOptions{Name: name, Input: func(int, graph.StorageID, device.Memory) {},
				Output: func(int, graph.StorageID, []float32) {}}}, p)
	}
	for ended < 2 {
		if _, err := h.Poll(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if l.looked < 16 || l.most <= graph.Bytes(peak)*d.Page()*3/4 {
		t.Errorf("%d looks at arenas, of %v at most: too few to show much", l.looked, l.most)
	}
	t.Logf("%d looks, at most %v of a capacity of %v; two arenas are %v", l.looked, l.most, l.capacity,
		2*p.Program().Arena)
}
