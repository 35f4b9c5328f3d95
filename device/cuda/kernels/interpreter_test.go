package kernels

import (
	"fmt"
	"sync"
	"testing"

	"tensile/device/ptx"
)

// parsed are the kernels of the committed text.
var parsed = sync.OnceValues(func() (map[string]*ptx.Kernel, error) {
	kernels := make(map[string]*ptx.Kernel)
	for _, text := range Texts() {
		m, err := ptx.Parse(text.PTX)
		if err != nil {
			return nil, fmt.Errorf("%s.ptx: %w", text.Name, err)
		}
		for _, name := range text.Kernels {
			kernels[name] = m.Kernel(name)
		}
	}
	return kernels, nil
})

// interpret carries launches out one after the other, on memory, by the committed text.
func interpret(t *testing.T, m *memory, launches []Launch) {
	t.Helper()
	kernels, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range launches {
		on := onMemory(l, m)
		on.Seed = uint64(i)
		if _, err := kernels[l.Kernel].Run(on); err != nil {
			t.Fatalf("launch %d: %+v: %v", i, l, err)
		}
	}
}

func onMemory(l Launch, m *memory) ptx.Launch {
	return ptx.Launch{Grid: l.Grid, Block: l.Block, Args: l.Args, Memory: m}
}

// interpreted prepares an example and executes it.
func (e example) interpreted(t *testing.T) *prepared {
	t.Helper()
	p := e.prepare(t)
	interpret(t, p.memory, Launches(&p.call))
	return p
}
