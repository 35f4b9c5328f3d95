package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"tensile/device"
	"tensile/device/sim"
	"tensile/plan/program"
)

// Pages of all jobs together fit the device's memory, and PeakHeld is the most that they had.
func TestPages(t *testing.T) {
	const page = 512
	d := plain(6*page, sim.Options{Page: page})
	g := chain(t, page) // three storages of four pages
	p := proven(t, d, g)
	paged := func(name string) device.PagedJob {
		opened, err := d.Open(g, device.JobOptions{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		j := opened.(device.PagedJob)
		for _, err := range []error{j.Hold(nil), j.Load(p), j.Reserve(12 * page)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return j
	}
	a, b := paged("a"), paged("b")
	hold := func(j device.PagedJob, ranges ...program.PageRange) string {
		return fmt.Sprint(j.Hold(ranges))
	}
	for _, step := range []struct{ got, want string }{
		{hold(a, program.PageRange{From: 0, To: 4}), "<nil>"},
		{hold(b, program.PageRange{From: 3, To: 4}, program.PageRange{From: 5, To: 6}), "<nil>"},
		{hold(b, program.PageRange{From: 3, To: 6}),
			`sim: reserve 1.5KiB for job "b": 1KiB of the 3KiB of sim:plain are free`},
		{hold(a, program.PageRange{From: 7, To: 9}), "<nil>"},
		{hold(b, program.PageRange{From: 3, To: 6}), "<nil>"},
		{fmt.Sprint(b.Reserve(0)), "<nil>"},
		{hold(a, program.PageRange{From: 0, To: 7}), `sim: reserve 3.5KiB for job "a": 3KiB of the 3KiB`},
	} {
		if !strings.HasPrefix(step.got, step.want) {
			t.Errorf("got %s, want %s", step.got, step.want)
		}
	}
	if got := d.PeakHeld(); got != 6*page {
		t.Errorf("%v were held, want %v", got, 6*page)
	}
	panics := func(want string, do func()) {
		t.Helper()
		defer func() {
			if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
				t.Errorf("panic %q, want %q", got, want)
			}
		}()
		do()
	}
	body := &p.Program().Body
	panics(`sim: Issue to job "a" of a in that uses other pages`, func() {
		a.Issue(body, 0, len(body.Commands), 0, true)
	})

	// What was issued and has not ended keeps its pages.
	d.Close()
	d = plain(0, sim.Options{Page: page})
	a = paged("a")
	if got := hold(a, program.PageRange{From: 0, To: 12}); got != "<nil>" {
		t.Fatal(got)
	}
	a.Issue(body, 0, len(body.Commands), 0, true)
	panics(`sim: Hold by job "a" takes pages [0-11], which a `, func() { hold(a) })
}
