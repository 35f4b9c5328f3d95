package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models"
	"tensile/wire"
)

// pair is the replicas of a network at two executors, and the controller of both.
type pair struct {
	t           *testing.T
	folders     [2]string
	on          [2]*setting
	jobs        [2]*work
	incarnation int64
	line        *slow
}

var replicaNames = [2]string{"net@0", "net@1"}

// start starts an executor and gives it its replica.
func (p *pair) start(number int, spec wire.Spec) {
	p.t.Helper()
	g, err := models.Build("lenet", models.Config{Image: 12, Batch: 2})
	if err == nil {
		g, err = autodiff.Replicate(g, 2)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := json.Marshal(g)
	if err != nil {
		p.t.Fatal(err)
	}
	s := beginIn(p.t, computing(p.t), p.folders[number])
	s.bus.store(wire.GraphObject(g.Digest()), text)
	spec.Name, spec.ID, spec.Graph, spec.Seed = replicaNames[number], int64(7+number), g.Digest(), 5
	spec.Replica = wire.Replica{Number: number, Of: 2, Group: 7}
	s.ids[spec.Name] = []int64{spec.ID}
	p.on[number], p.jobs[number] = s, &work{p.t, s.device.Device, spec, g}
	for epoch, percent := range []graph.Bytes{100, 70 + 10*graph.Bytes(number)} {
		s.deliver(p.jobs[number].plan(int64(1+epoch), percent))
	}
}

// order orders the same of both, in the present incarnation.
func (p *pair) order(w wire.Assignment) {
	p.t.Helper()
	for number := range 2 {
		p.orderOne(number, w)
	}
}

func (p *pair) orderOne(number int, w wire.Assignment) {
	p.t.Helper()
	w.Spec, w.Incarnation = p.jobs[number].spec, p.incarnation
	if number == 1 && p.line != nil {
		w.Neighbour = p.line.meeting
	}
	p.on[number].orders(false, w)
}

// begin has both begin in a new incarnation, and introduces them to each other, by a connection that is slow.
func (p *pair) begin(w wire.Assignment) {
	p.t.Helper()
	p.incarnation++
	p.line = nil
	p.order(w)
	b := p.on[0].bus
	var meeting wire.Meeting
	b.await(p.t, "an address", func() bool {
		j := b.job(replicaNames[0])
		if j.Incarnation == p.incarnation && j.Meets != nil {
			meeting = *j.Meets
		}
		return meeting.Address != ""
	})
	p.line = newSlow(p.t, meeting)
	p.orderOne(1, w)
}

// rests waits until both rest after so many iterations, with a checkpoint of as many.
func (p *pair) rests(iterations, checkpoint int) {
	p.t.Helper()
	for number, s := range p.on {
		s.bus.await(p.t, "a rest", func() bool {
			j := s.bus.job(replicaNames[number])
			return j.State == wire.Resting && j.Iteration == iterations && j.Arena == 0 &&
				(checkpoint == 0 || j.Checkpoint != nil && j.Checkpoint.Iteration == checkpoint)
		})
	}
}

// finishes waits for both, and returns what they came to.
func (p *pair) finishes() (results [2]*wire.Result) {
	p.t.Helper()
	for number, s := range p.on {
		results[number] = s.bus.awaitState(p.t, replicaNames[number], wire.Finished).Result
	}
	for _, s := range p.on {
		s.leave()
	}
	return results
}

// alone waits until a replica has failed because it lost the other one.
func (p *pair) alone(number int) {
	p.t.Helper()
	if j := p.on[number].bus.awaitState(p.t, replicaNames[number], wire.Failed); !j.Alone {
		p.t.Errorf("replica %d is %+v, want it alone", number, j)
	}
}

// slow hands on what two replicas tell each other, in pieces, and lets others run in between.
type slow struct {
	meeting *wire.Meeting // the first one's, as the second is told of it
	mu      sync.Mutex
	ends    []io.Closer
}

func newSlow(t *testing.T, to wire.Meeting) *slow {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slow{ends: []io.Closer{l}}
	address := to.Address
	to.Address = l.Addr().String()
	s.meeting = &to
	var copies sync.WaitGroup
	t.Cleanup(func() { s.cut(); copies.Wait() })
	copies.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d, err := net.Dial("unix", address) // as all are on one host
			if err != nil {
				c.Close()
				continue
			}
			s.mu.Lock()
			s.ends = append(s.ends, c, d)
			s.mu.Unlock()
			for _, way := range [][2]net.Conn{{c, d}, {d, c}} {
				copies.Go(func() {
					defer way[1].Close()
					piece := make([]byte, 1000)
					for {
						n, err := way[0].Read(piece)
						for range 20 {
							runtime.Gosched()
						}
						if _, failed := way[1].Write(piece[:n]); err != nil || failed != nil {
							return
						}
					}
				})
			}
		}
	})
	return s
}

// cut ends all connections, and takes no more.
func (s *slow) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.ends {
		c.Close()
	}
}

// Replicas at two executors rest after the iterations that they are told, begin again after a checkpoint that both have
// when the line between them breaks or one of them is killed, and come to the bits of replicas that nothing disturbed.
func TestReplicas(t *testing.T) {
	spec := wire.Spec{Model: "lenet", Iterations: 12}
	quiet := &pair{t: t, folders: [2]string{t.TempDir(), t.TempDir()}}
	quiet.start(0, spec)
	quiet.start(1, spec)
	quiet.begin(wire.Assignment{Epoch: 1})
	want := quiet.finishes()
	if slices.Equal(want[0].Losses, want[1].Losses) {
		t.Errorf("both have the losses %v: they learn from the same batches", want[0].Losses)
	}

	spec.Checkpoint, spec.Keep = wire.Interval{Iterations: 2}, 1
	p := &pair{t: t, folders: [2]string{t.TempDir(), t.TempDir()}}
	p.start(0, spec)
	p.start(1, spec)
	p.begin(wire.Assignment{Epoch: 1, Park: wire.InMemory, At: 3}) // they rest before they have a plan, or after it
	p.rests(3, 2)
	p.order(wire.Assignment{Epoch: 2, Park: wire.InMemory, At: 6})
	p.rests(6, 6)
	for number, folder := range p.folders { // none is common as far as they were told
		if files, err := filepath.Glob(filepath.Join(folder, "*", "1-*.safetensors")); err != nil || len(files) != 3 {
			t.Errorf("replica %d has checkpoints %v (%v), want all three", number, files, err)
		}
	}
	p.line.cut()
	p.order(wire.Assignment{Epoch: 2})
	p.alone(0)
	p.alone(1)

	p.begin(wire.Assignment{Epoch: 2, From: 4, Park: wire.InMemory, At: 9})
	p.rests(9, 8)
	p.on[0].cancel(errKilled)
	if err := p.on[0].end(); err == nil {
		t.Error("it ended well")
	}
	p.orderOne(1, wire.Assignment{Epoch: 2, From: 8}) // which is common by now
	p.alone(1)
	p.start(0, spec)
	p.begin(wire.Assignment{Epoch: 1, From: 8})
	got := p.finishes()
	for number := range 2 {
		p.jobs[number].sameAs(got[number], want[number])
	}
	for number, folder := range p.folders {
		if left, err := filepath.Glob(filepath.Join(folder, "*", "*")); err != nil || len(left) > 0 {
			t.Errorf("of replica %d there is %q: %v", number, left, err)
		}
	}
}

// A replica that waits for one that never comes can be dropped, and its process can be interrupted.
func TestReplicaWaits(t *testing.T) {
	for _, interrupt := range []bool{false, true} {
		p := &pair{t: t, folders: [2]string{t.TempDir(), t.TempDir()}}
		p.start(0, wire.Spec{Model: "lenet", Iterations: 5, Checkpoint: wire.Interval{Iterations: 2}})
		p.orderOne(0, wire.Assignment{Epoch: 1})
		s := p.on[0]
		s.bus.awaitState(t, replicaNames[0], wire.Running)
		if !interrupt {
			s.leave()
			continue
		}
		close(s.interrupt)
		if err := s.end(); err == nil {
			t.Error("it ended well")
		}
		if j := s.bus.job(replicaNames[0]); j.State != wire.Suspended || j.Iteration != 0 {
			t.Errorf("the job is %+v", j)
		}
	}
}

// A replica begins with the checkpoint that it is told, or not at all, and says whether that is elsewhere or damaged.
func TestReplicaLacks(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		p := &pair{t: t, folders: [2]string{t.TempDir(), t.TempDir()}}
		p.start(1, wire.Spec{Model: "lenet", Iterations: 5, Checkpoint: wire.Interval{Iterations: 2}})
		if damaged {
			s := p.jobs[1].spec
			dir := filepath.Join(p.folders[1], fmt.Sprintf("%s-%d", s.Name, s.ID))
			if err := errors.Join(os.MkdirAll(dir, 0o777),
				os.WriteFile(filepath.Join(dir, "0-4.safetensors"), []byte("torn"), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
		p.orderOne(1, wire.Assignment{Epoch: 1, From: 4})
		j := p.on[1].bus.awaitState(t, replicaNames[1], wire.Failed)
		if j.Lacks == damaged || j.Damaged != damaged || j.Alone {
			t.Errorf("damaged %v: the job is %+v", damaged, j)
		}
		p.on[1].leave()
	}
}
