package trace_test

import (
	"fmt"
	"strings"

	"tensile/plan/pool"
	"tensile/plan/pool/trace"
)

// Three equal iterations after a start: the weights stay, a and b come and go.
const record = `
malloc w 64
malloc a 32
malloc b 16
free a
malloc c 32
free b
free c
malloc a 32
malloc b 16
free a
malloc c 32
free b
free c
malloc a 32
malloc b 16
free a
malloc c 32
free b
free c
`

func ExampleImport() {
	r, err := trace.Import(strings.NewReader(record), "record", trace.ImportOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	iteration, err := trace.Find(r.Trace, r.Before)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(iteration.Events, "events,", iteration.Repeats, "times from event", iteration.From, "on")
	lifetimes, err := trace.LifetimesOf(r.Trace, iteration, trace.LifetimeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, err := pool.Pack(lifetimes.Buffers, pool.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(lifetimes.Buffers), "buffers, peak", lifetimes.Load, "height", layout.Height)
	// Output:
	// 6 events, 3 times from event 1 on
	// 4 buffers, peak 112 height 112
}
