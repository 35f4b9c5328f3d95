package agent

import (
	"testing"
	"time"
)

// An executor whose jobs train without a controller has them leave when that has lasted for as long as it was told.
func TestOrphan(t *testing.T) {
	const orphan = 10 * time.Minute // before it would leave for want of work
	m := NewMachine(Process{Executor: "x1", Life: "life", Device: "sim:test", Orphan: orphan})
	online, offline := true, false
	m.Step(time.Second, Input{Online: &online})
	since := 2 * orphan
	m.Step(since, Input{Tick: true})
	m.Step(since, Input{Online: &offline})
	if out := m.Step(since+orphan, Input{Tick: true}); len(out) > 0 {
		t.Errorf("after %v it says %+v", orphan, out)
	}
	out := m.Step(since+orphan+time.Second, Input{Tick: true})
	if len(out) != 1 || !out[0].Leave {
		t.Errorf("after more than %v it says %+v, want to leave", orphan, out)
	}
	if _, ok := m.Farewell().(*InterruptedError); !ok {
		t.Errorf("it leaves for %v", m.Farewell())
	}
}

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
