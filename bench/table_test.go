package bench

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteTable(t *testing.T) {
	yes, no := true, false
	base := Metrics{Memory: Memory{VanillaAll: 100 << 20, VanillaLive: 80 << 20, SlotPeak: 40 << 20, Arena: 41 << 20,
		MSRAll: 0.6, MSRLive: 0.5}, Touched: 41 << 20, EOR: pointer(1.25), EORLow: pointer(1.1), EORHigh: pointer(1.375), CBR: pointer(0.4), Stall: 12.34, Plans: 1, Transition: 5}
	unmeasured := base
	unmeasured.EOR, unmeasured.EORLow, unmeasured.EORHigh, unmeasured.CBR = nil, nil, nil, nil
	r := Report{Total: base, Jobs: []JobMetrics{
		{Job: "same", Metrics: base, LossFirst: pointer(2.5), LossLast: pointer(0.12345), BitIdentical: &yes, FirstEOR: pointer(1.5), Prediction: pointer(0.125)},
		{Job: "other", Metrics: base, LossFirst: pointer(2), LossLast: pointer(1), BitIdentical: &no},
		{Job: "no data", Metrics: unmeasured},
		{Job: "diverged", Metrics: unmeasured, LossFirst: pointer(2), BitIdentical: &yes},
	}}
	const want = `
       job  vanilla all  vanilla live  slot peak  arena  touched  MSR all  MSR live                  EOR    CBR  stall ms  plans  transition ms  first EOR  prediction error             loss       bits
      same       100MiB         80MiB      40MiB  41MiB    41MiB    0.600     0.500  1.25 (1.10 to 1.38)  0.400      12.3      1            5.0      1.500              12 %  2.5000 > 0.1235  identical
     other       100MiB         80MiB      40MiB  41MiB    41MiB    0.600     0.500  1.25 (1.10 to 1.38)  0.400      12.3      1            5.0          -                 -  2.0000 > 1.0000  DIFFERENT
   no data       100MiB         80MiB      40MiB  41MiB    41MiB    0.600     0.500                    -      -      12.3      1            5.0          -                 -                -          -
  diverged       100MiB         80MiB      40MiB  41MiB    41MiB    0.600     0.500                    -      -      12.3      1            5.0          -                 -                -  identical
     total       100MiB         80MiB      40MiB  41MiB    41MiB    0.600     0.500  1.25 (1.10 to 1.38)  0.400      12.3      1            5.0                                                         
`
	var out bytes.Buffer
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, "\n"+out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if err := r.WriteTable(full{}); !errors.Is(err, errFull) {
		t.Errorf("WriteTable to a full disk: %v", err)
	}
}

var errFull = errors.New("full")

// full is a writer that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
