package compile_test

import (
	"fmt"
	"math"
	"testing"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/compile"
	"tensile/plan/plantest"
	"tensile/plan/program"
	"tensile/plan/proof"
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
			compile.Compile(s.g, s.p, s.l, compile.Options{})
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

// BenchmarkDivide divides programs for pages of 2 MiB and checks the groups. Beside the time it reports MiB of the
// body:
//
//   - arena, and of that base: what is held over the boundary;
//   - peak: the most that a group holds, and used: the most bytes that a command of the body needs;
//   - idle and worst: what is held above the bytes that are needed, as the mean over all commands and at most;
//
// and how many groups there are, the ranges of neighbouring pages that an iteration maps and unmaps (runs), and how
// many would be if each boundary of groups mapped one range or unmapped one, or both (ends).
func BenchmarkDivide(b *testing.B) {
	for _, of := range []struct {
		model   string
		percent int
	}{{"resnet50", 0}, {"resnet50", 50}, {"bert", 0}, {"bert", 50}, {"vgg16", 0}, {"vgg16", 50},
		{"nasnet-mobile", 0}, {"nasnet-mobile", 50}, {"nasnet-large", 0}} {
		s := subjectOf(plantest.NetworkOn(b, "a6000", of.model, 16, of.percent))
		for _, every := range []graph.Bytes{0, 2, 32, 64, 256} {
			b.Run(fmt.Sprintf("model=%s/budget=%d/every=%d", of.model, of.percent, every), func(b *testing.B) {
				var d *program.Groups
				for b.Loop() {
					d = compile.Divide(s.c, 2*graph.MiB, every*graph.MiB)
					if err := proof.CheckGroups(s.c, d); err != nil {
						b.Fatal(err)
					}
				}
				reportGroups(b, s, d)
			})
		}
		for _, do := range []string{"divide", "check", "prove"} {
			b.Run(fmt.Sprintf("model=%s/budget=%d/every=64/do=%s", of.model, of.percent, do), func(b *testing.B) {
				d := compile.Divide(s.c, 2*graph.MiB, 64*graph.MiB)
				for b.Loop() {
					var err error
					switch do {
					case "divide":
						compile.Divide(s.c, 2*graph.MiB, 64*graph.MiB)
					case "check":
						err = proof.CheckGroups(s.c, d)
					default: // the proof of the program, to compare with
						err = check(s)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// reportGroups reports the metrics of BenchmarkDivide.
func reportGroups(b *testing.B, s subject, d *program.Groups) {
	exact := compile.Divide(s.c, 1, 1).Body // a page is a byte, and whatever changes begins a group
	used, peak, worst, idle, at := 0, 0, 0, 0.0, 0
	for _, g := range exact {
		for d.Body[at].To < g.To {
			at++
		}
		for i := g.From; i < g.To; i++ {
			k := at
			for d.Body[k].From > i {
				k--
			}
			excess := d.Body[k].Need.Count()*int(d.Page) - g.Need.Count()
			worst, idle = max(worst, excess), idle+float64(excess)
		}
		used = max(used, g.Need.Count())
	}
	runs, ends, before := 0, 0, d.Base
	for i := range len(d.Body) + 1 {
		need := d.Base // after the last group
		if i < len(d.Body) {
			need = d.Body[i].Need
			peak = max(peak, need.Count())
		}
		for _, changed := range []program.Pages{need.Without(before), before.Without(need)} {
			runs += len(changed)
			ends += min(1, len(changed))
		}
		before = need
	}
	mib := func(bytes float64) float64 { return math.Round(bytes/float64(graph.MiB)*10) / 10 }
	pages := func(n int) float64 { return mib(float64(n) * float64(d.Page)) }
	b.ReportMetric(float64(len(d.Body)), "groups")
	b.ReportMetric(mib(float64(s.c.Arena)), "arena-MiB")
	b.ReportMetric(pages(d.Base.Count()), "base-MiB")
	b.ReportMetric(mib(float64(used)), "used-MiB")
	b.ReportMetric(pages(peak), "peak-MiB")
	b.ReportMetric(mib(idle/float64(len(s.c.Body.Commands))), "idle-MiB")
	b.ReportMetric(mib(float64(worst)), "worst-MiB")
	b.ReportMetric(float64(runs), "runs")
	b.ReportMetric(float64(ends), "ends")
}
