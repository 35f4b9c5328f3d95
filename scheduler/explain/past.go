package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tensile/graph"
	"tensile/graph/text"
)

// Past says how a job has gone until now, as far as the controller has heard: since the job was submitted or, if that
// was later, since the controller was started.
type Past struct {
	// Waited is for how long the job has waited, by what for: a wire.WaitFor, "plans", "parked" or "".
	Waited map[string]time.Duration `json:"waited_ns,omitempty"`
	// Iterations is how many iterations were reported. 0: none was, and the fields below but Plans are zero.
	Iterations int64 `json:"iterations,omitzero"`
	// Alone is how long these take alone and without a plan, together.
	Alone time.Duration `json:"alone_ns,omitzero"`
	// Took is how long an iteration takes in the moving average of reports, waiting included. 0: none was reported.
	Took time.Duration `json:"iteration_ns,omitzero"`
	// Stall and Gate are for how long these iterations waited for copies, and for memory that other jobs had.
	Stall time.Duration `json:"stall_ns,omitzero"`
	Gate  time.Duration `json:"gate_ns,omitzero"`
	// Out and In are the bytes that these iterations have copied to the host and back.
	Out graph.Bytes `json:"out_bytes,omitzero"`
	In  graph.Bytes `json:"in_bytes,omitzero"`
	// Plans counts the plans that the job got, by cause.
	Plans map[string]int64 `json:"plans,omitempty"`
	// Restarts is how many executors the job has lost since its newest checkpoint.
	Restarts int `json:"restarts,omitzero"`
	// Arena is the largest arena of its plans and Touched the highest byte that they have used, in bytes. 0: not known.
	Arena   graph.Bytes `json:"arena_bytes,omitzero"`
	Touched graph.Bytes `json:"touched_bytes,omitzero"`
}

// writePast says how the job has gone.
func (j *Job) writePast(l *lines) {
	p := j.Past
	if p == nil || len(p.Waited) == 0 && p.Iterations == 0 {
		return
	}
	l.add("")
	if len(p.Waited) > 0 {
		kinds := slices.SortedFunc(maps.Keys(p.Waited), func(a, b string) int {
			return cmp.Or(cmp.Compare(p.Waited[b], p.Waited[a]), cmp.Compare(a, b))
		})
		var words []string
		for _, kind := range kinds {
			words = append(words, text.Duration(p.Waited[kind]).String()+" "+waitPhrase(kind))
		}
		l.add("It has waited %s.", strings.Join(words, ", "))
	}
	if p.Iterations > 0 {
		mean := p.Alone / time.Duration(p.Iterations)
		line := ""
		if p.Took > 0 {
			line = "; the last ones took " + milliseconds(p.Took) + ", " + compareTimes(p.Took, mean)
		}
		l.add("%d iterations were reported to this controller. Alone and without a plan one takes %s%s.", p.Iterations,
			milliseconds(mean), line)
		l.add("In these it waited %s for copies and %s for memory of others, and copied %s out and %s in.",
			text.Duration(p.Stall), text.Duration(p.Gate), p.Out, p.In)
	}
	var causes []string
	for _, cause := range slices.Sorted(maps.Keys(p.Plans)) {
		causes = append(causes, fmt.Sprintf("%d (%s)", p.Plans[cause], cause))
	}
	if len(causes) > 0 {
		l.add("Plans that it got, by cause: %s.", strings.Join(causes, ", "))
	}
	if p.Restarts > 0 {
		l.add("Executors that it lost since its newest checkpoint: %d.", p.Restarts)
	}
	if p.Arena > 0 {
		l.add("Its largest arena was %s, of which it used %s.", p.Arena, p.Touched)
	}
}

// waitPhrase says for what a job has waited, in words that follow a duration.
func waitPhrase(kind string) string {
	switch kind {
	case "host-memory":
		return "for memory of the host"
	case "budget":
		return "for a larger budget"
	case "device":
		return "for a device"
	case "executor":
		return "for its executor"
	case "checkpoint":
		return "for an executor with its checkpoint"
	case "restart":
		return "after it had lost an executor"
	case "turn":
		return "for a job before it in the queue"
	case "tenant":
		return "for another tenant"
	case "replicas":
		return "for its other replicas"
	case "parked":
		return "parked"
	}
	return "for " + kind // memory, plans
}
