package cpu

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"tensile/device"
	"tensile/graph"
	"tensile/graph/invariants"
	"tensile/plan/program"
)

// residentBytes is how much of memory the system backs.
func residentBytes(t *testing.T, b []byte) graph.Bytes {
	t.Helper()
	page := os.Getpagesize()
	vec := make([]byte, (len(b)+page-1)/page)
	if _, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), uintptr(unsafe.Pointer(unsafe.SliceData(vec)))); errno != 0 {
		t.Fatal(errno)
	}
	n := 0
	for _, v := range vec {
		n += int(v & 1)
	}
	return graph.Bytes(n * page)
}

// Resident returns how much of the machine a job's arena takes, and how much of it the job holds.
func Resident(t *testing.T, place device.Job) (resident, held graph.Bytes) {
	t.Helper()
	j := place.(*job)
	if len(j.arena.bytes) == 0 {
		return 0, 0
	}
	return residentBytes(t, j.arena.bytes[:cap(j.arena.bytes)]), j.bytesIn(j.held)
}

// paged lays a bed with an arena of a number of large pages and a quarter, of which nothing is held.
func paged(t *testing.T, pages int) *bed {
	t.Helper()
	b := lay(t, open(t), nil)
	if err := b.Hold(nil); err != nil {
		t.Fatal(err)
	}
	b.reserve(graph.Bytes(pages)*largePage + largePage/4)
	return b
}

func (b *bed) hold(pages ...program.PageRange) {
	b.t.Helper()
	if err := b.Hold(pages); err != nil {
		b.t.Fatal(err)
	}
}

// Pages that are held are backed when they are used, keep what they hold, and are given back to the system: no more is
// resident than is held. The device's claims follow.
func TestHeldPages(t *testing.T) {
	b := paged(t, 6)
	defer b.close()
	before := b.device.claimed.Load()
	held := [][]program.PageRange{{{From: 0, To: 2}}, {{From: 1, To: 3}, {From: 5, To: 7}}, {{From: 1, To: 2}},
		{{From: 0, To: 7}}, {}, {{From: 1, To: 2}}}
	for step, pages := range held {
		b.hold(pages...)
		var size graph.Bytes
		for _, r := range pages {
			memory := b.job.pages(r)
			size += graph.Bytes(len(memory))
			for at := r.From; at < r.To; at++ {
				page := floatsOf(b.job.pages(program.PageRange{From: at, To: at + 1}))
				was := program.Pages(held[max(0, step-1)])
				kept := step > 0 && was.Contains(program.Pages{{From: at, To: at + 1}})
				want := map[bool]float32{true: float32(at + 1)}[kept]
				for _, i := range []int{0, len(page) - 1} {
					nan := invariants.Enabled && !kept
					if page[i] != want && !nan || nan && !math.IsNaN(float64(page[i])) {
						t.Errorf("step %d: page %d holds %v at %d, kept %t", step, at, page[i], i, kept)
					}
				}
				for i := range page {
					page[i] = float32(at + 1)
				}
			}
		}
		if got := residentBytes(t, b.arena.bytes[:cap(b.arena.bytes)]); got != size {
			t.Errorf("step %d: %v is resident, %v are held", step, got, size)
		}
		if got := graph.Bytes(b.device.claimed.Load() - before); got != size {
			t.Errorf("step %d: %v is claimed, %v are held", step, got, size)
		}
	}
	b.reserve(0)
	if got := b.device.claimed.Load(); got != before {
		t.Errorf("%d bytes are claimed after the arena is given back, before %d", got, before)
	}
}

func floatsOf(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// A Hold for which the machine has no memory fails, and changes nothing.
func TestHeldPagesWithoutMemory(t *testing.T) {
	b := paged(t, 6)
	defer b.close()
	b.hold(program.PageRange{From: 1, To: 3})
	b.job.pages(program.PageRange{From: 1, To: 3})[0] = 7
	b.device.memory = graph.Bytes(b.device.claimed.Load()) + largePage
	err := b.Hold(program.Pages{{From: 0, To: 5}})
	if err == nil || !strings.Contains(err.Error(), "pages of an arena") {
		t.Errorf("error %v", err)
	}
	if got := b.job.pages(program.PageRange{From: 1, To: 3})[0]; got != 7 || b.held.Count() != 2 {
		t.Errorf("page 1 holds %d, held are %v", got, b.held)
	}
	b.hold(program.PageRange{From: 2, To: 5}) // one more than before
}

const heldVariable = "TENSILE_TEST_HELD"

// The use of a page that is not held kills the process, as does that of what lies beside the arena: the test runs
// itself as a child that does it.
func TestHeldPagesFault(t *testing.T) {
	places := map[string]int{"not held": 3 * largePage, "given back": largePage, "before": -1,
		"after": 6*largePage + largePage/4}
	if what := os.Getenv(heldVariable); what != "" {
		b := paged(t, 6)
		b.hold(program.PageRange{From: 0, To: 2}, program.PageRange{From: 6, To: 7})
		first := unsafe.Pointer(unsafe.SliceData(b.arena.bytes))
		*(*byte)(unsafe.Add(first, largePage)) = 1
		b.hold(program.PageRange{From: 0, To: 1}, program.PageRange{From: 6, To: 7})
		*(*byte)(first) = 1
		*(*byte)(unsafe.Add(first, len(b.arena.bytes)-1)) = 1
		fmt.Println("inside")
		*(*byte)(unsafe.Add(first, places[what])) = 1
		fmt.Println("outside")
		return
	}
	for what := range places {
		child := exec.Command(os.Args[0], "-test.run=^TestHeldPagesFault$")
		child.Env = append(os.Environ(), heldVariable+"="+what)
		output, err := child.CombinedOutput()
		if got := string(output); err == nil || !strings.Contains(got, "inside") || strings.Contains(got, "outside") ||
			!strings.Contains(got, "SIGSEGV") && !strings.Contains(got, "SIGBUS") {
			t.Errorf("%s: the child ended with %v, want a fault after it was inside:\n%s", what, err, output)
		}
	}
}
