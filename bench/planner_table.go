package bench

import (
	"fmt"
	"io"
	"text/tabwriter"

	"tensile/graph"
)

// WriteTables prints the report for people.
func (r *PlannerReport) WriteTables(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s: all swaps that cost no time, planned, packed and proven; the least of several times\n",
		r.Device)
	fmt.Fprintln(t, "model\tops\tswaps\tslot peak\tarena\tplan ms\tns per op\tpack ms\tvalidate ms\tcompile "+
		"ms\tcheck ms\tthese four\t")
	for _, c := range r.Scaling {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%.3f\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", c.Model, c.Ops, c.Swaps,
			c.SlotPeak, c.Arena, c.Plan, c.PerOp, c.Pack, c.Validate, c.Compile, c.Check, c.Proven())
	}
	fmt.Fprintln(t, "\nplanned again after new latencies")
	fmt.Fprintln(t, "jobs\tops each\tbudget\tplan ms\twith packing and proofs ms\t")
	for _, c := range r.Replan {
		budget := fmt.Sprintf("%.0f%%", 100*c.Budget)
		if c.Budget == 0 {
			budget = "free swaps"
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%.2f\t%.2f\t\n", c.Jobs, c.Ops, budget, c.Plan, c.All)
	}
	fmt.Fprintln(t, "\nwithout one part of the planner (-: no plan fits)")
	fmt.Fprintln(t, "model\tbudget\twithout\tslot peak\tarena\tzero stall\tMSR live\tEOR\tswaps\trecomputes\tplan ms\t")
	for _, a := range r.Ablation {
		if a.SlotPeak == 0 {
			fmt.Fprintf(t, "%s\t%s\t%s\t-\t-\t-\t-\t-\t-\t-\t-\t\n", a.Model, a.Budget, a.Without)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.3f\t%.4f\t%d\t%d\t%.2f\t\n", a.Model, a.Budget, a.Without, a.SlotPeak,
			a.Arena, a.Bound, a.MSRLive, a.EOR, a.Swaps, a.Recomputes, a.Plan)
	}
	fmt.Fprintln(t, "\nplans for predicted latencies, and for those that ops take; EOR with the latter")
	fmt.Fprintln(t, "model\tbudget\terror\tphase\tslot peak\tMSR live\tEOR\t")
	for _, p := range r.Phases {
		fmt.Fprintf(t, "%s\t%s\t%.1f\t%s\t%s\t%.3f\t%.4f\t\n", p.Model, p.Budget, p.Error, p.Phase,
			graph.Bytes(p.SlotPeak), p.MSRLive, p.EOR)
	}
	return t.Flush()
}
