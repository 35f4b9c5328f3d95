package draft

import (
	"reflect"
	"testing"
	"time"

	"tensile/graph"
	"tensile/scheduler"
)

// Jobs of one group differ in nothing that a plan depends on: each field of a job but those splits them.
func TestEqualsLookAtEveryField(t *testing.T) {
	others := map[string]scheduler.Job{
		"Graph":       {Graph: new(graph.Graph)},
		"Latency":     {Latency: []time.Duration{1}},
		"Slack":       {Slack: []time.Duration{1}},
		"Variants":    {Variants: [][]scheduler.Variant{{{Name: "direct"}}}},
		"Last":        {Last: new(scheduler.Report)},
		"Least":       {Least: 1},
		"Held":        {Held: 1},
		"OnHost":      {OnHost: 1},
		"Weight":      {Weight: 2},
		"MaxSwapRate": {MaxSwapRate: .5},
		"Name":        {Name: "b"},
		"Epoch":       {Epoch: 7},
		"Measured":    {Measured: true}, // what is told of the latencies, not what they are
	}
	fields := reflect.TypeFor[scheduler.Job]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		other, ok := others[name]
		if !ok {
			t.Errorf("no job here has another %s", name)
			continue
		}
		want := 2
		if name == "Name" || name == "Epoch" || name == "Measured" {
			want = 1
		}
		if groups := equals([]scheduler.Job{{}, other}); len(groups) != want {
			t.Errorf("jobs with another %s are in %d groups, want %d", name, len(groups), want)
		}
	}
}
