package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tensile/executor/sidecar"
)

// The report has the fields that it has always had, whoever reads it: a field goes, or gets another meaning, only with
// another schema.
func TestReportSchema(t *testing.T) {
	t.Parallel()
	var s sidecar.Summary
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		default:
			f.SetInt(int64(i + 1))
		}
	}
	var r joinReport
	r.add("train-1", 1, sidecar.Summary{})
	r.add("train", 0, s)
	path := filepath.Join(t.TempDir(), "report.json")
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`schema name iterations planned_iterations hooks_iterations
		retried_iterations unplanned_why
		need_bytes graphs plans limit_bytes over_limit plan_bytes largest_plan_bytes reserve_bytes claim_bytes
		touched_bytes unplanned_touched_bytes host_bytes stall_ns faults passive unmet error ended others`) {
		if got[name] == nil {
			t.Errorf("%s is missing in %s", name, text)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("docs/pytorch.md and this test do not know %v", got)
	}
}

// The table says how the plans of a process were played.
func TestReportWay(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]sidecar.Summary{
		"-":     {},
		"ops":   {Planned: 3, Retried: 1},
		"hooks": {Planned: 3, Retried: 1, Hooks: 4},
		"both":  {Planned: 3, Hooks: 2},
	} {
		p := processReport{Summary: s}
		if got := p.way(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
