package cpu

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"tensile/graph"
	"tensile/graph/invariants"
	"tensile/plan"
	"tensile/plan/program"
)

// Every size is mapped to the byte, page or not, can be used from end to end, and is given back.
func TestReserveSizes(t *testing.T) {
	page := graph.Bytes(os.Getpagesize())
	for _, size := range []graph.Bytes{4, 256, page - 256, page, page + 256, 3 * page, 3*page + 4, 1 << 20} {
		m, err := reserve(size)
		if err != nil {
			t.Fatalf("reserve %d: %v", size, err)
		}
		f := m.floats(0, int(size/graph.ElementBytes))
		if len(m.bytes) != int(size) || len(f) != int(size/graph.ElementBytes) {
			t.Errorf("reserve %d: %d bytes, %d elements", size, len(m.bytes), len(f))
		}
		for i := range f {
			if f[i] != 0 {
				t.Fatalf("reserve %d: element %d is %v before it was used", size, i, f[i])
			}
			f[i] = 1
		}
		m.free()
		m.free()
		if m.mapping != nil || m.bytes != nil {
			t.Errorf("reserve %d: %d bytes after free", size, len(m.bytes))
		}
	}
	if m, err := reserve(0); err != nil || m.mapping != nil || m.floats(0, 0) != nil {
		t.Errorf("reserve 0: %d bytes, error %v", len(m.mapping), err)
	}
}

// Ranges that reach outside of the memory are bugs that panic when they are asked for, before anyone uses them.
func TestFloatsOutside(t *testing.T) {
	m, err := reserve(1024)
	if err != nil {
		t.Fatal(err)
	}
	defer m.free()
	for _, r := range []struct {
		offset   graph.Bytes
		elements int
	}{{1024, 1}, {1020, 2}, {-4, 1}, {0, 257}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d elements from byte %d of 1024 were given out", r.elements, r.offset)
				}
			}()
			m.floats(r.offset, r.elements)
		}()
	}
}

const guardVariable = "TENSILE_TEST_GUARD"

// One byte past the end of the arena or of host memory, or one before the page of the start, kills the process: the
// test runs itself as a child that does it.
func TestGuardPages(t *testing.T) {
	if what := os.Getenv(guardVariable); what != "" {
		trespass(t, what)
		return
	}
	for _, what := range []string{"past the arena", "past host memory", "before the arena"} {
		t.Run(what, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestGuardPages$")
			child.Env = append(os.Environ(), guardVariable+"="+what)
			output, err := child.CombinedOutput()
			if err == nil || !strings.Contains(string(output), "inside") {
				t.Fatalf("the child ended with %v, want a fault after it was inside:\n%s", err, output)
			}
			if !strings.Contains(string(output), "SIGSEGV") && !strings.Contains(string(output), "SIGBUS") {
				t.Errorf("the child ended with %v without a fault:\n%s", err, output)
			}
			if strings.Contains(string(output), "outside") {
				t.Errorf("the child wrote %s", what)
			}
		})
	}
}

// trespass writes the last byte of a region, and then one outside.
func trespass(t *testing.T, what string) {
	b := lay(t, open(t), nil)
	b.reserve(3 * align) // no whole page
	m := b.arena
	if what == "past host memory" {
		m = b.kept
	}
	first := unsafe.Pointer(unsafe.SliceData(m.bytes))
	*(*byte)(first) = 1
	*(*byte)(unsafe.Add(first, len(m.bytes)-1)) = 1
	fmt.Println("inside")
	if what == "before the arena" {
		*(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(m.mapping)), os.Getpagesize()-1)) = 1
	} else {
		*(*byte)(unsafe.Add(first, len(m.bytes))) = 1
	}
	fmt.Println("outside")
}

// A new arena has nothing of the one before: it is zero, and NaN throughout where self-checks are on.
func TestNewArena(t *testing.T) {
	b := lay(t, open(t), nil)
	defer b.close()
	for range 2 {
		b.reserve(5 * align)
		for i, f := range b.arena.floats(0, 5*int(align)/4) {
			if math.IsNaN(float64(f)) != invariants.Enabled || !invariants.Enabled && f != 0 {
				t.Fatalf("element %d of a new arena is %v with invariants %t", i, f, invariants.Enabled)
			}
		}
		copy(b.arena.bytes, "leftover")
	}
	b.reserve(0)
	if n := len(b.arena.bytes); n != 0 {
		t.Errorf("an arena of 0 has %d bytes", n)
	}
	for _, size := range []graph.Bytes{1, align - 4, -align} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "cpu: Reserve(") {
					t.Errorf("Reserve(%d): panic %q", size, text)
				}
			}()
			_ = b.Reserve(size)
		}()
	}
}

// Poisoning fills the range with NaN and nothing beside it.
func TestPoison(t *testing.T) {
	b := lay(t, open(t), nil)
	defer b.close()
	b.reserve(4 * align)
	clear(b.arena.bytes)
	b.issue(section(program.Command{Kind: program.Poison, Bytes: align,
		Device: program.Address{Offset: align}}), 0, true)
	next(t, b.device, 1, b)
	for i, f := range b.arena.floats(0, int(align)) {
		if inside := i >= int(align)/4 && i < int(align)/2; math.IsNaN(float64(f)) != inside {
			t.Fatalf("element %d is %v", i, f)
		}
	}
}

// Touched is the end of the highest operand that a command used: not the size of the arena, of the storage behind a
// view, or of an output that was not wanted, and from the last Reserve on.
func TestTouched(t *testing.T) {
	b := lay(t, open(t), nil)
	defer b.close()
	check := func(what string, want graph.Bytes) {
		t.Helper()
		b.rest()
		if got := b.Touched(); got != want {
			t.Errorf("after %s %d bytes are touched, want %d", what, got, want)
		}
	}
	b.reserve(1 << 20)
	check("Reserve", 0)
	op := b.g.Ops[0]
	kernel := program.Command{Kind: program.Kernel, Op: op.ID, Scratch: program.Nowhere,
		Inputs:  []program.Address{{Offset: 8 * align}},
		Outputs: []program.Address{{Offset: 2 * align}}}
	b.issue(section(kernel), 0, true)
	check("a kernel on a view of 64 elements", 8*align+64*4)
	b.issue(section(b.in(parameter, 4*elements, 0)), 0, true)
	check("a copy in", 4*elements)
	b.issue(section(load()), 0, true)
	check("a load", 4*elements)
	kernel.Scratch, kernel.ScratchBytes = program.Address{Offset: 4 * elements}, 12
	b.issue(section(kernel), 0, true)
	check("a kernel with scratch", 4*elements+12)
	b.reserve(8 * elements)
	check("Reserve", 0)
	b.issue(section(b.out(parameter, 16, 0)), 0, true)
	check("a small copy out", 16)
}

// A job has as much host memory for what it copies out within an iteration as its newest program says, and what an
// older one has left there is given back; in Home it has none.
func TestSpilledFollowsProgram(t *testing.T) {
	d := open(t)
	b := lay(t, d, nil)
	defer b.close()
	_, kept := program.HostSlots(b.g)
	ids, err := program.Match(b.g, b.g)
	if err != nil {
		t.Fatal(err)
	}
	for _, spilled := range []graph.Bytes{0, 8192, 8192, 1 << 20, 4096, 0} {
		p := &program.Program{Graph: b.g, Plan: new(plan.Plan), Host: kept + spilled,
			Streams: []program.Unit{program.Host},
			Regions: []program.Memory{program.Arena, program.HostMemory}}
		if err := b.job.bind(p, ids); err != nil {
			t.Fatal(err)
		}
		if got := graph.Bytes(len(b.loaded.spilled.bytes)); got != spilled {
			t.Errorf("%d bytes for what is copied out, want %d", got, spilled)
		}
		if spilled > 0 {
			b.bytes(program.Address{Region: program.Region(program.HostMemory), Offset: kept}, spilled)[spilled-1] = 1
		}
		if spilled == 8192 || spilled == 4096 { // it goes on by the same program, or by another
			b.reserve(0)
			if got := len(b.loaded.spilled.bytes); got != 0 {
				t.Errorf("%d bytes for what is copied out in Home", got)
			}
		}
	}
}
