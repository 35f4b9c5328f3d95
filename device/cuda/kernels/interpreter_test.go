package kernels

import (
	"sync"
	"testing"

	"tensile/internal/ptx"
)

// interpreted are the kernels of the texts by name, as internal/ptx reads them.
var interpreted = sync.OnceValues(func() (map[string]*ptx.Kernel, error) {
	all := make(map[string]*ptx.Kernel)
	for _, text := range Texts() {
		module, err := ptx.Parse(text.PTX)
		if err != nil {
			return nil, err
		}
		for _, name := range text.Kernels {
			all[name] = module.Kernel(name)
		}
	}
	return all, nil
})

// interpret carries launches out one after the other, on memory, by the text that a GPU gets.
func interpret(t *testing.T, m *memory, launches []Launch) {
	t.Helper()
	all, err := interpreted()
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range launches {
		run := ptx.Launch{Grid: l.Grid, Block: l.Block, Args: l.Args, Seed: uint64(i), Memory: m}
		if _, err := all[l.Kernel].Run(run); err != nil {
			t.Fatalf("%s: %v", l.Kernel, err)
		}
	}
}
