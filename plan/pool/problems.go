package pool

import (
	"errors"
	"fmt"
)

// shown is how many problems an error spells out.
const shown = 64

// problems collects what is wrong; the first few are spelled out and the rest are counted.
type problems struct {
	list []error
	more int
}

func (p *problems) add(format string, args ...any) {
	if len(p.list) == shown {
		p.more++
		return
	}
	p.list = append(p.list, fmt.Errorf("pool: "+format, args...))
}

// err is nil when nothing was added.
func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(p.list[:len(p.list):len(p.list)], fmt.Errorf("pool: and %d more problems",
			p.more))...)
	}
	return errors.Join(p.list...)
}
