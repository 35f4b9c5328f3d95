package lease

import (
	"fmt"
	"strings"
)

// String shows all that the machine knows, for reports of errors: a line for the device and one per job, in the order
// of seniority, then idle jobs, then the queue.
func (m *Machine) String() string {
	var b strings.Builder
	total, _, _ := m.sums()
	fmt.Fprintf(&b, "at %v: %d of %d pages are held\n", m.now, total, m.capacity)
	for i, k := range m.order {
		fmt.Fprintf(&b, "begun %d: %s", i, k)
		if i >= m.live {
			b.WriteString(", behind")
		}
		b.WriteByte('\n')
	}
	for _, k := range m.joined {
		if !k.began {
			fmt.Fprintf(&b, "idle: %s\n", k)
		}
	}
	for i, k := range m.queue {
		what := "to begin"
		if !k.joined {
			what = "to join"
		}
		fmt.Fprintf(&b, "waits %d: %s, %s, overtaken %d times\n", i, k, what, k.overtaken)
	}
	return b.String()
}

func (k *holder) String() string {
	text := fmt.Sprintf("%s: holds %d, rest %d, base %d, peak %d, weight %d, served %d, heard at %v", k.Job, k.hold,
		k.rest, k.Base, k.Peak, k.Weight, k.served, k.heard)
	if k.asking {
		text += fmt.Sprintf(", wants first %v last %v rest %d hold %d", k.want.First, k.want.Last, k.want.Rest,
			k.want.Hold)
	}
	if k.delayed {
		text += ", delayed"
		if k.until != Never {
			text += fmt.Sprintf(" until %v", k.until)
		}
	}
	if k.draining {
		text += ", drains"
	}
	if k.aside {
		text += ", aside"
	}
	return text
}
