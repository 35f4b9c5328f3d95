package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"tensile/controller"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/wire"
)

// view is what a controller knows that has a job in each state.
func view() controller.View {
	facts := cost.Facts{Out: cost.Link{Rate: 16e9}, In: cost.Link{Rate: 12e9}}
	v := controller.View{Reports: 90, LostReports: 3,
		Answer: wire.Answer{Device: "sim:a6000", Tenants: []wire.TenantState{{Name: "ann", Share: 3, Speed: 0.5,
			Behind: -2 * time.Second}}, Devices: []wire.DeviceState{
			{Own: true, Used: 9 * graph.MiB, HostUsed: 20 * graph.MiB, Jobs: 7, Executors: 2, Silent: 1,
				Device: wire.Device{Name: "lab-a6000", Budget: 8 * graph.GiB, HostMemory: 32 * graph.GiB,
					Facts: facts}},
			{Used: 3 * graph.MiB, Jobs: 1, Executors: 1, Device: wire.Device{Name: "a6000", Budget: graph.GiB}},
			{Used: 5 * graph.MiB, Device: wire.Device{Name: "v100", Budget: graph.GiB, Facts: facts}}}},
		Owners: map[string]controller.Counters{
			"": {Iterations: 40, Served: 8 * time.Second, Stall: 3 * time.Second, Gate: time.Second,
				Out: 5 * graph.MiB, In: 7 * graph.MiB, Queued: 9 * time.Second,
				Plans: map[controller.Cause]int64{controller.Arrival: 3},
				Ended: map[wire.JobState]int64{wire.JobFinished: 2}},
			"ann": {Iterations: 2}}}
	for i, state := range states {
		v.Jobs = append(v.Jobs, wire.Record{Spec: wire.Spec{Name: fmt.Sprint("job ", state), Model: "lenet",
			Iterations: 100},
			State: state, Iteration: 10, Claim: graph.MiB / 2, Arena: graph.MiB, SlotPeak: graph.MiB / 2,
			Host: 2 * graph.MiB,
			Pace: 20 * time.Millisecond, Measured: 1.25, Executor: fmt.Sprint("x", i)})
		v.Live = append(v.Live, controller.Live{Touched: graph.MiB - 64, Swapped: graph.KiB, PredictionError: 0.25,
			Counters: controller.Counters{Iterations: 11, Stall: time.Second, Out: 3, In: 4, Queued: time.Minute,
				Waited: map[string]time.Duration{"memory": time.Minute},
				Plans:  map[controller.Cause]int64{controller.Drifted: 2}}})
		if state == wire.JobQueued {
			v.Jobs[i].Executor = ""
		}
	}
	v.Jobs = append(v.Jobs, wire.Record{Spec: wire.Spec{Name: "there"}, State: wire.JobRunning, On: "v100",
		Executor: "y", Claim: 4 * graph.MiB, Arena: graph.MiB, Held: []wire.Holding{{Bytes: graph.MiB}}})
	v.Live = append(v.Live, controller.Live{PredictionError: -1})
	return v
}

// scraped are metrics by name and labels, as name{a="b"}.
type scraped map[string]float64

// gather scrapes.
func gather(t *testing.T, m *Metrics) (scraped, []*dto.MetricFamily) {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(scraped)
	for _, f := range families {
		for _, metric := range f.Metric {
			var labels []string
			for _, l := range metric.Label {
				if l.GetName() != "device" || l.GetValue() != "a6000" {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch {
			case metric.Counter != nil:
				values[name] = metric.Counter.GetValue()
			case metric.Gauge != nil:
				values[name] = metric.Gauge.GetValue()
			case metric.Histogram != nil:
				values[name] = float64(metric.Histogram.GetSampleCount())
			}
		}
	}
	return values, families
}

// shows is metrics of what views show.
func shows(v *controller.View) *Metrics {
	return newCollectorOf("a6000", "1.2.3", func(context.Context) (controller.View, error) { return *v, nil })
}

// What a controller knows is in the metrics, under the names and in the units that docs say.
func TestMetricsSayWhatIsKnown(t *testing.T) {
	v := view()
	m := shows(&v)
	m.ObservePlanning(20 * time.Millisecond)
	m.ObserveLag(-time.Second) // a clock that was set back
	m.CountEvent(controller.Event{Kind: controller.Preempted})
	got, families := gather(t, m)
	for name, want := range (scraped{
		`tensile_controller_up{}`:                                                              1,
		`tensile_controller_trouble{}`:                                                         0,
		`tensile_controller_planning_seconds{}`:                                                1,
		`tensile_controller_message_lag_seconds{}`:                                             1,
		`tensile_controller_events_total{kind="preempted"}`:                                    1,
		`tensile_controller_reports_lost_total{}`:                                              3,
		`tensile_build_info{version="1.2.3"}`:                                                  1,
		`tensile_device_budget_bytes{}`:                                                        8 << 30,
		`tensile_device_host_budget_bytes{}`:                                                   32 << 30,
		`tensile_device_host_used_bytes{}`:                                                     20 << 20,
		`tensile_device_used_bytes{device="v100"}`:                                             5 << 20,
		`tensile_device_context_bytes{device="v100"}`:                                          1 << 20,
		`tensile_device_budget_bytes{device="executors/a6000"}`:                                1 << 30,
		`tensile_device_executors{device="executors/a6000",state="joined"}`:                    1,
		`tensile_device_jobs{device="v100",state="running"}`:                                   1,
		`tensile_device_jobs{device="none",state="queued"}`:                                    1,
		`tensile_job_arena_bytes{device="v100",job="there",owner=""}`:                          1 << 20,
		`tensile_controller_devices_left_out{}`:                                                0,
		`tensile_device_link_bytes_per_second{direction="in"}`:                                 12e9,
		`tensile_device_jobs{state="failed"}`:                                                  1,
		`tensile_device_executors{state="silent"}`:                                             1,
		`tensile_owner_served_seconds_total{owner=""}`:                                         8,
		`tensile_tenant_share{owner="ann"}`:                                                    3,
		`tensile_tenant_speed_ratio{owner="ann"}`:                                              0.5,
		`tensile_tenant_behind_seconds{owner="ann"}`:                                           -2,
		`tensile_job_slowdown_ratio{job="job running",owner=""}`:                               1.25,
		`tensile_owner_stall_seconds_total{owner=""}`:                                          3,
		`tensile_owner_moved_bytes_total{direction="in",owner=""}`:                             7 << 20,
		`tensile_owner_plans_total{owner="",reason="arrival"}`:                                 3,
		`tensile_owner_plans_total{owner="",reason="drift"}`:                                   0,
		`tensile_owner_jobs_ended_total{owner="",state="finished"}`:                            2,
		`tensile_owner_iterations_total{owner="ann"}`:                                          2,
		`tensile_owner_arena_bytes{owner=""}`:                                                  8 << 20,
		`tensile_job_arena_bytes{job="job running",owner=""}`:                                  1 << 20,
		`tensile_job_touched_bytes{job="job running",owner=""}`:                                float64(1<<20 - 64),
		`tensile_job_swapped_bytes{job="job running",owner=""}`:                                1024,
		`tensile_job_iterations_left{job="job running",owner=""}`:                              90,
		`tensile_job_iterations_total{job="job running",owner=""}`:                             11,
		`tensile_job_iteration_seconds{job="job running",owner=""}`:                            0.02,
		`tensile_job_prediction_error_ratio{job="job running",owner=""}`:                       0.25,
		`tensile_job_queue_wait_seconds_total{device="none",job="job queued",owner=""}`:        60,
		`tensile_job_wait_seconds_total{device="none",for="memory",job="job queued",owner=""}`: 60,
		`tensile_job_plans_total{job="job running",owner="",reason="drift"}`:                   2,
		`tensile_job_moved_bytes_total{direction="out",job="job running",owner=""}`:            3,
		`tensile_job_info{executor="x2",job="job running",` +
			`model="lenet",owner="",state="running"}`: 1,
	}) {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v (there: %v), want %v", name, value, ok, want)
		}
	}
	for name := range got {
		for _, state := range []wire.JobState{wire.JobFinished, wire.JobStopped, wire.JobFailed} {
			if strings.Contains(name, fmt.Sprintf("job=%q", "job "+string(state))) {
				t.Errorf("%s is of a job that is over", name)
			}
		}
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %+v", err, problems)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "tensile_") {
			for _, metric := range f.Metric {
				if !slices.ContainsFunc(metric.Label, func(l *dto.LabelPair) bool {
					return l.GetName() == "device" && l.GetValue() != ""
				}) {
					t.Errorf("%s does not name its device", f.GetName())
				}
			}
		}
	}
}

// Lint finds something in names that are not as they should be: that it finds nothing above says something.
func TestLintLints(t *testing.T) {
	name, help, value := "tensile_stall_milliseconds", "Milliseconds.", 1.0
	kind := dto.MetricType_COUNTER
	problems, err := promlint.NewWithMetricFamilies([]*dto.MetricFamily{{Name: &name, Help: &help, Type: &kind,
		Metric: []*dto.Metric{{Counter: &dto.Counter{Value: &value}}}}}).Lint()
	if err != nil || len(problems) < 2 {
		t.Errorf("lint finds %+v, %v", problems, err)
	}
}

// Jobs beyond the limit have no series; how many is said, and owners' sums have them.
func TestJobsAreBounded(t *testing.T) {
	v := controller.View{}
	for i := range 3 * maxJobs {
		v.Jobs = append(v.Jobs, wire.Record{Spec: wire.Spec{Name: fmt.Sprint("job", i)}, State: wire.JobRunning,
			Arena: 10})
		v.Live = append(v.Live, controller.Live{})
	}
	got, families := gather(t, shows(&v))
	for _, f := range families {
		if n := len(f.Metric); strings.HasPrefix(f.GetName(), "tensile_job_") && n > 2*maxJobs {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
	if _, oldest := got[`tensile_job_arena_bytes{device="none",job="job0",owner=""}`]; !oldest ||
		got["tensile_device_jobs_left_out{}"] != 2*maxJobs || got[`tensile_owner_arena_bytes{owner=""}`] != 30*maxJobs {
		t.Errorf("left out: %v, arenas of all: %v, the oldest is there: %v", got["tensile_device_jobs_left_out{}"],
			got[`tensile_owner_arena_bytes{owner=""}`], oldest)
	}
}

// Devices beyond the limit have no series; how many is said, and their jobs have series still.
func TestDevicesAreBounded(t *testing.T) {
	v := controller.View{Answer: wire.Answer{Devices: make([]wire.DeviceState, 2*maxDevices)}}
	for i := range v.Devices {
		v.Devices[i].Name = fmt.Sprintf("device%03d", i)
		v.Jobs = append(v.Jobs, wire.Record{Spec: wire.Spec{Name: fmt.Sprint("job", i)}, State: wire.JobRunning,
			On: v.Devices[i].Name})
		v.Live = append(v.Live, controller.Live{})
	}
	got, families := gather(t, shows(&v))
	for _, f := range families {
		if n := len(f.Metric); strings.HasPrefix(f.GetName(), "tensile_device_") && n > len(states)*maxDevices {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
	_, first := got[`tensile_device_used_bytes{device="device000"}`]
	_, last := got[`tensile_device_used_bytes{device="device099"}`]
	_, job := got[`tensile_job_arena_bytes{device="device099",job="job99",owner=""}`]
	if !first || last || !job || got["tensile_controller_devices_left_out{}"] != maxDevices {
		t.Errorf("the first device has series: %v, the last: %v, its job: %v; left out: %v", first, last, job,
			got["tensile_controller_devices_left_out{}"])
	}
}

// The series of a job go with it, those of its owner stay.
func TestSeriesEndWithTheirJob(t *testing.T) {
	v := view()
	m := shows(&v)
	before, _ := gather(t, m)
	v.Jobs, v.Live = nil, nil
	after, _ := gather(t, m)
	for name := range after {
		if strings.HasPrefix(name, "tensile_job_") {
			t.Errorf("%s has stayed", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if value, ok := after[name]; strings.HasPrefix(name, "tensile_owner_") && strings.Contains(name, "_total") &&
			(!ok || value < before[name]) {
			t.Errorf("%s was %v and is %v", name, before[name], value)
		}
	}
}

// A controller that does not answer leaves a scrape that says so.
func TestScrapeWithoutAnAnswer(t *testing.T) {
	m := newCollectorOf("a6000", "", func(context.Context) (controller.View, error) {
		return controller.View{}, errors.New("it is busy")
	})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 || !strings.Contains(string(text), "tensile_controller_up{device=\"a6000\"} 0\n") ||
		strings.Contains(string(text), "tensile_job_") {
		t.Errorf("status %d, %v:\n%s", w.Code, err, text)
	}
	var none controller.Views
	if got, _ := gather(t, New("a6000", "", &none)); got["tensile_controller_up{}"] != 0 {
		t.Errorf("where no controller runs it is up: %v", got)
	}
}
