//go:build unix

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"tensile/device"
	"tensile/graph"
)

// pinned is memory of the host, whole pages, that the driver may copy from and to. nil is one of no bytes.
type pinned struct {
	pool  *pinnedPool
	bytes []byte
}

// slice returns size bytes, starting offset bytes from the start.
func (p *pinned) slice(offset, size graph.Bytes) device.Memory {
	return device.Memory(p.bytes[offset : offset+size : offset+size])
}

// size is how much there is.
func (p *pinned) size() graph.Bytes {
	if p == nil {
		return 0
	}
	return graph.Bytes(len(p.bytes))
}

// pinnedPool keeps what was given back, since pinning takes long, up to a part of what it has in all. free may be
// called by any goroutine, the rest by that of the device.
type pinnedPool struct {
	driver Driver
	limit  graph.Bytes // 0: no limit
	total  graph.Bytes
	idle   []*pinned

	mu     sync.Mutex
	all    []*pinned // All blocks that are pinned.
	freed  []*pinned // Blocks that other goroutines have freed.
	closed bool
}

// maxIdle bounds what the pool keeps for later.
const maxIdle = graph.GiB

// get returns memory of at least a size, with any content; nil for 0.
func (p *pinnedPool) get(size graph.Bytes) (*pinned, error) {
	if size == 0 {
		return nil, nil
	}
	p.collect()
	page := graph.Bytes(syscall.Getpagesize())
	size = (size + page - 1) / page * page
	if m := p.reuse(size); m != nil {
		return m, nil
	}
	var problem error
	for p.limit > 0 && p.total+size > p.limit && len(p.idle) > 0 && problem == nil {
		problem = p.drop(p.idle[0])
	}
	if problem != nil {
		return nil, problem
	}
	if p.limit > 0 && p.total+size > p.limit {
		return nil, fmt.Errorf("pin %s of host memory: %s are in use, the limit is %s: take fewer jobs or a larger "+
			"budget, or give --host-memory where memory grows as it is used", size, p.total, p.limit)
	}
	bytes, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %s of host memory: %w; free memory or give a larger budget", size, err)
	}
	if err := p.driver.Pin(bytes); err != nil {
		return nil, errors.Join(fmt.Errorf("pin %s of host memory: %w: free memory, give less by --host-memory, or "+
			"see ulimit -l and the memory limit of the container", size, err), syscall.Munmap(bytes))
	}
	m := &pinned{p, bytes}
	p.total += size
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, m)
	return m, nil
}

// reuse takes the smallest idle memory that is large enough, and not more than twice that.
func (p *pinnedPool) reuse(size graph.Bytes) *pinned {
	best := -1
	for i, m := range p.idle {
		if n := m.size(); n >= size && n <= 2*size && (best < 0 || n < p.idle[best].size()) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	m := p.idle[best]
	p.idle = slices.Delete(p.idle, best, best+1)
	return m
}

// put gives memory back.
func (p *pinnedPool) put(m *pinned) error {
	if m == nil {
		return nil
	}
	p.idle = append(p.idle, m)
	var idle graph.Bytes
	for _, m := range p.idle {
		idle += m.size()
	}
	var problems []error
	for idle > maxIdle {
		idle -= p.idle[0].size()
		problems = append(problems, p.drop(p.idle[0]))
	}
	return errors.Join(problems...)
}

// drop unpins idle memory and gives it back to the system.
func (p *pinnedPool) drop(m *pinned) error {
	p.idle = slices.DeleteFunc(p.idle, func(other *pinned) bool { return other == m })
	p.mu.Lock()
	p.all = slices.DeleteFunc(p.all, func(other *pinned) bool { return other == m })
	p.mu.Unlock()
	p.total -= m.size()
	return errors.Join(p.driver.Unpin(m.bytes), syscall.Munmap(m.bytes))
}

// collect takes back what other goroutines have given.
func (p *pinnedPool) collect() {
	p.mu.Lock()
	freed := p.freed
	p.freed = nil
	p.mu.Unlock()
	p.idle = append(p.idle, freed...)
}

// free gives memory back, also after the pool was closed.
func (m *pinned) free() {
	if m == nil {
		return
	}
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	if !m.pool.closed {
		m.pool.freed = append(m.pool.freed, m)
	} else if err := syscall.Munmap(m.bytes); err != nil {
		panic(fmt.Sprintf("cuda: unmap %d bytes: %v", len(m.bytes), err))
	}
}

// close unpins everything. What somebody still has stays mapped until he frees it.
func (p *pinnedPool) close() error {
	p.collect()
	var problems []error
	for len(p.idle) > 0 {
		problems = append(problems, p.drop(p.idle[0]))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, m := range p.all {
		problems = append(problems, p.driver.Unpin(m.bytes))
	}
	for _, m := range p.freed { // since collect
		problems = append(problems, syscall.Munmap(m.bytes))
	}
	p.all, p.freed = nil, nil
	return errors.Join(problems...)
}
