package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/plan/program"
)

// A kernel waits for its pages on the host: each takes 7 ns, and 3 + 512 ns on the link. Two pages fit.
func TestUnified(t *testing.T) {
	const page = 512
	using := func(in, out graph.Bytes) program.Command {
		c := kernel()
		c.Inputs = []program.Address{{Offset: in * page}}
		c.Outputs = []program.Address{{Offset: out * page}}
		return c
	}
	for _, test := range []struct {
		name   string
		memory graph.Bytes
		jobs   [][]program.Command
		want   string
	}{
		{"the page that came first makes room, though it was used since", 2, [][]program.Command{
			{using(0, 1), using(1, 2), using(2, 1), using(0, 1), using(1, 0)}}, `
0 0.0 kernel 0..1054
0 0.1 kernel 1054..1586
0 0.2 kernel 1586..1596
0 0.3 kernel 1596..2650
0 0.4 kernel 2650..2660
`},
		{"faults of jobs share the link, and kernels the unit", 4, [][]program.Command{
			{using(0, 1), using(0, 1)}, {using(0, 1), using(0, 1)}}, `
0 0.0 kernel 0..2108
1 0.0 kernel 0..2108
0 0.1 kernel 2108..2128
1 0.1 kernel 2108..2128
`},
		// Job 1 has half of the link until 1044 and from 1054 to 2078. Both its pages come again.
		{"one takes the other's pages", 2, [][]program.Command{
			{using(0, 0), using(0, 0)}, {using(0, 1), using(0, 1)}}, `
0 0.0 kernel 0..1054
1 0.0 kernel 0..2088
0 0.1 kernel 1054..2098
1 0.1 kernel 2088..3142
`},
	} {
		d := plain(test.memory*page, sim.Options{Page: page, Fault: 7})
		names := make(map[device.Job]string)
		n := 0
		for i, commands := range test.jobs {
			j := open(t, d, chain(t, 1), fmt.Sprint(i))
			names[j] = fmt.Sprint(i)
			sim.Issue(j, section(commands...), 0, false)
			n += len(commands)
		}
		if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), trace(events(t, d, n), names)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
