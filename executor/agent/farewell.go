package agent

import "strings"

// InterruptedError is returned by Run after an Interrupt.
type InterruptedError struct {
	Jobs []string // what has become of each that had not ended, in a line
}

func (e *InterruptedError) Error() string {
	if len(e.Jobs) == 0 {
		return "interrupted"
	}
	return "interrupted: " + strings.Join(e.Jobs, "; ")
}

// Farewell is why the machine has let its process go: nil when its work is done.
func (m *Machine) Farewell() error {
	if m.interruption != nil {
		return &InterruptedError{m.account}
	}
	return nil
}
