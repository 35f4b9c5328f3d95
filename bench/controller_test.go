package bench

import (
	"testing"
	"time"

	"tensile/internal/long"
)

// A small crowd joins, gets its jobs, reports, and is planned for again, all of it over a real server.
func TestMeasureController(t *testing.T) {
	long.Only(t)
	r, err := MeasureController(t.Context(), t.TempDir(), ControllerOptions{Executors: 5, Jobs: 2, Reports: 200,
		For: 100 * time.Millisecond, Model: "lenet"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Put.Samples == 0 || r.OrdersUnderLoad.Samples == 0 || r.Admitted.Samples != 2 || !(r.Put.P50 > 0) ||
		r.Put.P99 < r.Put.P50 {
		t.Errorf("orders %+v, under load %+v, admitted %+v", r.Put, r.OrdersUnderLoad, r.Admitted)
	}
	if r.ReportsSent == 0 || r.ReportsLost != 0 {
		t.Errorf("%d reports a second sent, %d lost", r.ReportsSent, r.ReportsLost)
	}
	if r.Replanned.Samples+r.NotReplanned != 40 { // on a busy machine plans take longer than they are waited for
		t.Errorf("planned again %+v, not %d times", r.Replanned, r.NotReplanned)
	}
}
