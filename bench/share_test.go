package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/long"
	"tensile/models/task"
)

// Two jobs under gates train in the least memory at least as fast as one after the other, and faster with more; what is
// held is never more than the capacity.
func TestShare(t *testing.T) {
	long.Only(t)
	f, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	r, err := MeasureShare(t.Context(), ShareOptions{Facts: f, Iterations: 12, Sets: []ShareSet{
		{Jobs: []string{"resnet50:2"}, Settings: task.Settings{Batch: 16}, Percent: []int{100, 130},
			Saved: []int{850}}}})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || strings.Count(table.String(), "\n") != 7 {
		t.Errorf("error %v, table\n%s", err, &table)
	}
	for i, want := range []struct {
		sharing     string
		alternating float64 // at least
		touched     float64 // of the capacity, at least
	}{{"none", 1.02, 1}, {"slices", .8, .99}, {"gates", 1.0, .99}, {"gates", 1.04, .9}, {"gates+plans", .93, .9}} {
		row := r.Rows[i]
		if touched := float64(row.Touched) / float64(row.Capacity); row.Sharing != want.sharing ||
			row.Alternating < want.alternating || touched < want.touched || touched > 1 {
			t.Errorf("row %d: %+v, want %+v", i, row, want)
		}
		if gates := i >= 2; gates && row.Capacity >= r.Rows[0].Capacity || gates != (row.Gate > 0) {
			t.Errorf("row %d: %+v beside %+v", i, row, r.Rows[0])
		}
	}
	t.Logf("\n%s", &table)

	// The drawing shows what the device was asked for.
	for i, c := range r.Curves {
		held, at := make(map[int]graph.Bytes), make(map[time.Duration]graph.Bytes)
		for now := c.Panel.From; now < c.Panel.From+c.Panel.For; now += time.Millisecond {
			for k, j := range c.Panel.Jobs {
				for _, h := range j.Steps {
					if h.From <= now {
						held[k] = h.Size
					}
				}
				at[now] += held[k]
			}
			if row := r.Rows[i]; at[now] > row.Capacity || row.Sharing == "gates+plans" && at[now] < row.Capacity/2 {
				t.Errorf("%s: %v are drawn at %v, of %v", row.Sharing, at[now], now, row.Capacity)
			}
		}
	}
	var drawing bytes.Buffer
	r.Draw(&drawing, "resnet50:2")
	if err := xml.Unmarshal(drawing.Bytes(), new(struct{})); err != nil ||
		strings.Count(drawing.String(), "#4477aa") != 1+len(r.Rows) {
		t.Errorf("error %v, drawing\n%s", err, &drawing)
	}
}

// The schedulers of Zico and Waterwave are measured beside gates at each capacity, each with its own outcome; the sets
// for them have no plans.
func TestShareSchedulers(t *testing.T) {
	f, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range ShareSets(nil, nil, false, true) {
		if len(set.Percent) == 0 || len(set.Saved) > 0 {
			t.Errorf("a set for schedulers: %+v", set)
		}
	}
	set := ShareSet{Jobs: []string{"resnet50:2"}, Settings: task.Settings{Batch: 16}, Percent: []int{130}}
	r, err := MeasureShare(t.Context(), ShareOptions{Facts: f, Iterations: 12, Schedulers: true, Sets: []ShareSet{set}})
	if err != nil {
		t.Fatal(err)
	}
	took := make(map[float64]string)
	for i, want := range []string{"none", "slices", "gates", "zico", "waterwave"} {
		row := r.Rows[i]
		if row.Sharing != want || row.Touched > row.Capacity || i >= 2 && (row.Alternating < 1 || row.Gate <= 0) {
			t.Errorf("row %d: %+v, want %s", i, row, want)
		}
		if other, twice := took[row.Alternating]; twice {
			t.Errorf("%s is exactly as fast as %s: %v", want, other, row.Alternating)
		}
		took[row.Alternating] = want
	}
	if len(r.Rows) != 5 {
		t.Errorf("%d rows, want 5", len(r.Rows))
	}
}

// The document has the fields that are promised, and no others.
func TestShareJSON(t *testing.T) {
	got, err := json.Marshal(&ShareReport{Device: "d", Rows: make([]ShareRow, 1), Curves: make([]ShareCurve, 1)})
	want := `{"rows":[{"jobs":"","sharing":"","capacity_bytes":0,"least_bytes":0,"touched_bytes":0,"msr_all":0,` +
		`"eor":0,"eor_together":0,"throughput_vs_alternating":0,"throughput_vs_spatial":0,"gate_ms":0}]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// Two jobs have most of the batch each that one has alone, and all of it with plans; with one more they would not fit.
func TestBatches(t *testing.T) {
	long.Only(t)
	f, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	const memory = 700_000_000
	r, err := MeasureBatches(t.Context(), BatchOptions{ShareOptions: ShareOptions{Facts: f, Iterations: 4},
		Sets: []BatchSet{{Network: "resnet18", Copies: 2, Memory: memory, Settings: task.Settings{Image: 64}}}})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || strings.Count(table.String(), "\n") != 4 {
		t.Errorf("error %v, table\n%s", err, &table)
	}
	for i, want := range []struct {
		sharing string
		share   float64 // at least
	}{{"gates", .7}, {"gates+plans", 1}} {
		row := r.Rows[i]
		if row.Sharing != want.sharing || row.Share < want.share || row.Share > 1 || row.Least > row.Capacity ||
			row.Touched > row.Capacity || row.Capacity > memory || row.Throughput < .8 {
			t.Errorf("row %d: %+v, want %+v", i, row, want)
		}
	}
	if full := r.Rows[0].Least; full < memory*95/100 {
		t.Errorf("the largest batch takes %v of %v", full, graph.Bytes(memory))
	}
	t.Logf("\n%s", &table)
}
