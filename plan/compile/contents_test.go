package compile_test

import (
	"slices"
	"testing"

	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan/compile"
	"tensile/plan/plantest"
	"tensile/plan/program"
)

// stay is how long a byte of the arena holds something: until the last of its uses, or beyond the section.
type stay struct {
	before, after bool
	uses          []int
}

// stays is the slow oracle of Contents: it follows each byte through a section, from those that are read after an
// iteration boundary. A command that reads a byte and writes it updates it in place.
func stays(s subject, section *program.Section, boundary []bool) [][]stay {
	all := make([][]stay, s.c.Arena)
	for b := range all {
		if boundary[b] && section != &s.c.Prologue {
			all[b] = []stay{{before: true}}
		}
	}
	for i := range section.Commands {
		for _, u := range plantest.Spans(s.g, s.c, &section.Commands[i]) { // what is read comes first
			if u.Region != program.Region(program.Arena) {
				continue
			}
			for b := u.From; b < u.To; b++ {
				last := len(all[b]) - 1
				switch {
				case last >= 0 && len(all[b][last].uses) > 0 && slices.Contains(all[b][last].uses, i):
				case u.Write || last < 0:
					all[b] = append(all[b], stay{uses: []int{i}})
				default:
					all[b][last].uses = append(all[b][last].uses, i)
				}
			}
		}
	}
	for b := range all {
		if boundary[b] && section != &s.c.Epilogue {
			all[b][len(all[b])-1].after = true
		}
	}
	return all
}

// boundary returns the bytes of the arena that are read after an iteration boundary before they are written.
func boundary(s subject) []bool {
	live := make([]bool, s.c.Arena)
	for {
		after := slices.Clone(live)
		for _, section := range []*program.Section{&s.c.Body, &s.c.Snapshot, &s.c.Epilogue} {
			before := make([]bool, s.c.Arena)
			if section != &s.c.Epilogue {
				copy(before, live)
			}
			for i := range slices.Backward(section.Commands) {
				readFirst(s, &section.Commands[i], before)
			}
			for b := range before {
				after[b] = after[b] || before[b]
			}
		}
		if slices.Equal(after, live) {
			return live
		}
		live = after
	}
}

// readFirst goes back over a command: live are the bytes that are read after it before they are written, and become
// those before it.
func readFirst(s subject, cmd *program.Command, live []bool) {
	for _, write := range []bool{true, false} {
		for _, u := range plantest.Spans(s.g, s.c, cmd) {
			for b := u.From; u.Region == program.Region(program.Arena) && u.Write == write && b < u.To; b++ {
				live[b] = !write
			}
		}
	}
}

// What Contents lists of each byte is what the oracle has: when it is written, each use of it, and whether it is there
// before and after the section. So what is there after one section is what is there before the next.
func TestContents(t *testing.T) {
	seeds := long.Rounds(60, 300)
	kinds := make(map[[2]bool]int)
	for seed := range seeds {
		contentsOf(t, seed, kinds)
	}
	if len(kinds) != 4 {
		t.Errorf("contents that are there before and after: %v, want some of each kind", kinds)
	}
}

func FuzzContents(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { contentsOf(t, seed, make(map[[2]bool]int)) })
}

// contentsOf compares the contents of a seed's program with the oracle's, and counts them by whether they are there
// before and after.
func contentsOf(t *testing.T, seed uint64, kinds map[[2]bool]int) {
	s := random(t, seed, graphtest.Options{Ops: 16})
	boundary := boundary(s)
	for _, section := range s.c.Sections() {
		want, got := stays(s, section, boundary), make([][]stay, s.c.Arena)
		for _, c := range compile.Contents(s.c, section) {
			kinds[[2]bool{c.Before, c.After}]++
			if c.Bytes <= 0 || c.Storage != compile.NoStorage && c.Bytes != s.g.Storages[c.Storage].Bytes {
				t.Fatalf("%s: %d bytes of storage %d", s.name, c.Bytes, c.Storage)
			}
			for b := c.Offset; b < c.Offset+c.Bytes; b++ {
				got[b] = append(got[b], stay{c.Before, c.After, c.Uses})
			}
		}
		for b := range got {
			slices.SortStableFunc(got[b], func(a, b stay) int { return slices.Compare(a.uses, b.uses) })
			if !slices.EqualFunc(got[b], want[b], func(a, b stay) bool {
				return a.before == b.before && a.after == b.after && slices.Equal(a.uses, b.uses)
			}) {
				t.Fatalf("%s, a section of %d commands: byte %d has contents %v, want %v", s.name,
					len(section.Commands), b, got[b], want[b])
			}
		}
	}
}
