package agent

import (
	"testing"
	"time"
)

// An executor without work does not wait for ever for a controller that is away: it leaves after an hour, however often
// its heart beats.
func TestLeavesWhenAlone(t *testing.T) {
	online, offline := true, false
	for _, heartbeat := range []time.Duration{time.Second, 10 * time.Second} {
		m := NewMachine(Process{Executor: "x1", Life: "life", Device: "sim:test"})
		var now time.Duration
		step := func(in Input) (leave bool) {
			now += heartbeat
			for _, o := range m.Step(now, in) {
				leave = leave || o.Leave
			}
			return leave
		}
		step(Input{Online: &online})
		for now < 2*longestAlone {
			if step(Input{Tick: true}) {
				t.Fatal("left while the controller was there")
			}
		}
		since := now
		for left := step(Input{Online: &offline}); !left; left = step(Input{Tick: true}) {
			if now > since+2*longestAlone {
				t.Fatal("still there")
			}
		}
		if alone := now - since; alone != longestAlone+heartbeat {
			t.Errorf("left after %v, want %v", alone, longestAlone+heartbeat)
		}
	}
}
