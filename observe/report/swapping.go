package report

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"tensile/graph"
)

// Swapping is what AutoSwap makes of a trace. Times are predicted.
type Swapping struct {
	Score     string      `json:"score"`
	Limit     int64       `json:"limit,omitempty"` // the limit of the load; 0: as low as it costs no time
	Before    int64       `json:"load_before"`
	Load      int64       `json:"load"`
	Iteration float64     `json:"iteration_ms"`
	Overhead  float64     `json:"overhead_ms"` // of an iteration
	Swaps     []BlockSwap `json:"swaps"`       // in the order of the copies out
}

// BlockSwap is when a block leaves and comes back, by events of the iteration. Events count on into the next one.
type BlockSwap struct {
	Block string `json:"block"`
	Bytes int64  `json:"bytes"`
	Out   int    `json:"out_after"`  // the access after which it is copied out
	Free  int    `json:"free_after"` // the first event that needs its bytes waits until it has left
	In    int    `json:"in_after"`
	Next  int    `json:"next_access"`
}

// NewSwapping reports loads in bytes and what an iteration takes without swaps and with them; a caller adds the swaps.
func NewSwapping(score string, limit, before, load graph.Bytes, without, with time.Duration) *Swapping {
	return &Swapping{Score: score, Limit: int64(limit), Before: int64(before), Load: int64(load),
		Iteration: Milliseconds(with), Overhead: Milliseconds(with - without), Swaps: []BlockSwap{}}
}

// write prints the swaps for people.
func (r *Swapping) write(out io.Writer) error {
	saved := 0.0
	if r.Before > 0 {
		saved = 100 * float64(r.Before-r.Load) / float64(r.Before)
	}
	fmt.Fprintf(out, "AutoSwap by %s: load %s, %.1f %% less than %s; iteration predicted %.3f ms, %.3f ms longer\n",
		r.Score, graph.Bytes(r.Load), saved, graph.Bytes(r.Before), r.Iteration, r.Overhead)
	if len(r.Swaps) == 0 {
		fmt.Fprintln(out, "nothing is swapped")
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "BLOCK\tBYTES\tOUT AFTER\tFREE AFTER\tIN AFTER\tNEXT ACCESS\t")
	for _, s := range r.Swaps {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t\n", s.Block, graph.Bytes(s.Bytes), s.Out, s.Free, s.In, s.Next)
	}
	return t.Flush()
}
