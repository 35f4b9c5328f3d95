//go:build linux

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func isOfScript(mishap string) bool {
	return strings.HasSuffix(mishap, " script") || strings.HasSuffix(mishap, " sidecar")
}

// free frees the disk.
func (c *chaos) free() {
	if c.disk != "" {
		os.Remove(filepath.Join(c.disk, "fill"))
	}
}

// point waits for a point in the progress of jobs, or until there is no progress any more, and says which it is.
func (c *chaos) point() string {
	names := slices.Sorted(maps.Keys(c.saved))
	name := names[c.rng.IntN(len(names))]
	var said string
	var reached func() bool
	switch d := c.rng.IntN(10); {
	case c.kind.torch && d < 7:
		n := 1 + c.rng.IntN(12)
		said = fmt.Sprintf("after %d iterations of the script", n)
		reached = func() bool { return len(c.script.says.all()) >= n }
	case d == 0:
		said = "as an executor begins"
		reached = func() bool { return len(executors(c.t, c.dir)) > 0 }
	case d == 1:
		said = "as job " + name + " ends"
		reached = func() bool { return exists(c.saved[name]) }
	case d < 6:
		n := 1 + c.rng.IntN(6)
		said = fmt.Sprintf("at %d writes", n)
		was := int64(-1)
		reached = func() bool {
			if is := sizeOf(filepath.Join(c.state, "journal")); is != was {
				was = is
				n--
			}
			return n < 0
		}
	default:
		k := c.kind.every * c.rng.IntN(c.kind.iterations/c.kind.every)
		said = fmt.Sprintf("after %d iterations of job %s", k, name)
		reached = func() bool { return c.trained(name) >= k }
	}
	more := time.Duration(c.rng.IntN(10)) * time.Millisecond // anywhere between two such points
	// What a stopped process would do does not come, nor what is over; what a full disk holds up may not.
	for looks := 0; !reached(); looks++ {
		if len(c.stopped) > 0 && looks > 100 || looks > 2000 || c.trainsNone() {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(more)
	return said
}

// damageCheckpoints kills all executors, and damages the newer of the two checkpoints of each job that has two whole
// ones.
func (c *chaos) damageCheckpoints() (said string, met bool) {
	c.hit(syscall.SIGKILL, c.all()...)
	harm := []harm{{"flip the", flip(40, 60)}, {"cut the", third}}[c.rng.IntN(2)]
	said = harm.what + " newest checkpoint of"
	for _, name := range slices.Sorted(maps.Keys(c.saved)) {
		found := c.checkpoints(name)
		if len(found) < 2 || c.hurt[name] {
			continue
		}
		newest := slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(takenAfter(a), takenAfter(b)) })
		text, err := os.ReadFile(newest)
		if err != nil {
			continue // of a job that is over
		}
		write(c.t, newest, string(harm.to(text)))
		c.hurt[name], met = true, true
		said += " " + name
	}
	return said, met
}

// takenAfter is after how many iterations a checkpoint was taken.
func takenAfter(checkpoint string) (n int) {
	_, after, _ := strings.Cut(filepath.Base(checkpoint), "-")
	fmt.Sscanf(after, "%d.", &n)
	return n
}

// trainsNone reports whether all jobs have come to their ends.
func (c *chaos) trainsNone() bool {
	for _, path := range c.saved {
		if !exists(path) {
			return false
		}
	}
	return c.script == nil || !c.kind.torch || len(c.script.says.all()) > 12
}

// trained is after how many iterations the newest checkpoint of a job was taken.
func (c *chaos) trained(name string) (most int) {
	for _, path := range c.checkpoints(name) {
		most = max(most, takenAfter(path))
	}
	if exists(c.saved[name]) {
		most = c.kind.iterations
	}
	return most
}

// checkpoints are the whole ones of a job.
func (c *chaos) checkpoints(name string) []string {
	found, err := filepath.Glob(filepath.Join(c.state, checkpointsName, name+"-*", "*.safetensors"))
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0 // it is being replaced
	}
	return info.Size()
}

// processOf holds a process, so that a signal is for it alone: the numbers of those that have ended are soon those of
// others.
func processOf(pid int) *os.Process {
	p, err := os.FindProcess(pid)
	if err != nil {
		panic(err) // on Linux there is none
	}
	return p
}

// hit signals processes, which may have ended just now, and reports whether it met one.
func (c *chaos) hit(s syscall.Signal, pids ...int) (met bool) {
	for _, pid := range pids {
		p := processOf(pid)
		if p.Signal(s) != nil {
			continue
		}
		if met = true; s == syscall.SIGSTOP {
			c.stopped = append(c.stopped, p)
		}
	}
	return met
}

// all are the executors that live.
func (c *chaos) all() []int { return slices.Sorted(maps.Values(executors(c.t, c.dir))) }

// one draws an executor that lives, if there is one.
func (c *chaos) one() []int {
	all := c.all()
	if len(all) == 0 {
		return nil
	}
	return all[c.rng.IntN(len(all)):][:1]
}

// mishap lets one come, and returns what it was.
func (c *chaos) mishap(what string) string {
	c.t.Helper()
	if len(c.stopped) > 0 || c.disk != "" && exists(filepath.Join(c.disk, "fill")) {
		defer c.resume() // after this one
	}
	met, said := true, what
	switch what {
	case "kill executor":
		met = c.hit(syscall.SIGKILL, c.one()...)
	case "kill executors":
		met = c.hit(syscall.SIGKILL, c.all()...)
	case "kill controller":
		c.killController(func() {})
	case "kill controller and executor":
		c.killController(func() { met = c.hit(syscall.SIGKILL, c.one()...) })
	case "step clock":
		said = c.stepClock()
	case "stop executor":
		met = c.hit(syscall.SIGSTOP, c.one()...)
	case "stop controller":
		met = c.hit(syscall.SIGSTOP, c.command.Process.Pid)
	case "kill lease":
		met = c.hit(syscall.SIGKILL, leases(c.t, c.state)...)
	case "kill lease and executor":
		met = c.hit(syscall.SIGKILL, append(leases(c.t, c.state), c.one()...)...)
	case "stop lease":
		met = c.hit(syscall.SIGSTOP, leases(c.t, c.state)...)
	case "kill script":
		met = c.script.process.Kill() == nil
	case "kill sidecar":
		met = c.script.sidecar.command.Process.Kill() == nil
	case "stop sidecar":
		met = c.hit(syscall.SIGSTOP, c.script.sidecar.command.Process.Pid)
	case "fill disk":
		c.fill()
	case "fill disk and kill executor":
		c.fill()
		met = c.hit(syscall.SIGKILL, c.one()...)
	case "damage store", "damage journal":
		d := storeDamages
		if what == "damage journal" {
			d = journalDamages
		}
		damage := d[c.rng.IntN(len(d))]
		said = damage.what
		c.killController(func() { damage.harm(c.t, c.state) })
	case "damage checkpoint":
		said, met = c.damageCheckpoints()
	default:
		c.t.Fatalf("there is no mishap %q", what)
	}
	if !met {
		return said + " (nobody)"
	}
	c.came.add(what)
	return said
}

// fill leaves no byte of the disk.
func (c *chaos) fill() {
	f, err := os.Create(filepath.Join(c.disk, "fill"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 512); err == nil; {
		_, err = f.Write(block)
	}
}
