package cuda_test

import (
	"errors"
	"slices"
	"testing"
	"unsafe"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
)

// mutant is a driver on which the device does something wrong.
type mutant struct {
	*fakecuda.Driver
	streams []cuda.Stream              // in the order of their making: the clock's, then those of the job
	of      map[cuda.Event]cuda.Stream // where it was recorded last

	from, to  int // waits of a stream for another that are left out; 0: none
	forgotten int
	unpinned  bool // host memory is not pinned
	longer    int  // the number of a copy that is too long, from 1 on; 0: none is
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

// lengthened is the memory of a copy, with an element more than its place has if the copy is the one that is too long.
func (m *mutant) lengthened(memory []byte) []byte {
	if m.copies++; m.copies != m.longer {
		return memory
	}
	const place = 256
	size := (len(memory)+place-1)/place*place + 4
	return unsafe.Slice(unsafe.SliceData(memory), size)
}

// rightly is what programs come to on a driver without a mutant, by their plan.
var rightly = make(map[uint64]outcome)

// found reports whether a mutant shows when programs are executed: by an error, or by other bits than on a driver
// without one.
func (m *mutant) found(t *testing.T, plan uint64) bool {
	t.Helper()
	want, ok := rightly[plan]
	if !ok {
		right := fake(t, plan)
		var err error
		want, err = train(t, right, randomTiny(t, right, plan), 3)
		if err = errors.Join(err, right.Close()); err != nil {
			t.Fatal(err)
		}
		rightly[plan] = want
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

// TestForgottenWaits leaves out all waits between two lanes, under random plans. Programs have none that others imply:
// none of out for in, whose content compute has used before, and none of the prologue, before which all has ended.
func TestForgottenWaits(t *testing.T) {
	const plans = 8
	none := []string{"compute->prologue", "out->prologue", "in->out", "in->prologue"}
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
			t.Logf("%-17s %3d waits left out, found under %d of %d plans", edge, forgotten, found, plans)
			if implied := slices.Contains(none, edge); implied && forgotten > 0 || !implied && found == 0 {
				t.Errorf("%s: left out %d times, found under %d plans", edge, forgotten, found)
			}
		}
	}
}

// TestMutants does other things that CUDA would let pass. Most copies beyond their place show; the others write or read
// what nobody uses.
func TestMutants(t *testing.T) {
	whole := newMutant(1)
	if whole.found(t, 1) {
		t.Fatal("a driver without a mutant shows one")
	}
	m := newMutant(1)
	m.unpinned = true
	if !m.found(t, 1) {
		t.Error("copies of memory that is not pinned: nothing shows")
	}
	found, all := 0, whole.copies-linkCopies
	for copy := linkCopies + 1; copy <= whole.copies; copy++ {
		m := newMutant(1)
		m.longer = copy
		if m.found(t, 1) {
			found++
		}
	}
	t.Logf("a copy beyond its place by an element: found %d of %d", found, all)
	if 2*found < all {
		t.Error("most copies beyond their place do not show")
	}
}

// linkCopies are those by which New measures the link.
const linkCopies = 12
