package gemm

import (
	"sync"

	"tensile/device/cpu/crew"
)

// Engine computes products. It may be used by several goroutines at once.
type Engine struct {
	crew *crew.Crew

	mu    sync.Mutex
	spare []*room // as many as were ever in use at once
}

// New returns an engine whose products are divided among a crew, which may be nil.
func New(c *crew.Crew) *Engine { return &Engine{crew: c} }

// Crew is what the engine divides products among; nil for no engine.
func (e *Engine) Crew() *crew.Crew {
	if e == nil {
		return nil
	}
	return e.crew
}

func (e *Engine) takeRoom() *room {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.spare); n > 0 {
		r := e.spare[n-1]
		e.spare = e.spare[:n-1]
		return r
	}
	return new(room)
}

func (e *Engine) giveRoom(r *room) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spare = append(e.spare, r)
}
