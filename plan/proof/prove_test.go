package proof_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// A job that is told to stop before its first body goes Home by the epilogue right after the prologue. Programs whose
// epilogue copies out what only a body brings to the device lose weights then, and are right otherwise.
func TestWithoutBody(t *testing.T) {
	crafted := 0
	for seed := range uint64(300) {
		s := random(t, seed, graphtest.Options{Ops: 16})
		for _, cmd := range s.c.Body.Commands {
			if cmd.Kind != program.Out || !s.g.Storages[cmd.Storage].Role.Persistent() {
				continue
			}
			bad := s.withProgram()
			cmd.Waits, cmd.Hold, cmd.Version = nil, 0, 0
			bad.c.Epilogue.Commands = append(bad.c.Epilogue.Commands, cmd)
			bad.c.Epilogue.Counts[onCopyOut]++
			switch err := check(bad); {
			case err == nil && !slices.Contains(s.p.Entry, cmd.Storage):
				t.Fatalf("%s: %s is copied out of bytes that nobody has filled", s.name, s.g.Storages[cmd.Storage].Name)
			case err != nil && strings.HasPrefix(err.Error(), "epilogue without a body"):
				crafted++
			}
		}
	}
	if t.Logf("%d programs that are wrong only without a body", crafted); crafted < 20 {
		t.Errorf("%d programs that are wrong only without a body", crafted)
	}
}

// Prove trusts no compiler: what one makes must be of the plan that was asked for, and pass Check. It is not called
// with a plan or a layout that fails.
func TestProveTrustsNoCompiler(t *testing.T) {
	s, other := random(t, 1, graphtest.Options{}), random(t, 2, graphtest.Options{})
	racy := s.withProgram()
	for i := range racy.c.Body.Commands {
		racy.c.Body.Commands[i].Waits = nil
	}
	renamed := s.c.Rename("other", 1)
	calls := 0
	prove := func(p *plan.Plan, l *program.Placement, made *program.Program) error {
		calls = 0
		proven, err := proof.Prove(s.g, p, l, func(*program.Placement) *program.Program { calls++; return made },
			func(int) {})
		if (err == nil) != (proven.Program() == made && made != nil) {
			t.Errorf("Prove returns %v and error %v", proven, err)
		}
		return err
	}
	if err := prove(s.p, s.l, s.c); err != nil || calls != 1 {
		t.Errorf("a good program: %v after %d calls", err, calls)
	}
	for name, bad := range map[string]*program.Program{"nothing": nil, "another job's program": other.c,
		"the program of a copy of the plan": renamed} {
		if err := prove(s.p, s.l, bad); !errors.Is(err, proof.ErrPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wider, stricter := s.withProgram(), s.withProgram()
	wider.c.Arena += align
	stricter.c.Align /= 2
	for name, bad := range map[string]*program.Program{"an arena larger than the layout's": wider.c,
		"another alignment": stricter.c} {
		if err := proof.Check(bad); err != nil {
			t.Errorf("%s: Check says %v", name, err)
		}
		if err := prove(s.p, s.l, bad); !errors.Is(err, proof.ErrBounds) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := prove(s.p, s.l, racy.c); !errors.Is(err, proof.ErrRace) {
		t.Errorf("a program without waits: %v", err)
	}
	invalid, misplaced := s.withPlan(), s.withLayout()
	invalid.p.Steps = invalid.p.Steps[1:]
	misplaced.l.Arena = 0
	if err := prove(invalid.p, s.l, s.c); err == nil || calls > 0 {
		t.Errorf("an invalid plan: %v after %d calls", err, calls)
	}
	if err := prove(s.p, misplaced.l, s.c); err == nil || calls > 0 {
		t.Errorf("a layout without an arena: %v after %d calls", err, calls)
	}
}

// A compiler that changes the plan after it was found valid proves nothing: Check alone does not ask for a valid plan.
// One that changes the layout that it is given does not get a larger arena.
func TestProveKeepsPlan(t *testing.T) {
	for name, spoil := range map[string]func(*plan.Plan){
		"a step less":    func(p *plan.Plan) { p.Steps = p.Steps[:len(p.Steps)-1] },
		"another step":   func(p *plan.Plan) { p.Steps[0].Join = !p.Steps[0].Join },
		"another move":   func(p *plan.Plan) { p.Moves[0].Delay++ },
		"a move less":    func(p *plan.Plan) { p.Moves = p.Moves[1:] },
		"a longer entry": func(p *plan.Plan) { p.Entry = append(p.Entry, 0) },
		"a latency":      func(p *plan.Plan) { p.Made = append(p.Made, 1) },
	} {
		s := network(t, "mlp", 75).withPlan()
		_, err := proof.Prove(s.g, s.p, s.l, func(l *program.Placement) *program.Program {
			made := compile.Compile(s.g, s.p, l, compile.Options{})
			spoil(s.p)
			return made
		}, func(int) {})
		if !errors.Is(err, proof.ErrPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := random(t, 1, graphtest.Options{})
	_, err := proof.Prove(s.g, s.p, s.l, func(l *program.Placement) *program.Program {
		l.Arena += align
		return compile.Compile(s.g, s.p, l, compile.Options{})
	}, func(int) {})
	if !errors.Is(err, proof.ErrBounds) {
		t.Errorf("a compiler that makes the arena larger: %v", err)
	}
}

// Of a layout Prove reads offsets, scratch, arena and alignment: stays that are missing or of another plan do no harm,
// and where no step has scratch a layout need not say so. Multiples of 1 are any bytes.
func TestProveFindsStays(t *testing.T) {
	other := random(t, 3, graphtest.Options{})
	for seed := range uint64(20) {
		s := random(t, seed, graphtest.Options{})
		for _, stays := range []*plan.Stays{nil, other.l.Stays} {
			l := s.withLayout().l
			l.Stays = stays
			proven, err := compile.Prove(s.g, s.p, l, compile.Options{})
			want := compile.Compile(s.g, s.p, s.l, compile.Options{})
			if err != nil || proven.Program().Text() != want.Text() {
				t.Fatalf("%s: %v", s.name, err)
			}
		}
	}
	s := network(t, "mlp", 75).withPlan()
	for i := range s.p.Steps {
		s.p.Steps[i].Scratch = 0
	}
	l, err := compile.Place(s.g, s.p, 1)
	if err != nil {
		t.Fatal(err)
	}
	l.Scratch, l.Arena = nil, graph.MaxTotal // the largest arena there is
	if _, err := compile.Prove(s.g, s.p, l, compile.Options{}); err != nil {
		t.Errorf("%s without scratch, at any byte: %v", s.name, err)
	}
	l.Scratch = slices.Repeat([]graph.Bytes{-1}, len(s.p.Steps))
	if _, err := compile.Prove(s.g, s.p, l, compile.Options{}); err != nil {
		t.Errorf("%s with places for scratch that no step has: %v", s.name, err)
	}
}

// Groups that fail make no Divided, and neither does a program that was not proven.
func TestProveGroupsRefuses(t *testing.T) {
	s := random(t, 1, graphtest.Options{}).divided()
	proven := s.proven(t)
	if d, err := proof.ProveGroups(proven, s.d); err != nil || d.Proven() != proven || d.Groups() != s.d {
		t.Errorf("good groups: %v, %v", d, err)
	}
	if d, err := proof.ProveGroups(proof.Proven{}, s.d); err == nil || d != (proof.Divided{}) {
		t.Errorf("groups of no program: %v, %v", d, err)
	}
	if d, err := proof.ProveGroups(proven, nil); err == nil || d != (proof.Divided{}) {
		t.Errorf("no groups: %v, %v", d, err)
	}
	if p := (proof.Proven{}).Rename("other", 1); p != (proof.Proven{}) {
		t.Errorf("no program by another name: %v", p)
	}
	s.d.Body = s.d.Body[1:]
	if d, err := proof.ProveGroups(proven, s.d); !errors.Is(err, proof.ErrGroups) || d != (proof.Divided{}) {
		t.Errorf("groups without the first: %v, %v", d, err)
	}
}

// Whatever is wrong with a layout, Prove says so in an error.
func TestProveRefuses(t *testing.T) {
	spoils := []struct {
		name  string
		spoil func(rng *rand.Rand, l *program.Placement, s subject) bool // false: there is nothing to spoil
		want  string
	}{
		{"no offsets", func(_ *rand.Rand, l *program.Placement, _ subject) bool { l.Offsets = nil; return true },
			"offsets for"},
		{"an offset too few", func(_ *rand.Rand, l *program.Placement,
			_ subject) bool {
			l.Offsets = l.Offsets[1:]
			return true
		}, "offsets for"},
		{"an offset too many", func(_ *rand.Rand, l *program.Placement, _ subject) bool {
			l.Offsets = append(l.Offsets,
				0)
			return true
		}, "offsets for"},
		{"scratch for too few steps", func(_ *rand.Rand, l *program.Placement, _ subject) bool {
			l.Scratch = l.Scratch[1:]
			return len(l.Scratch) > 0
		}, "of scratch for"},
		{"an offset above", func(rng *rand.Rand, l *program.Placement, _ subject) bool {
			l.Offsets[rng.IntN(len(l.Offsets))] = l.Arena
			return true
		}, "of an arena of"},
		{"an offset below", func(rng *rand.Rand, l *program.Placement, _ subject) bool {
			l.Offsets[rng.IntN(len(l.Offsets))] = -align
			return true
		}, "of an arena of"},
		{"an offset that wraps", func(rng *rand.Rand, l *program.Placement, _ subject) bool {
			l.Offsets[rng.IntN(len(l.Offsets))] = math.MaxInt64 / align * align
			return true
		}, "of an arena of"},
		{"an arena and an offset without end", func(rng *rand.Rand, l *program.Placement, _ subject) bool {
			l.Arena = math.MaxInt64 / align * align
			l.Offsets[rng.IntN(len(l.Offsets))] = l.Arena
			return true
		}, "want a multiple of 64 up to"},
		{"an odd offset", func(rng *rand.Rand, l *program.Placement, _ subject) bool {
			l.Offsets[rng.IntN(len(l.Offsets))] += 4
			l.Arena += align
			return true
		}, "want a multiple of 64 within"},
		{"an odd arena", func(_ *rand.Rand, l *program.Placement, _ subject) bool { l.Arena += 4; return true },
			"want a multiple of 64 up to"},
		{"no arena", func(_ *rand.Rand, l *program.Placement, _ subject) bool { l.Arena = 0; return true },
			"of an arena of"},
		{"a negative arena", func(_ *rand.Rand, l *program.Placement, _ subject) bool { l.Arena = -align; return true },
			"want a multiple"},
		{"no alignment", func(_ *rand.Rand, l *program.Placement, _ subject) bool { l.Align = 0; return true },
			"want a multiple of 0"},
		{"scratch above", func(_ *rand.Rand, l *program.Placement, s subject) bool {
			at := slices.IndexFunc(s.p.Steps, func(step plan.Step) bool { return step.Scratch > 0 })
			if at >= 0 {
				l.Scratch[at] = l.Arena
			}
			return at >= 0
		}, "the scratch of"},
		{"all in one place", func(_ *rand.Rand, l *program.Placement,
			_ subject) bool {
			clear(l.Offsets)
			return len(l.Offsets) > 4
		}, "bytes"},
	}
	for _, test := range spoils {
		tried := 0
		for seed := range uint64(20) {
			s := random(t, seed, graphtest.Options{})
			if _, err := compile.Prove(s.g, s.p, s.l, compile.Options{}); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			bad := s.withLayout()
			if !test.spoil(rand.New(rand.NewPCG(seed, 12)), bad.l, bad) {
				continue
			}
			tried++
			if p, err := compile.Prove(bad.g, bad.p, bad.l, compile.Options{}); p != (proof.Proven{}) || err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Fatalf("%s, %s: %v, want it to contain %q", s.name, test.name, err, test.want)
			}
		}
		if tried < 5 {
			t.Errorf("%s: tried %d times", test.name, tried)
		}
	}
	s := random(t, 1, graphtest.Options{})
	if _, err := compile.Prove(s.g, nil, s.l, compile.Options{}); err == nil ||
		err.Error() != "the layout has no plan" {
		t.Errorf("without a plan: %v", err)
	}
}
