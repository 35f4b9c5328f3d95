package swapexec

import (
	"strings"
	"testing"

	"tensile/graph"
	"tensile/plan/program"
)

// section lists commands by words: kernel, poison, load and read, or in and out with a size.
func section(words ...string) *program.Section {
	s := &program.Section{Counts: make([]int, program.Units)}
	for i, word := range words {
		kind := map[string]program.Kind{"kernel": program.Kernel, "in": program.In, "out": program.Out,
			"load": program.Load,
			"read": program.Read, "poison": program.Poison}[word]
		stream := program.Stream(kind.Unit())
		s.Commands = append(s.Commands, program.Command{Kind: kind, Stream: stream, Slot: i,
			Storage: graph.StorageID(i), Bytes: 1 << i})
		s.Counts[stream]++
	}
	return s
}

// Only copies count, on their own lane, from their issue to their end; sections in a row add up.
func TestQueues(t *testing.T) {
	var m Machine
	s := section("load", "in", "kernel", "out", "in", "read", "poison")
	check := func(in, out Queue) {
		t.Helper()
		for l, want := range map[program.Unit]Queue{program.CopyIn: in, program.CopyOut: out, program.Compute: {},
			program.Host: {}} {
			if got := m.Queue(l); got != want {
				t.Errorf("lane %s: %+v, want %+v", l, got, want)
			}
		}
	}
	check(Queue{}, Queue{})
	m.Issued(s.Commands)
	check(Queue{2, 2 + 16}, Queue{1, 8})
	m.Issued(s.Commands)
	check(Queue{4, 36}, Queue{2, 16})
	for i := range s.Commands {
		m.Ended(&s.Commands[i])
	}
	check(Queue{2, 18}, Queue{1, 8})
	m.Ended(&s.Commands[4])
	check(Queue{1, 2}, Queue{1, 8})
}

func TestEndOfWhatWasNotIssued(t *testing.T) {
	in, out := section("in", "in"), section("out")
	tests := map[string]func(m *Machine){
		"nothing issued": func(m *Machine) { m.Ended(&in.Commands[0]) },
		"another lane":   func(m *Machine) { m.Issued(in.Commands); m.Ended(&out.Commands[0]) },
		"once too often": func(m *Machine) {
			m.Issued(out.Commands)
			m.Ended(&out.Commands[0])
			m.Ended(&out.Commands[0])
		},
		"more bytes than issued": func(m *Machine) {
			m.Issued(in.Commands)
			m.Ended(&in.Commands[1])
			m.Ended(&in.Commands[1])
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				text, _ := recover().(string)
				if !strings.HasPrefix(text, "swapexec: ") || !strings.Contains(text, "bytes") {
					t.Errorf("panic %q, want one that names the package and the bytes", text)
				}
			}()
			test(new(Machine))
		})
	}
}
