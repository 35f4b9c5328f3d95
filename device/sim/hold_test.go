package sim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/device/sim"
	"tensile/plan/program"
)

func TestHold(t *testing.T) {
	in, out := program.In, program.Out
	kernels := func(n int) program.Point { return at(program.Compute, n) }
	ins := func(n int) program.Point { return at(program.CopyIn, n) }
	outs := func(n int) program.Point { return at(program.CopyOut, n) }
	one := func(c ...program.Command) []*program.Section { return []*program.Section{section(c...)} }
	for _, test := range []struct {
		name     string
		sections []*program.Section // the second is drained
		want     string
	}{
		{"nothing waits: the whole pause", one(kernel(), copies(out, 7, 50, kernels(1))), `
 0.0 kernel 0..10
 0.1 out    held 10 60..70
`},
		{"the compute lane waits: at once", one(kernel(), copies(in, 7, 50), kernel(ins(1))), `
 0.0 kernel 0..10
 0.1 in     held 0 10..20
 0.2 kernel 20..30
`},
		{"it waits later than the pause ends: the pause", one(kernel(), copies(in, 7, 4), kernel(ins(1))), `
 0.0 kernel 0..10
 0.1 in     held 0 4..14
 0.2 kernel 14..24
`},
		{"through another copy, which waits itself", one(copies(out, 7, 50), copies(in, 7, 50, outs(1)),
			kernel(ins(1))), `
 0.0 out    0..10
 0.1 in     10..20
 0.2 kernel 20..30
`},
		{"through a copy that stands behind another in its lane", one(kernel(), copies(in, 37, 0),
			copies(out, 7, 500, kernels(1)),
			copies(in, 7, 0, outs(1)), kernel(ins(2))), `
 0.0 kernel 0..10
 0.2 out    10..20
 0.1 in     0..40
 0.3 in     40..50
 0.4 kernel 50..60
`},
		{"and everything before it in its lane", one(copies(in, 7, 500), copies(in, 7, 500), kernel(ins(2)),
			copies(in, 7, 40)), `
 0.0 in     0..10
 0.1 in     10..20
 0.2 kernel 20..30
 0.3 in     held 20 60..70
`},
		{"the reader waits, but not before its copy is triggered", one(kernel(), copies(out, 7, 15, kernels(1)),
			kernel(), kernel(),
			copies(out, 7, 500, kernels(3)), read(outs(2))), `
 0.0 kernel 0..10
 0.2 kernel 10..20
 0.3 kernel 20..30
 0.1 out    held 10 25..35
 0.4 out    35..45
 0.5 read   45..45
`},
		{"a drain waits for all", []*program.Section{section(kernel(), copies(out, 7, 500, kernels(1))),
			section(kernel())}, `
 0.0 kernel 0..10
 0.1 out    10..20
 1.0 kernel 20..30
`},
	} {
		d := plain(0, sim.Options{})
		j := open(t, d, chain(t, 1), "")
		n := 0
		for i, s := range test.sections {
			sim.Issue(j, s, i, true)
			n += len(s.Commands)
		}
		if diff := cmp.Diff(test.want, "\n"+trace(events(t, d, n), map[device.Job]string{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// A section may wait for the one before it, and a drained one waits for no earlier one by its points.
func TestPreviousRun(t *testing.T) {
	body := section(copies(program.In, 17, 0, at(program.Compute, 0)), kernel(at(program.CopyIn, 1)),
		kernel(at(program.CopyOut, -1)), copies(program.Out, 7, 0), copies(program.Out, 37, 0))
	d := plain(0, sim.Options{})
	j := open(t, d, chain(t, 1), "")
	for i, drain := range []bool{true, false, true} {
		sim.Issue(j, body, i, drain)
	}
	// Of body 1 the copy in waits for the last kernel of body 0; its second kernel for the first copy out of body 0.
	want := ` 0.3 out    0..10
 0.0 in     0..20
 0.1 kernel 20..30
 0.2 kernel 30..40
 0.4 out    10..50
 1.3 out    50..60
 1.0 in     40..60
 1.1 kernel 60..70
 1.2 kernel 70..80
 1.4 out    60..100
 2.3 out    100..110
 2.0 in     100..120
 2.1 kernel 120..130
 2.2 kernel 130..140
 2.4 out    110..150
`
	if diff := cmp.Diff(want, trace(events(t, d, 15), map[device.Job]string{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
