package cpu

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// errNoLoad is returned where the system does not tell how busy its processors are.
var errNoLoad = errors.New("the load of this machine can not be read")

// Meter measures how busy others keep the machine's processors. The zero value is ready.
type Meter struct {
	last usage
}

// usage is processor time since the start of the system: of all, busy or not, and of this process.
type usage struct{ all, busy, own time.Duration }

// Load returns the share of all processors' time that other processes used since the last call, from 0 to 1, those
// under nice left out; at the first call it is 0.
func (m *Meter) Load() (float64, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0, errNoLoad
	}
	defer f.Close() // only read
	now, err := parseStat(f)
	if err != nil {
		return 0, err
	}
	if now.own, err = ownTime(); err != nil {
		return 0, err
	}
	load := m.last.othersShare(now)
	m.last = now
	return load, nil
}

// othersShare is the share of others between two readings.
func (u usage) othersShare(now usage) float64 {
	if u.all == 0 || now.all <= u.all {
		return 0
	}
	others := (now.busy - u.busy) - (now.own - u.own)
	return min(max(float64(others)/float64(now.all-u.all), 0), 1)
}

// tick is the unit of /proc/stat, the same on every Linux that Go supports.
const tick = 10 * time.Millisecond

// parseStat reads the line of all processors: user, nice, system, idle, iowait, irq, softirq, steal. What runs under
// nice gives way to a job, so it does not count as busy.
func parseStat(r io.Reader) (usage, error) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), "cpu ")
		if !ok {
			continue
		}
		var t [8]int64
		if _, err := fmt.Sscan(rest, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]); err != nil {
			return usage{}, fmt.Errorf("%w: /proc/stat: %w", errNoLoad, err)
		}
		var u usage
		for i, v := range t {
			u.all += time.Duration(v) * tick
			if i != 1 && i != 3 && i != 4 {
				u.busy += time.Duration(v) * tick
			}
		}
		return u, nil
	}
	return usage{}, errNoLoad
}

// ownTime is the processor time of this process.
func ownTime() (time.Duration, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, fmt.Errorf("%w: %w", errNoLoad, err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}
