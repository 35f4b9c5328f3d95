package bench

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/internal/long"
)

// What the papers say of these results is so here; and two runs are equal byte for byte.
func TestSharing(t *testing.T) {
	long.Only(t)
	if raceEnabled {
		t.Skip("simulating is slow under the race detector: run without -race")
	}
	o := SharingOptions{Tables: []string{"zico-3.1", "zico-5", "zico-10", "waterwave-2"}, Quick: true, Iterations: 6}
	var done int
	o.Progress = func(d, of int) {
		if done++; d != done || d > of {
			t.Errorf("%d of %d scenes are done, after %d", d, of, done-1)
		}
	}
	r, err := MeasureSharing(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, table := range r.Tables {
		names = append(names, table.Name)
		if len(table.Signs) == 0 {
			t.Errorf("%s: no sign", table.Name)
		}
		for _, s := range table.Signs {
			if !s.Holds {
				t.Errorf("%s: not so: %+v", table.Name, s)
			}
		}
		for _, row := range table.Rows {
			if row.Figure == "" || row.Measure == "" || row.Measure == "does not fit" ||
				row.Touched > row.Capacity && row.Sharing != ownArenas {
				t.Errorf("%s: %+v", table.Name, row)
			}
			if row.Sharing == temporally && row.Value != 1 {
				t.Errorf("%s: temporal sharing is what others are compared with: %+v", table.Name, row)
			}
		}
	}
	if !slices.Equal(names, o.Tables) {
		t.Errorf("tables %v, want %v", names, o.Tables)
	}
	if zico5 := r.Tables[1].Rows; len(zico5) < 20 || zico5[len(zico5)-1].Paper == nil {
		t.Errorf("the last row of zico-5 has no figure of the paper's: %+v", zico5)
	}
	for _, name := range r.Drawings() {
		var drawing bytes.Buffer
		r.Draw(&drawing, name)
		if err := xml.Unmarshal(drawing.Bytes(), new(struct{})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(r.Drawings()) < 3 {
		t.Errorf("drawings %v", r.Drawings())
	}
	o = SharingOptions{Tables: []string{"zico-10", "waterwave-2"}, Quick: true, Iterations: 4}
	one, two := printedRun(t, o), printedRun(t, o)
	if !bytes.Equal(one, two) {
		t.Errorf("two runs differ:\n%s\n%s", one, two)
	}
}

// printedRun is all that a run prints.
func printedRun(t *testing.T, o SharingOptions) []byte {
	r, err := MeasureSharing(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	if rows, err := csv.NewReader(bytes.NewReader(b.Bytes())).ReadAll(); err != nil || len(rows) < 5 {
		t.Errorf("%d rows, error %v", len(rows), err)
	}
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&b).Encode(r); err != nil {
		t.Fatal(err)
	}
	for _, name := range r.Drawings() {
		r.Draw(&b, name)
	}
	return b.Bytes()
}

func TestSharingRefuses(t *testing.T) {
	_, err := MeasureSharing(t.Context(), SharingOptions{Tables: []string{"zico-11"}})
	if err == nil || !strings.HasPrefix(err.Error(), `no table "zico-11": known are zico-3.1, zico-5, `) {
		t.Errorf("error %v", err)
	}
}

// The largest batch within a limit is found, and one more would be above it.
func TestWithin(t *testing.T) {
	b := &sharingBench{ctx: t.Context(), arenas: make(map[arenaKey]graph.Bytes)}
	const limit = 500_000_000
	n, err := b.largestWithin(zicoSmall, trained{model: "resnet110-cifar", optimizer: autodiff.SGD{}}, limit)
	if err != nil {
		t.Fatal(err)
	}
	fits, err := b.arena(zicoSmall, n)
	if err != nil {
		t.Fatal(err)
	}
	n.batch++
	above, err := b.arena(zicoSmall, n)
	if err != nil {
		t.Fatal(err)
	}
	if fits > limit || above <= limit {
		t.Errorf("a batch of %d takes %v, one more %v: the limit is %d", n.batch-1, fits, above, limit)
	}
	if _, err := b.largestWithin(zicoSmall, n, 1000); err == nil {
		t.Error("a batch within 1000 bytes")
	}
}
