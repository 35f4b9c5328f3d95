package controller

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"tensile/graph"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Each object that is stored of a job is taken away, cut and flipped: a controller that is started on that tells it
// with the job's name, holds that job alone, and the other one goes on.
func TestDamagedGraph(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"gone": nil,
		"cut":  func(b []byte) []byte { return b[:len(b)/2] },
		"flipped": func(b []byte) []byte {
			b[len(b)/3] ^= 0x15
			return b
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newOffice(t)
			defer f.close()
			for i, job := range []string{"a", "b"} {
				answer := f.submit(job, uint64(i+1))
				<-f.plans
				f.let <- struct{}{}
				<-answer
				synctest.Wait()
			}
			object := wire.GraphObject(f.jobs()["a"].Spec.Graph)
			f.stop()
			if damage == nil {
				must(t, f.bus.Remove(t.Context(), wire.Graphs, object))
			} else {
				data, err := f.bus.Load(t.Context(), wire.Graphs, object)
				must(t, err)
				must(t, f.bus.Store(t.Context(), wire.Graphs, object, damage(append([]byte(nil), data...))))
			}
			f.begin(f.config)
			jobs := f.jobs()
			if why := jobs["a"].Reason; !strings.HasPrefix(why, "is held: ") || len(jobs) != 2 {
				t.Errorf("graph %s: job a is %s: %q", name, jobs["a"].State, why)
			}
			if why := jobs["b"].Reason; strings.Contains(why, "held") {
				t.Errorf("graph %s: job b is %s: %q", name, jobs["b"].State, why)
			}
			if !strings.Contains(f.lines.String(), "job a is held: ") {
				t.Errorf("graph %s: the log does not tell it", name)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What cannot be read at all, such as a record of another release, ends the start with a line that names it: memory
// of the executor that it is of would not be reserved.
func TestUnreadable(t *testing.T) {
	for _, key := range []string{wire.RecordKey("a"), wire.OrdersKey("x1"), wire.DeviceKey("d")} {
		synctest.Test(t, func(t *testing.T) {
			f := newOffice(t)
			f.stop()
			defer f.bus.Close()
			must(t, f.bus.Put(t.Context(), key, []byte("{}")))
			o := Options{Config: f.config, PlanDevice: f.planner.Device, Plan: f.plan,
				Log: slog.New(slog.DiscardHandler)}
			err := Run(t.Context(), f.bus, o)
			want := "what is stored at " + key + " cannot be read: "
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// A panic while plans are made fails these plans alone.
func TestPlanPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t)
		defer f.close()
		f.stop()
		f.planner.Device.Profile = func(*graph.Graph) (planner.Profile, error) { panic("a bug of a test") }
		f.begin(f.config)
		answer := f.submit("a", 1)
		<-f.plans
		f.let <- struct{}{}
		a := <-answer
		if got := a.Error + f.jobs()["a"].Reason; !strings.Contains(got, "a bug of a test") {
			t.Errorf("job a is told %q", got)
		}
		if !strings.Contains(f.lines.String(), "damage_test.go") {
			t.Error("the log does not say where it was")
		}
	})
}
