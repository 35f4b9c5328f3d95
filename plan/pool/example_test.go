package pool_test

import (
	"fmt"

	"tensile/plan/pool"
)

// Five buffers of a training step in six slots. The weights stay; the gradient gets the bytes of an activation that is
// no longer needed.
func ExamplePack() {
	const input, gradient = 1, 3
	buffers := []pool.Buffer{
		{Size: 4096, Spans: []pool.Span{{From: 0, To: 6}}, Align: 256},                   // weights
		{Size: 2048, Spans: []pool.Span{{From: 1, To: 3}}, Align: 256},                   // input
		{Size: 3072, Spans: []pool.Span{{From: 2, To: 6}}, Align: 256},                   // activation
		{Size: 2048, Spans: []pool.Span{{From: 3, To: 5}}, Align: 256},                   // gradient
		{Size: 1024, Spans: []pool.Span{{From: 0, To: 1}, {From: 5, To: 6}}, Align: 256}, // over the boundary
	}
	layout, err := pool.Pack(buffers, pool.Options{})
	if err == nil {
		err = pool.Validate(buffers, layout)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("lower bound", layout.LowerBound, "height", layout.Height, "optimal", layout.Optimal)
	fmt.Println("one place for both:", layout.Offsets[input] == layout.Offsets[gradient])
	// Output:
	// lower bound 9216 height 9216 optimal true
	// one place for both: true
}

// Buffers that are fixed where they share a slot and a byte are refused.
func ExamplePack_fixed() {
	_, err := pool.Pack([]pool.Buffer{
		{Size: 64, Spans: []pool.Span{{From: 0, To: 4}}, Fixed: true, At: 0},
		{Size: 64, Spans: []pool.Span{{From: 3, To: 8}}, Fixed: true, At: 32},
	}, pool.Options{})
	fmt.Println(err)
	// Output:
	// pool: buffers 0 and 1 are fixed at 0 and 32, where they share a slot and a byte
}

// An allocation takes the smallest hole that it fits into, and what is freed joins the free bytes on both sides.
func ExampleOnline() {
	o := pool.NewOnline(1024)
	var at [4]int64
	for i, size := range []int64{256, 128, 64, 512} {
		at[i], _ = o.Alloc(size, 0)
	}
	o.Free(at[0]) // leaves a hole of 256
	o.Free(at[2]) // and one of 64
	small, _ := o.Alloc(40, 0)
	fmt.Println(at, small, "height", o.Height())
	_, err := o.Alloc(300, 0)
	fmt.Println(err)
	// Output:
	// [0 256 384 448] 384 height 960
	// pool: 300 bytes do not fit: the largest hole has 256, and 344 of 1024 bytes are free
}
