package lease

import (
	"fmt"
	"testing"
)

// Two jobs whose peaks do not fit together are granted groups in turn: the younger waits where its group would be in
// the way of the older one.
func TestTwo(t *testing.T) {
	m := NewMachine(Options{})
	step := func(in Input, want string) {
		t.Helper()
		if got := fmt.Sprint(m.Step(in)); got != want {
			t.Errorf("%+v: %s, want %s", in, got, want)
		}
	}
	step(Input{Capacity: &Capacity{Pages: 10}}, "[]")
	step(Input{Join: &Join{Job: "a", Ask: 1, Base: 1, Peak: 8}}, "[grant a]")
	step(Input{Join: &Join{Job: "b", Ask: 1, Base: 1, Peak: 8}}, "[grant b]")
	step(Input{Want: &Want{Job: "a", Ask: 2, First: true, Rest: 8, Hold: 2}}, "[grant a]")
	step(Input{Want: &Want{Job: "b", Ask: 2, First: true, Rest: 8, Hold: 2}}, "[grant b]")
	step(Input{Want: &Want{Job: "b", Ask: 3, Rest: 8, Hold: 3}}, "[]")
	step(Input{Want: &Want{Job: "a", Ask: 3, Rest: 8, Hold: 8}}, "[grant a]")
	step(Input{Want: &Want{Job: "a", Ask: 4, Last: true, Rest: 2, Hold: 8}}, "[grant a]")
	step(Input{Passed: &Passed{Job: "a", Seen: 4, Hold: 1}}, "[grant b]")
}
