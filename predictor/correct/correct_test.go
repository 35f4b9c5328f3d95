package correct

import (
	"testing"
	"time"

	_ "tensile/internal/long" // the flag -long
)

func TestLatency(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name            string
		known, reported time.Duration
		alpha           float64
		first           bool
		want            time.Duration
	}{
		{"the same", 10 * ms, 10 * ms, 0.3, false, 10 * ms},
		{"a part of the way", 10 * ms, 20 * ms, 0.3, false, 13 * ms},
		{"down", 10 * ms, 5 * ms, 0.5, false, 7500 * time.Microsecond},
		{"all of it", 10 * ms, 20 * ms, 1, false, 20 * ms},
		{"an outlier", 10 * ms, 10 * time.Second, 0.5, false, 45 * ms},
		{"an outlier down", 80 * ms, 1, 0.5, false, 45 * ms},
		{"warm-up", 10 * ms, 100 * ms, 0.5, true, 15 * ms},
		{"nothing was known", 0, 6 * ms, 0.5, false, 3 * ms},
	} {
		if got := Latency(test.known, test.reported, test.alpha, test.first); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// A real change is found within a few reports, however large; one outlier among good reports is forgotten.
func TestLatencyFollows(t *testing.T) {
	known := time.Millisecond
	for range 20 {
		known = Latency(known, 500*time.Millisecond, 0.3, false)
	}
	near := func(want time.Duration) bool {
		return Drift([]time.Duration{known}, []time.Duration{want}) <= 0.01
	}
	if !near(500 * time.Millisecond) {
		t.Errorf("after 20 reports of 500 ms: %v", known)
	}
	known = Latency(time.Millisecond, time.Second, 0.3, false)
	for range 20 {
		known = Latency(known, time.Millisecond, 0.3, false)
	}
	if !near(time.Millisecond) {
		t.Errorf("20 reports after an outlier: %v", known)
	}
}

func TestDrift(t *testing.T) {
	for _, test := range []struct {
		now, planned []time.Duration
		want         float64
	}{
		{[]time.Duration{110}, []time.Duration{100}, 0.1},
		{[]time.Duration{90}, []time.Duration{100}, 0.1},
		{[]time.Duration{100}, []time.Duration{100}, 0},
		{[]time.Duration{5}, []time.Duration{0}, 5},
		{[]time.Duration{90, 10}, []time.Duration{80, 20}, 0.2}, // not hidden by each other
		{nil, nil, 0},
	} {
		if got := Drift(test.now, test.planned); got != test.want {
			t.Errorf("Drift(%v, %v) = %v, want %v", test.now, test.planned, got, test.want)
		}
	}
}
