package devicetest

import (
	"slices"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/randtest"
)

// The streams of renumbered programs.
const (
	loads program.Stream = iota
	copiesIn
	reads
	copiesOut
	kernels
)

// renumbered returns a program that does the same by other numbers: streams and regions are permuted, and what the host
// does lies on two streams.
func renumbered(p *program.Program) *program.Program {
	q := *p
	q.Streams = []program.Unit{program.Host, program.CopyIn, program.Host, program.CopyOut, program.Compute}
	q.Regions = []program.Memory{program.HostMemory, program.Arena}
	for _, s := range q.Sections() {
		r := &renumberer{p: p, host: hostCommands(p, s)}
		s.Commands, s.Counts = slices.Clone(s.Commands), make([]int, len(q.Streams))
		for i := range s.Commands {
			r.command(&s.Commands[i])
			s.Counts[s.Commands[i].Stream]++
		}
	}
	return &q
}

type renumberer struct {
	p    *program.Program
	host []program.Stream // of the section's commands of the host, in their order
	seen int              // commands of the host so far
}

func hostCommands(p *program.Program, s *program.Section) (streams []program.Stream) {
	for _, c := range s.Commands {
		if p.Streams[c.Stream] == program.Host {
			streams = append(streams, streamOf(c.Kind))
		}
	}
	return streams
}

func streamOf(k program.Kind) program.Stream {
	return map[program.Kind]program.Stream{program.Kernel: kernels, program.Poison: kernels, program.Out: copiesOut,
		program.In: copiesIn, program.Load: loads, program.Read: reads}[k]
}

func (r *renumberer) command(c *program.Command) {
	old := c.Waits
	c.Waits = nil
	for _, w := range old {
		c.Waits = append(c.Waits, r.points(w)...)
	}
	if r.p.Streams[c.Stream] == program.Host { // it still comes after all of the host before it
		c.Waits = append(c.Waits, r.points(program.Point{Stream: c.Stream, Count: r.seen})...)
		r.seen++
	}
	c.Stream = streamOf(c.Kind)
	c.Inputs, c.Outputs = addresses(c.Inputs), addresses(c.Outputs)
	c.Scratch, c.Device, c.Host = address(c.Scratch), address(c.Device), address(c.Host)
}

// points returns the points that are reached when another one is.
func (r *renumberer) points(w program.Point) []program.Point {
	switch r.p.Streams[w.Stream] {
	case program.Compute:
		return []program.Point{{Stream: kernels, Count: w.Count}}
	case program.CopyOut:
		return []program.Point{{Stream: copiesOut, Count: w.Count}}
	case program.CopyIn:
		return []program.Point{{Stream: copiesIn, Count: w.Count}}
	}
	of := func(s program.Stream) program.Point {
		count := func(list []program.Stream) (n int) {
			for _, other := range list {
				if other == s {
					n++
				}
			}
			return n
		}
		if w.Count > 0 {
			return program.Point{Stream: s, Count: count(r.host[:w.Count])}
		}
		return program.Point{Stream: s, Count: -count(r.host[len(r.host)+w.Count:])}
	}
	return []program.Point{of(loads), of(reads)}
}

func addresses(all []program.Address) []program.Address {
	all = slices.Clone(all)
	for i := range all {
		all[i] = address(all[i])
	}
	return all
}

func address(a program.Address) program.Address {
	if a != program.Nowhere {
		a.Region = 1 - a.Region
	}
	return a
}

// numbers runs programs whose streams and regions have other numbers than those that Compile gives: they are bound as
// the program says, whatever was loaded before.
func numbers(c *crew) {
	for _, g := range []*graph.Graph{Tiny(), Zoo()} {
		want := c.run(g, 4, Build(c.t, c.d, g, KeepAll(g), compile.Options{}))
		for seed := range uint64(4) {
			plain := shuffled(c, g, seed, compile.Options{Poison: seed%2 == 0})
			other, err := randtest.Prove(renumbered(plain.Program()))
			if err != nil {
				c.t.Fatal(err)
			}
			compareBits(c.t, "renumbered", c.run(g, 2, plain, other), want)
			compareBits(c.t, "numbered again", c.run(g, 2, other, plain), want)
		}
	}
}
