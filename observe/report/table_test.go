package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/internal/golden"
)

func TestWriteTable(t *testing.T) {
	yes, no := true, false
	base := Metrics{Memory: Memory{VanillaAll: 100 << 20, VanillaLive: 80 << 20, SlotPeak: 40 << 20, Arena: 41 << 20,
		MSRAll: 0.6, MSRLive: 0.5}, Touched: 41 << 20, EOR: pointer(1.25), EORLow: pointer(1.1),
		EORHigh: pointer(1.375), CBR: pointer(0.4), Stall: 12.34, Plans: 1, Transition: 5}
	unmeasured := base
	unmeasured.EOR, unmeasured.EORLow, unmeasured.EORHigh, unmeasured.CBR = nil, nil, nil, nil
	r := Training{Total: base, StartEOR: pointer(1.25), FirstEOR: pointer(1.5), Jobs: []JobMetrics{
		{Job: "same", Metrics: base, LossFirst: pointer(2.5), LossLast: pointer(0.12345), BitIdentical: &yes,
			StartEOR: pointer(1.25), FirstEOR: pointer(1.5), Prediction: pointer(0.125)},
		{Job: "other", Metrics: base, LossFirst: pointer(2), LossLast: pointer(1), BitIdentical: &no},
		{Job: "no data", Metrics: unmeasured},
		{Job: "diverged", Metrics: unmeasured, LossFirst: pointer(2), BitIdentical: &yes},
	}}
	const narrow = `
JOB          NEEDS      PLAN  SAVED          SLOWER BY       BITS
same      80.00MiB  41.00MiB   49 %  25 % (10 to 38 %)  identical
other     80.00MiB  41.00MiB   49 %  25 % (10 to 38 %)  DIFFERENT
no data   80.00MiB  41.00MiB   49 %                  -          -
diverged  80.00MiB  41.00MiB   49 %                  -  identical
total     80.00MiB  41.00MiB   49 %  25 % (10 to 38 %)
`
	// Without a vanilla run there is nothing to be slower than, and without data no loss.
	alone := Training{Total: unmeasured, Jobs: []JobMetrics{{Job: "a", Metrics: unmeasured, LossFirst: pointer(2.5),
		LossLast: pointer(1)}}}
	const losses = `
JOB       NEEDS      PLAN  SAVED             LOSS
a      80.00MiB  41.00MiB   49 %  2.5000 > 1.0000
total  80.00MiB  41.00MiB   49 %
`
	simulated := Training{Total: unmeasured, Jobs: []JobMetrics{{Job: "a", Metrics: unmeasured}}}
	const sizes = `
JOB       NEEDS      PLAN  SAVED
a      80.00MiB  41.00MiB   49 %
total  80.00MiB  41.00MiB   49 %
`
	for _, test := range []struct {
		report Training
		want   string
	}{{r, narrow}, {alone, losses}, {simulated, sizes}} {
		var out bytes.Buffer
		if err := test.report.WriteTable(&out, false); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, "\n"+out.String()); diff != "" {
			t.Errorf("table (-want +got):\n%s", diff)
		}
	}
	var wide strings.Builder
	if err := r.WriteTable(&wide, true); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/wide.txt", wide.String())
	for _, wide := range []bool{false, true} {
		if err := r.WriteTable(full{}, wide); !errors.Is(err, errFull) {
			t.Errorf("WriteTable to a full disk: %v", err)
		}
	}
}

func TestSentence(t *testing.T) {
	yes, no := true, false
	memory := Memory{VanillaLive: 896 << 20, Arena: 536 << 20}
	for _, test := range []struct {
		report Training
		want   string
	}{
		{Training{Total: Metrics{Memory: memory, EOR: pointer(1.031)},
			Jobs: []JobMetrics{{BitIdentical: &yes}, {BitIdentical: &yes}}},
			"Trained in 536MiB what needs 896MiB; losses and weights identical; 3 % slower."},
		{Training{Total: Metrics{Memory: memory, EOR: pointer(0.87)}, Jobs: []JobMetrics{{BitIdentical: &yes},
			{BitIdentical: &no}}},
			"Trained in 536MiB what needs 896MiB; losses or weights DIFFERENT; 13 % faster."},
		{Training{Total: Metrics{Memory: memory, EOR: pointer(1.0001)}, Jobs: []JobMetrics{{}}},
			"Trained in 536MiB what needs 896MiB; as fast."},
		{Training{Total: Metrics{Memory: memory}, Jobs: []JobMetrics{{BitIdentical: &yes}}},
			"Trained in 536MiB what needs 896MiB; losses and weights identical."},
		{Training{Total: Metrics{Memory: Memory{VanillaLive: 10 << 20, Arena: 11 << 20}}, Jobs: []JobMetrics{{}}},
			"Trained in 11MiB, as much as without a plan."},
		{Training{Total: Metrics{Memory: memory, EOR: pointer(0.87), EORLow: pointer(0.5), EORHigh: pointer(1.2)},
			Jobs: []JobMetrics{{}}},
			"Trained in 536MiB what needs 896MiB; what the plan costs in time is lost in the noise (-50 % to 20 %)."},
		{Training{Total: Metrics{Memory: memory, EOR: pointer(1.02), EORLow: pointer(0.99), EORHigh: pointer(1.04)},
			Jobs: []JobMetrics{{}}},
			"Trained in 536MiB what needs 896MiB; 2 % slower."},
	} {
		if got := test.report.Sentence(); got != test.want {
			t.Errorf("sentence:\n%s\nwant:\n%s", got, test.want)
		}
	}
}

var errFull = errors.New("full")

// full is a writer that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
