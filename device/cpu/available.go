package cpu

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"tensile/graph"
)

// available returns how much memory the machine can give without swapping, or 0 where that cannot be read.
func available() graph.Bytes {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close() // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib int64
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				return graph.Bytes(kib) * graph.KiB
			}
		}
	}
	return 0
}

// claim books memory that a job will use. Mappings alone would not fail: their pages appear when they are used, and a
// machine that runs out of them kills the process.
func (d *Device) claim(job string, what string, size graph.Bytes) error {
	if claimed := graph.Bytes(d.claimed.Load()); d.memory > 0 && claimed+size > d.memory {
		return fmt.Errorf("job %s: %s of %s does not fit beside the %s in use; %s are available: "+
			"take a smaller batch, fewer jobs or a smaller budget",
			job, what, size, claimed, d.memory)
	}
	d.claimed.Add(int64(size))
	return nil
}

// unclaim gives back what was claimed. Unlike claim, any goroutine may call it.
func (d *Device) unclaim(size graph.Bytes) { d.claimed.Add(-int64(size)) }
