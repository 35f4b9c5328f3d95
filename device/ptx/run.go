package ptx

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
)

// Launch is one launch of a kernel.
type Launch struct {
	Grid, Block [3]uint32
	Args        []uint64 // a value per parameter
	Seed        uint64   // of the order of blocks and warps, which no result may depend on
	Memory      Memory
}

// Bounds of a launch, those of every GPU; threads execute fewer instructions than endless.
const (
	maxThreads = 1024
	maxBlocks  = 1 << 24 // in all, since each is executed
	endless    = 1 << 26 // instructions of a warp
	everyLane  = ^uint32(0)
	maxRegMem  = 1 << 30 // bytes of registers of a block
)

// Run executes the kernel to its end. The footprint is that of what was done, also where the error is a [*Fault].
func (k *Kernel) Run(l Launch) (Footprint, error) { return k.run(l, endless) }

func (k *Kernel) run(l Launch, limit int64) (Footprint, error) {
	if err := k.check(&l); err != nil {
		return Footprint{}, err
	}
	s := shadows.Get().(*shadow)
	defer shadows.Put(s)
	r := newRun(k, &l, s, limit)
	err := r.blocks()
	return r.footprint(), err
}

// check objects to a launch that a driver would refuse.
func (k *Kernel) check(l *Launch) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("ptx: launch of kernel %s: %s", k.Name, fmt.Sprintf(format, args...))
	}
	if len(l.Args) != len(k.Params) {
		return fail("it has %d parameters, got %d", len(k.Params), len(l.Args))
	}
	for i, size := range k.Params {
		if size < 8 && l.Args[i]>>(8*size) != 0 && int64(l.Args[i])>>(8*size-1) != -1 {
			return fail("parameter %d has %d bytes, got 0x%x", i, size, l.Args[i])
		}
	}
	grid, block := uint64(1), uint64(1)
	for i := range 3 {
		if l.Grid[i] == 0 || l.Block[i] == 0 {
			return fail("the grid %v or the block %v is empty", l.Grid, l.Block)
		}
		if i > 0 && l.Grid[i] > 65535 || l.Grid[i] > 1<<31-1 || l.Block[i] > [3]uint32{1024, 1024, 64}[i] {
			return fail("the grid %v or the block %v is larger than any GPU takes", l.Grid, l.Block)
		}
		grid, block = min(grid*uint64(l.Grid[i]), 1<<40), block*uint64(l.Block[i])
		if k.require[0] != 0 && l.Block[i] != k.require[i] {
			return fail("it requires blocks of %v, got %v", k.require, l.Block)
		}
	}
	most := uint64(maxThreads)
	if k.maximum[0] != 0 {
		most = uint64(k.maximum[0]) * uint64(k.maximum[1]) * uint64(k.maximum[2])
	}
	if block > min(most, maxThreads) {
		return fail("a block of %d threads, at most %d", block, min(most, maxThreads))
	}
	if grid > maxBlocks {
		return fail("%d blocks are too many to execute, at most %d", grid, maxBlocks)
	}
	if memory := uint64(k.slots) * 256 * ((block + 31) / 32); memory > maxRegMem {
		return fail("the registers of a block need %d bytes", memory)
	}
	return nil
}

// run is a launch on its way. Blocks run one after the other, the warps of a block in turns.
type run struct {
	k       *Kernel
	l       *Launch
	s       *shadow
	limit   int64
	random  *rand.Rand
	threads uint32
	warps   []*warp
	params  []byte
	block   [3]uint32

	regions []*region // of global memory, those used so far
	shared  []*region
	module  []*region
	cached  []*region // by instruction, the one it used last

	order  []uint32 // of blocks
	begins []uint64 // time at which each of those executed so far began

	// Times of the shadow: when the launch began, the block, and the time since which nothing in the block was ordered.
	launchBegin, blockBegin, since uint64
}

func newRun(k *Kernel, l *Launch, s *shadow, limit int64) *run {
	r := &run{k: k, l: l, s: s, limit: limit, random: rand.New(rand.NewPCG(l.Seed, 0x707478)),
		threads: l.Block[0] * l.Block[1] * l.Block[2], cached: make([]*region, len(k.code))}
	r.params = make([]byte, k.paramBytes+8)
	for i, at := range k.offsets {
		var value [8]byte
		binary.LittleEndian.PutUint64(value[:], l.Args[i])
		copy(r.params[at:], value[:k.Params[i]])
	}
	r.launchBegin = s.advance()
	for _, v := range k.shared {
		r.shared = append(r.shared, newRegion("the shared variable "+v.name, v.address, make([]byte, v.size), nil))
	}
	for _, v := range k.module {
		region := newRegion("the variable "+v.name, v.address, v.content, nil)
		region.constant = true
		r.module = append(r.module, region)
	}
	for i := range (r.threads + 31) / 32 {
		r.warps = append(r.warps, newWarp(r, i))
	}
	return r
}

// thread returns the coordinates of a thread from its number in the block.
func (r *run) thread(n uint32) [3]uint32 {
	x, y := r.l.Block[0], r.l.Block[1]
	return [3]uint32{n % x, n / x % y, n / x / y}
}

func (r *run) coordinates(block uint32) [3]uint32 {
	x, y := r.l.Grid[0], r.l.Grid[1]
	return [3]uint32{block % x, block / x % y, block / x / y}
}

// blocks executes all blocks, in an order of the seed.
func (r *run) blocks() error {
	r.order = make([]uint32, r.l.Grid[0]*r.l.Grid[1]*r.l.Grid[2])
	for i := range r.order {
		r.order[i] = uint32(i)
	}
	r.random.Shuffle(len(r.order), func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
	for _, b := range r.order {
		r.block = r.coordinates(b)
		r.blockBegin = r.s.advance()
		r.since = r.blockBegin
		r.begins = append(r.begins, r.blockBegin)
		for _, region := range r.shared {
			clear(region.written)
			region.since = r.blockBegin
		}
		for _, w := range r.warps {
			w.reset()
		}
		if err := r.oneBlock(); err != nil {
			return err
		}
	}
	return nil
}

// oneBlock executes the block: a warp that can go on is drawn and runs for a while, until all have ended.
func (r *run) oneBlock() error {
	ready := append(make([]*warp, 0, 32), r.warps...)
	for {
		for len(ready) > 0 {
			i := r.random.IntN(len(ready))
			w := ready[i]
			w.run(32 + r.random.IntN(256))
			if w.fault != nil {
				return w.fault
			}
			if w.waits || w.alive == 0 {
				ready[i] = ready[len(ready)-1]
				ready = ready[:len(ready)-1]
			}
		}
		first := r.warps[0]
		if first.alive == 0 {
			for _, w := range r.warps {
				if w.alive != 0 {
					w.fail(&w.k.code[w.pc], bits.TrailingZeros32(w.alive), Divergent, 0,
						"waits at a barrier that threads of its block have ended without")
					return w.fault
				}
			}
			return nil
		}
		for _, w := range r.warps {
			if w.alive == 0 {
				first.fail(&w.k.code[first.pc], bits.TrailingZeros32(first.alive), Divergent, 0,
					"waits at a barrier that threads of its block have ended without")
				return first.fault
			}
			if w.pc != first.pc || w.barrier != first.barrier {
				first.fail(&w.k.code[first.pc], bits.TrailingZeros32(first.alive), Divergent, 0,
					"waits at barrier %d while thread %v waits at barrier %d, line %d",
					first.barrier, r.thread(w.number*32), w.barrier, w.k.where[w.pc].line)
				return first.fault
			}
		}
		r.since = r.s.advance()
		for _, region := range r.shared {
			region.since = r.since // what was before is ordered before all that comes
		}
		for _, w := range r.warps {
			w.waits = false
			w.since = r.since
			w.pc++
		}
		ready = append(ready, r.warps...)
	}
}

var shadows = sync.Pool{New: func() any { return &shadow{} }}
