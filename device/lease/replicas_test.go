package lease

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// lab is several devices, each with a lease of its own, and jobs with a replica on each: client i of every device is of
// job i. All groups have something to reduce: one passes when the replicas of its job on all devices have it.
type lab struct {
	devices []*system
	// A replica asks for the first group of an iteration when that on the device before it was granted its own, and so
	// was every job that began there earlier on this device: all devices have the order of the first one.
	oneOrder bool
	begun    []int // jobs, in the order in which their iterations began on the first device
}

// progress is how many groups a replica was granted.
func (c *client) progress() int { return c.body*len(c.shape.groups) + c.group }

func (l *lab) can(device, job, move int) bool {
	c := &l.devices[device].clients[job]
	if !c.can(move) {
		return false
	}
	switch {
	case move == pass:
		for _, d := range l.devices {
			if d.clients[job].progress() < c.progress() {
				return false
			}
		}
	case move == ask && l.oneOrder && c.joined && c.group == 0 && device > 0:
		return l.next(device) == job
	}
	return true
}

// next is the job that begins next on a device by the order of the first one; -1 if none has begun there that has not
// here.
func (l *lab) next(device int) int {
	here := make([]int, len(l.devices[device].clients)) // iterations that have begun, per job
	for job, c := range l.devices[device].clients {
		here[job] = c.body
		if c.group > 0 || c.joined && c.asking && c.group == 0 {
			here[job]++
		}
	}
	for _, job := range l.begun {
		if here[job]--; here[job] < 0 {
			return job
		}
	}
	return -1
}

// do makes a move of a replica.
func (l *lab) do(device, job, move int) (next *lab, refused string) {
	next = &lab{oneOrder: l.oneOrder, begun: l.begun}
	for _, d := range l.devices {
		next.devices = append(next.devices, d.clone())
	}
	before := make([]int, len(l.devices[0].clients))
	for i, c := range l.devices[0].clients {
		before[i] = c.progress()
	}
	refused = next.devices[device].do(job, move)
	for i := range before {
		if c := &next.devices[0].clients[i]; c.progress() > before[i] && before[i]%len(c.shape.groups) == 0 {
			next.begun = append(next.begun[:len(next.begun):len(next.begun)], i)
		}
	}
	return next, refused
}

// orders are the jobs that have begun on each device, oldest first, and then those that wait to begin.
func (l *lab) orders() (all []string) {
	for _, d := range l.devices {
		text := ""
		for _, k := range slices.Concat(d.m.order, d.m.queue) {
			text += string(k.Job)
		}
		all = append(all, text)
	}
	return all
}

// explore walks every interleaving, and returns how many states there are and where one ends before all are done.
func (l *lab) explore() (states int, problem string) {
	seen := make(map[string]bool)
	var walk func(l *lab, t *trail) string
	walk = func(l *lab, t *trail) string {
		key := fmt.Sprint(l.begun)
		for _, d := range l.devices {
			key += d.key()
			if wrong := d.wrong(); wrong != "" {
				return fmt.Sprintf("%v: %s", t, wrong)
			}
		}
		if seen[key] {
			return ""
		}
		seen[key] = true
		moved, done := false, true
		for device, d := range l.devices {
			for job := range d.clients {
				done = done && d.clients[job].done
				for move := range moves {
					if !l.can(device, job, move) {
						continue
					}
					moved = true
					t := &trail{t, fmt.Sprint(d.clients[job].name, device, moveNames[move])}
					next, refused := l.do(device, job, move)
					if refused != "" {
						return fmt.Sprintf("%v: %s", t, refused)
					}
					if problem := walk(next, t); problem != "" {
						return problem
					}
				}
			}
		}
		if !moved && !done {
			return fmt.Sprintf("%v: nobody can go on, in the orders %v", t, l.orders())
		}
		return ""
	}
	problem = walk(l, nil)
	return len(seen), problem
}

// Two jobs with a replica on each of two devices, whose groups wait for each other: where each device has an order of
// its own, one job may be the older one here and the other there, and nobody goes on. With the order of the first
// device on both every interleaving ends. No lease knows the order of another device. That is why a replica has all of
// its arena for itself: it asks for no group.
func TestReplicasNeedOneOrder(t *testing.T) {
	shapes := []shape{
		{base: 0b1, groups: []pages{0b0011, 0b0111, 0b0001}, bodies: 2},
		{base: 0b1, groups: []pages{0b0001, 0b1111, 0b0011}, bodies: 1},
	}
	of := func(oneOrder bool) *lab {
		l := &lab{oneOrder: oneOrder}
		for range 2 {
			l.devices = append(l.devices, newSystem(least(shapes), Options{Overtakes: 1}, shapes, 1))
		}
		return l
	}
	if states, problem := of(true).explore(); problem != "" {
		t.Errorf("with one order, after %d states: %s", states, problem)
	} else {
		t.Logf("with one order %d states", states)
	}
	states, problem := of(false).explore()
	if !strings.HasSuffix(problem, "nobody can go on, in the orders [ab ba]") &&
		!strings.HasSuffix(problem, "nobody can go on, in the orders [ba ab]") {
		t.Errorf("with an order on each device, after %d states: %q; want two orders in which nobody can go on", states,
			problem)
	}
}
