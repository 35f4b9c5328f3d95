package agent

import "testing"

// An executor without work does not wait for ever for a controller that is away.
func TestLeavesWhenAlone(t *testing.T) {
	online, offline := true, false
	m := NewMachine("x1", "life", "sim:test")
	m.Step(Input{Online: &online})
	beat := func() bool {
		for _, o := range m.Step(Input{Tick: true}) {
			if o.Leave {
				return true
			}
		}
		return false
	}
	for range 2 * longestAlone {
		if beat() {
			t.Fatal("left while the controller was there")
		}
	}
	m.Step(Input{Online: &offline})
	beats := 1
	for !beat() {
		if beats++; beats > 2*longestAlone {
			t.Fatal("still there")
		}
	}
	if beats != longestAlone+1 {
		t.Errorf("left after %d heartbeats, want %d", beats, longestAlone+1)
	}
}
