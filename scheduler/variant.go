package scheduler

import (
	"fmt"
	"time"

	"tensile/graph"
)

// Variant is one way of the device to execute an op.
type Variant struct {
	Name    string        // as in plan.Step
	Scratch graph.Bytes   // the bytes that the variant needs of the arena during the step
	Latency time.Duration // 0: that of the job for the op, by Share
	Share   int           // the thousandths of the op's latency that the variant takes; 0: all of it
}

// Takes returns how long the variant takes where the first one of the op takes so long.
func (v Variant) Takes(first time.Duration) time.Duration {
	switch {
	case v.Latency > 0:
		return v.Latency
	case v.Share == 0:
		return first
	}
	share := time.Duration(v.Share)
	return max(1, first/1000*share+first%1000*share/1000)
}

// FirstTime returns how long the first variant of the op takes, given how long this one took.
func (v Variant) FirstTime(took time.Duration) time.Duration {
	if v.Share == 0 {
		return took
	}
	share := time.Duration(v.Share)
	return took/share*1000 + took%share*1000/share
}

// maxShare is the largest Variant.Share: a variant takes a thousand times as long as the first.
const maxShare = 1_000_000

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
	v.Latency = v.Takes(j.Latency[op])
	return v
}

// checkLists refuses lists that do not belong to the graph.
func (j *Job) checkLists() error {
	ops := len(j.Graph.Ops)
	if j.Least < 0 || j.Held < 0 {
		return fmt.Errorf("job %s: storages of %d bytes leave the device, %d bytes are held there: give 0 or more",
			j.Name, j.Least, j.Held)
	}
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
		for _, v := range variants {
			if v.Share < 0 || v.Share > maxShare {
				return fmt.Errorf("job %s: variant %s of op %s takes %d thousandths of the first: give up to %d",
					j.Name, v.Name, j.Graph.Ops[op].Name, v.Share, maxShare)
			}
		}
	}
	return nil
}
