package cuda_test

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"tensile/device/cuda"
	"tensile/internal/fakecuda"
)

// mutant is a driver on which the device does something wrong.
type mutant struct {
	*fakecuda.Driver
	streams []cuda.Stream              // in the order of their making: the clock's, then those of the job
	of      map[cuda.Event]cuda.Stream // where it was recorded last

	from, to  int // waits of a stream for another that are left out; 0: none
	forgotten int
	unpinned  bool        // host memory is not pinned
	longer    map[int]int // elements by which copies are too long, by their number
	copies    int
}

func newMutant(seed uint64) *mutant {
	return &mutant{Driver: fakecuda.New(fakecuda.Options{Seed: seed}), of: make(map[cuda.Event]cuda.Stream)}
}

func (m *mutant) NewStream() (cuda.Stream, error) {
	s, err := m.Driver.NewStream()
	m.streams = append(m.streams, s)
	return s, err
}

func (m *mutant) Record(s cuda.Stream, e cuda.Event) error {
	m.of[e] = s
	return m.Driver.Record(s, e)
}

func (m *mutant) Wait(s cuda.Stream, e cuda.Event) error {
	if m.from > 0 && m.to < len(m.streams) && m.of[e] == m.streams[m.from] && s == m.streams[m.to] {
		m.forgotten++
		return nil
	}
	return m.Driver.Wait(s, e)
}

func (m *mutant) Pin(memory []byte) error {
	if m.unpinned {
		return nil
	}
	return m.Driver.Pin(memory)
}

func (m *mutant) Unpin(memory []byte) error {
	if m.unpinned {
		return nil
	}
	return m.Driver.Unpin(memory)
}

func (m *mutant) CopyIn(s cuda.Stream, to cuda.Address, from []byte) error {
	return m.Driver.CopyIn(s, to, m.lengthened(from))
}

func (m *mutant) CopyOut(s cuda.Stream, to []byte, from cuda.Address) error {
	return m.Driver.CopyOut(s, m.lengthened(to), from)
}

// lengthened is memory with an element more than its place has.
func (m *mutant) lengthened(memory []byte) []byte {
	m.copies++
	n := m.longer[m.copies]
	if n == 0 {
		return memory
	}
	const place = 256
	size := (len(memory)+place-1)/place*place + 4*n
	return unsafe.Slice(unsafe.SliceData(memory), size)
}

// found reports whether a mutant shows when programs are executed: by an error, or by other bits than on a driver
// without one.
func (m *mutant) found(t *testing.T, plan uint64) bool {
	t.Helper()
	right := fake(t, plan)
	want, err := train(t, right, randomTiny(t, right, plan), 3)
	if err = errors.Join(err, right.Close()); err != nil {
		t.Fatal(err)
	}
	d, err := cuda.New(m, cuda.Options{})
	if err != nil {
		return true
	}
	got, err := train(t, d, randomTiny(t, d, plan), 3)
	return errors.Join(err, d.Close()) != nil || got.differs(want) != ""
}

// The lanes of a job, by the order in which their streams are made.
var laneNames = []string{"", "compute", "out", "in", "prologue"}

// TestForgottenWaits leaves out all waits between two lanes. Those that others imply are named.
func TestForgottenWaits(t *testing.T) {
	implied := map[string]bool{
		"in->out": true, // what a copy in brings is used on the compute lane before it is copied out again
	}
	const plans = 8
	for from := 1; from < len(laneNames); from++ {
		for to := 1; to < len(laneNames); to++ {
			if from == to {
				continue
			}
			edge := laneNames[from] + "->" + laneNames[to]
			found, forgotten := 0, 0
			for plan := range uint64(plans) {
				m := newMutant(plan)
				m.from, m.to = from, to
				if m.found(t, plan) {
					found++
				}
				forgotten += m.forgotten
			}
			if forgotten == 0 {
				continue
			}
			t.Logf("%-17s %3d waits left out, found under %d of %d plans", edge, forgotten, found, plans)
			if found == 0 && !implied[edge] {
				t.Errorf("%s: left out %d times, and nothing shows", edge, forgotten)
			}
			if found > 0 && implied[edge] {
				t.Errorf("%s is not implied by other waits: it was found under %d plans", edge, found)
			}
		}
	}
}

// TestMutants does other things that CUDA would let pass.
func TestMutants(t *testing.T) {
	if m := newMutant(1); m.found(t, 1) {
		t.Fatal("a driver without a mutant shows one")
	}
	m := newMutant(1)
	m.unpinned = true
	if !m.found(t, 1) {
		t.Error("copies of memory that is not pinned: nothing shows")
	}
	whole := newMutant(1)
	if whole.found(t, 1) {
		t.Fatal("a driver without a mutant shows one")
	}
	found := 0
	first := 1 + linkCopies
	for copy := first; copy <= whole.copies; copy++ {
		m := newMutant(1)
		m.longer = map[int]int{copy: 1}
		if m.found(t, 1) {
			found++
		}
	}
	t.Log(fmt.Sprintf("a copy beyond its place by an element: found %d of %d", found, whole.copies-linkCopies))
	if 2*found < whole.copies-linkCopies {
		t.Error("most copies beyond their place do not show")
	}
}

// linkCopies are those by which New measures the link.
const linkCopies = 12
