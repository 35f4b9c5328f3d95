package cpu

import (
	"strings"
	"sync"
	"testing"

	"tensile/device"
	"tensile/graph"
)

// The memory of a snapshot is claimed until its Release, which any goroutine may call, more than once, also when the
// job was closed before. A snapshot for which there is no memory is refused with what to do.
func TestSnapshotMemory(t *testing.T) {
	d := open(t)
	b := lay(t, d, nil)
	before := d.claimed.Load()
	first, err := b.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if n := d.claimed.Load() - before; n != 2*4*elements {
		t.Errorf("%d bytes are claimed for two snapshots, want %d", n, 2*4*elements)
	}
	if first.Content(input) != nil || len(first.Content(parameter)) != elements || first.Content(made) != nil {
		t.Errorf("a snapshot has %d elements of the input, %d of the parameter", len(first.Content(input)),
			len(first.Content(parameter)))
	}
	second.Content(parameter)[elements-1] = 1
	d.memory = graph.Bytes(d.claimed.Load()) + 4*elements - 1
	if _, err := b.Snapshot(); err == nil || !strings.Contains(err.Error(),
		"job bed: a snapshot of 256KiB does not fit") {
		t.Errorf("error %v", err)
	}
	b.close()
	if second.Content(parameter)[elements-1] != 1 {
		t.Error("the content changed when the job was closed")
	}
	var all sync.WaitGroup
	for _, s := range []device.Snapshot{first, second, first, second} {
		all.Go(s.Release)
	}
	all.Wait()
	if n := d.claimed.Load(); n != 0 {
		t.Errorf("%d bytes are still claimed", n)
	}
}
