package scheduler

import (
	"fmt"
	"time"

	"tensile/graph"
)

// Variant is one way of the device to execute an op.
type Variant struct {
	Name    string        // as in plan.Step
	Scratch graph.Bytes   // that it needs of the arena during the step
	Latency time.Duration // 0: that of the job for the op
}

// OneVariant returns Job.Variants for a caller that knows nothing but the scratch of one variant per op.
func OneVariant(scratch []graph.Bytes) [][]Variant {
	all := make([][]Variant, len(scratch))
	for op, bytes := range scratch {
		all[op] = []Variant{{Scratch: bytes}}
	}
	return all
}

// Variant returns a variant of an op, with its latency.
func (j *Job) Variant(op graph.OpID, k int) Variant {
	var v Variant
	if j.Variants != nil {
		v = j.Variants[op][k]
	}
	if v.Latency == 0 {
		v.Latency = j.Latency[op]
	}
	return v
}

// checkLists refuses lists that do not belong to the graph.
func (j *Job) checkLists() error {
	ops := len(j.Graph.Ops)
	if len(j.Latency) != ops {
		return fmt.Errorf("job %s: %d latencies: give one per op, %d", j.Name, len(j.Latency), ops)
	}
	if j.Slack != nil && len(j.Slack) != ops {
		return fmt.Errorf("job %s: slack of %d ops: give one per op, %d, or none", j.Name, len(j.Slack), ops)
	}
	if j.Variants != nil && len(j.Variants) != ops {
		return fmt.Errorf("job %s: variants of %d ops: give a list per op, %d, or none", j.Name, len(j.Variants), ops)
	}
	for op, variants := range j.Variants {
		if len(variants) == 0 {
			return fmt.Errorf("job %s: op %s has no variant: give one or more", j.Name, j.Graph.Ops[op].Name)
		}
	}
	return nil
}
