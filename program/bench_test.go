package program_test

import (
	"testing"

	"tensile/cost"
	"tensile/program"
)

// BenchmarkProgram compiles, checks and times the program of a network that swaps.
func BenchmarkProgram(b *testing.B) {
	s := network(b, "resnet50", 60)
	facts, err := cost.Device("v100")
	if err != nil {
		b.Fatal(err)
	}
	d := program.Durations{Steps: s.p.Made, Out: facts.Out, In: facts.In}
	b.Run("do=compile", func(b *testing.B) {
		for b.Loop() {
			program.Compile(s.g, s.p, s.l, program.Options{})
		}
	})
	b.Run("do=check", func(b *testing.B) {
		for b.Loop() {
			if err := check(s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("do=time", func(b *testing.B) {
		for b.Loop() {
			program.Time(s.c, d)
		}
	})
}
