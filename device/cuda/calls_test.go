package cuda_test

import (
	"maps"
	"slices"
	"testing"

	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
	"tensile/plan/compile"
	"tensile/plan/program"
)

// TestCalls counts the driver's calls per body: none waits for the device on the thread that issues, and what is waited
// for elsewhere is an event per stream and one per copy that the loader or the reader waits for. A plan with three
// times as many commands has at most two more, where it moves what is loaded or read.
func TestCalls(t *testing.T) {
	g, constant := devicetest.Zoo(), 0
	for plan := range uint64(3) {
		var perBody []map[string]float64
		var p *program.Program
		for _, bodies := range []int{4, 8} { // against twice as many
			counts := map[string]float64{}
			for _, n := range []int{bodies, 2 * bodies} {
				driver := fakecuda.New(fakecuda.Options{})
				d := open(t, driver)
				proven := devicetest.Build(t, d, g, devicetest.KeepAll(g), compile.Options{})
				if plan > 0 {
					proven = shuffled(t, d, g, plan)
				}
				p = proven.Program()
				if _, err := train(t, d, proven, n); err != nil {
					t.Fatal(err)
				}
				for call, count := range driver.Calls() {
					if n == bodies {
						count = -count
					}
					counts[call] += float64(count) / float64(bodies)
				}
				closed(t, d)
			}
			perBody = append(perBody, counts)
		}
		waits, kernels, limit := 0, 0, 0
		for _, c := range p.Body.Commands {
			waits += len(c.Waits)
			if c.Kind == program.Kernel {
				kernels++
			} else if c.Kind.Unit() == program.Host {
				limit += len(c.Waits)
			}
		}
		for s, n := range p.Body.Counts {
			if n > 0 && p.Streams[s] != program.Host {
				limit++
			}
		}
		t.Logf("plan %d: %d kernels, %d waits, %d commands; calls per body, of which cuEventSynchronize at most %d:",
			plan, kernels, waits, len(p.Body.Commands), limit)
		for _, call := range slices.Sorted(maps.Keys(perBody[1])) {
			n := perBody[1][call]
			if n != 0 {
				t.Logf("  %-24s %6.2f", call, n)
			}
			switch call {
			case "cuCtxSynchronize", "cuMemAlloc", "cuMemFree", "cuMemHostRegister", "cuEventQuery",
				"cuStreamSynchronize", "cuStreamCreate":
				if n != 0 || perBody[0][call] != 0 {
					t.Errorf("plan %d: %v calls of %s per body, want none", plan, n, call)
				}
			case "cuEventSynchronize": // a Watch: by another thread
				if constant == 0 {
					constant = limit
				}
				if n > float64(limit) || n != perBody[0][call] || limit > constant+2 {
					t.Errorf("plan %d: %v events are watched per body, and %v of fewer bodies, want %v at most, and "+
						"%v without a plan", plan, n, perBody[0][call], limit, constant)
				}
			}
		}
	}
}
