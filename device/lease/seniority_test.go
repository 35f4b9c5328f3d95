package lease

import "testing"

// An iteration that begins after jobs have rejoined is younger than theirs: by that order they would rejoin again.
func TestSeniorityAfterRejoin(t *testing.T) {
	m := NewMachine(Options{})
	m.Step(Input{Rejoin: &Rejoin{Join: Join{Job: "a", Base: 1, Peak: 2, Ask: 1}, Hold: 1, Rest: 2, Seniority: 5}})
	m.Step(Input{Capacity: &Capacity{Pages: 10, Number: 1}})
	m.Step(Input{Join: &Join{Job: "b", Base: 1, Peak: 2, Ask: 1}})
	var begins []Output
	for _, o := range m.Step(Input{Want: &Want{Job: "b", Ask: 2, First: true, Rest: 2, Hold: 2}}) {
		if o.Kind == Grant {
			begins = append(begins, o)
		}
	}
	if len(begins) != 1 || begins[0].Seniority != 6 {
		t.Errorf("b begins: %+v, want seniority 6", begins)
	}
}
