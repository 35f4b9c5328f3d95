package cuda

import "errors"

// eventPool keeps events that are not in use. An event comes back when the command before it is known to have ended:
// nobody waits for it from then on, and waits that were put on streams before are reached.
type eventPool struct {
	driver Driver
	all    []Event
	idle   []Event
}

func (p *eventPool) get() (Event, error) {
	if n := len(p.idle); n > 0 {
		e := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return e, nil
	}
	e, err := p.driver.NewEvent()
	if err != nil {
		return 0, err
	}
	p.all = append(p.all, e)
	return e, nil
}

// put gives an event back; 0 is none.
func (p *eventPool) put(e Event) {
	if e != 0 {
		p.idle = append(p.idle, e)
	}
}

func (p *eventPool) close() error {
	var problems []error
	for _, e := range p.all {
		problems = append(problems, p.driver.DestroyEvent(e))
	}
	p.all, p.idle = nil, nil
	return errors.Join(problems...)
}
