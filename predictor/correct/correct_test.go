package correct

import (
	"testing"
	"time"
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
	if Drift(known, 500*time.Millisecond) > 0.01 {
		t.Errorf("after 20 reports of 500 ms: %v", known)
	}
	known = Latency(time.Millisecond, time.Second, 0.3, false)
	for range 20 {
		known = Latency(known, time.Millisecond, 0.3, false)
	}
	if Drift(known, time.Millisecond) > 0.01 {
		t.Errorf("20 reports after an outlier: %v", known)
	}
}

func TestDrift(t *testing.T) {
	for _, test := range []struct {
		now, planned time.Duration
		want         float64
	}{{110, 100, 0.1}, {90, 100, 0.1}, {100, 100, 0}, {5, 0, 5}} {
		if got := Drift(test.now, test.planned); got != test.want {
			t.Errorf("Drift(%d, %d) = %v, want %v", test.now, test.planned, got, test.want)
		}
	}
}
