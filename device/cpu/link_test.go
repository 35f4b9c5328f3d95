package cpu

import (
	"testing"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/program"
)

// Two jobs that copy at the same time share a limited link: their bytes together take no less than the rate allows, of
// the device's clock. The other direction has a rate of its own, and no limit means that facts report a measured rate.
func TestLinkLimit(t *testing.T) {
	d := open(t)
	if f := d.Facts(); f.Out.Rate <= 0 || f.In.Rate <= 0 || f.Out.Rate > f.Bandwidth {
		t.Errorf("without a limit the links have rates %v and %v", f.Out.Rate, f.In.Rate)
	}
	const rate cost.BytesPerSecond = 64 << 20
	d.LimitLink(rate)
	if f := d.Facts(); f.Out.Rate > rate || f.In.Rate > rate || f.Out.Rate <= 0 {
		t.Errorf("with a limit of %v the links have rates %v and %v", rate, f.Out.Rate, f.In.Rate)
	}
	const each = 3 // copies per job, in each direction
	a, b := lay(t, d, nil), lay(t, d, nil)
	defer a.close()
	defer b.close()
	for _, x := range []*bed{a, b} {
		x.reserve(4 * elements)
		var commands []program.Command
		for range each {
			commands = append(commands, x.out(input, 4*elements, 0), x.in(parameter, 4*elements, 0))
		}
		x.issue(section(commands...), 0, true)
	}
	next(t, d, 4*each, a, b)
	for _, kind := range []program.Kind{program.Out, program.In} {
		first, last := time.Hour, time.Duration(0)
		var bytes graph.Bytes
		for _, e := range append(a.events, b.events...) {
			if c := e.Section.Commands[e.Index]; c.Kind == kind {
				first, last = min(first, e.Start), max(last, e.End)
				bytes += c.Bytes
			}
		}
		minimum := time.Duration(float64(bytes)/float64(rate)*1e9) - 100*time.Nanosecond // rounded down per piece
		if bytes != 2*each*4*elements || last-first < minimum {
			t.Errorf("copies %s: %s in %v, want %v at least", kind, bytes, last-first, minimum)
		}
	}
}

// Of a share that is below the limit, copies keep to the share, from the next piece on.
func TestLinkShare(t *testing.T) {
	l := newLink(1000)
	for _, test := range []struct{ share, want cost.BytesPerSecond }{{0, 1000}, {300, 300}, {2000, 1000}} {
		if l.setShare(test.share); l.rate() != test.want {
			t.Errorf("a share of %v has a rate of %v, want %v", test.share, l.rate(), test.want)
		}
	}
	d := open(t)
	const rate cost.BytesPerSecond = 64 << 20
	var _ device.LinkSharer = d
	d.ShareLink(rate, 0)
	x := lay(t, d, nil)
	defer x.close()
	x.reserve(4 * elements)
	x.issue(section(x.out(input, 4*elements, 0), x.out(input, 4*elements, 0)), 0, true)
	next(t, d, 2, x)
	minimum := time.Duration(2*4*elements/float64(rate)*1e9) - 100*time.Nanosecond
	if took := x.events[1].End - x.events[0].Start; took < minimum {
		t.Errorf("2 copies of %d bytes took %v, want %v at least", 4*elements, took, minimum)
	}
}

// A copy is the same with a limit and without, in pieces or whole.
func TestLinkCopies(t *testing.T) {
	for _, rate := range []cost.BytesPerSecond{0, 1 << 40} {
		for _, n := range []int{0, 1, piece - 1, piece, 2*piece + 3} {
			from, to := make([]float32, n), make([]float32, n+1)
			for i := range from {
				from[i] = float32(i + 1)
			}
			newLink(rate).copy(to[:n], from)
			for i, v := range to {
				if want := float32(i+1) * float32(min(1, n-i)); v != want {
					t.Fatalf("rate %v, %d elements: element %d is %v, want %v", rate, n, i, v, want)
				}
			}
		}
	}
}
