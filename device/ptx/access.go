package ptx

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// access is what an instruction does with memory.
type access struct {
	space    space
	typ      typ
	wide     typ    // of the registers
	count    uint64 // elements of a vector, or 1
	offset   uint64 // added to the address
	readOnly bool   // ld.global.nc: nothing may write it in the launch
	update   func(old, b, c uint64) uint64
}

func (a *access) bytes() uint64 { return a.count * uint64(a.typ.size) }

// region is memory that a block can use: an allocation, a shared variable, a variable of the module.
type region struct {
	name       string
	begin      uint64
	bytes      []byte
	written    []uint64 // a bit per byte
	constant   bool     // all is written, and nothing may write it
	shared     bool
	pages      []*page
	since      uint64 // marks before this are of earlier uses of the memory
	allocation *Allocation
}

func newRegion(name string, begin uint64, content []byte, written []uint64) *region {
	if written == nil {
		written = make([]uint64, (len(content)+63)/64)
	}
	return &region{name: name, begin: begin, bytes: content, written: written,
		pages: make([]*page, (len(content)+pageBytes-1)/pageBytes), shared: begin >= sharedBase}
}

// find returns the region that holds an address, nil if there is none.
func (r *run) find(address uint64) *region {
	among := r.regions
	switch address >> 48 {
	case sharedBase >> 48:
		among = r.shared
	case moduleBase >> 48:
		among = r.module
	}
	for _, region := range among {
		if address-region.begin < uint64(len(region.bytes)) {
			return region
		}
	}
	if address >= moduleBase || r.l.Memory == nil {
		return nil
	}
	a := r.l.Memory.Find(address)
	if a == nil || address-a.Address >= uint64(len(a.Bytes)) {
		return nil
	}
	if a.Address%16 != 0 || len(a.Written)*64 < len(a.Bytes) {
		panic(fmt.Sprintf("ptx: the allocation at 0x%x is not aligned to 16, or has bits for %d of its %d bytes",
			a.Address, len(a.Written)*64, len(a.Bytes)))
	}
	region := newRegion("the allocation", a.Address, a.Bytes, a.Written)
	region.since = r.launchBegin
	region.allocation = a
	r.regions = append(r.regions, region)
	return region
}

// locate returns the region that an access of a lane lies in, and the offset in it; nil if the access is wrong.
func (w *warp) locate(in *instruction, lane int, address, size uint64) (*region, uint64) {
	if address&(size-1) != 0 {
		w.fail(in, lane, Misaligned, address, "accesses %d bytes at an address that is no multiple of that", size)
		return nil, 0
	}
	r := w.r.cached[in.index]
	if r != nil {
		if offset := address - r.begin; offset < uint64(len(r.bytes)) && size <= uint64(len(r.bytes))-offset {
			return r, offset
		}
	}
	r = w.r.find(address)
	if r == nil {
		w.fail(in, lane, BadAddress, address, "accesses %d bytes where nothing is allocated", size)
		return nil, 0
	}
	offset := address - r.begin
	if size > uint64(len(r.bytes))-offset {
		w.fail(in, lane, BadAddress, address,
			"accesses %d bytes, %d of them past the end of %s of %d bytes at 0x%x",
			size, size-(uint64(len(r.bytes))-offset), r.name, len(r.bytes), r.begin)
		return nil, 0
	}
	ok := true
	switch in.mem.space {
	case global:
		ok = !r.shared
	case shared:
		ok = r.shared
	case constant:
		ok = r.constant
	}
	if !ok {
		w.fail(in, lane, BadAddress, address, "this address is of %s, not of the %s space", r.name, in.mem.space)
		return nil, 0
	}
	w.r.cached[in.index] = r
	return r, offset
}

// localAt returns the index in the warp's local memory, and false if the access is wrong.
func (w *warp) localAt(in *instruction, lane int, address, size uint64) (uint64, bool) {
	if address&(size-1) != 0 {
		return 0, w.fail(in, lane, Misaligned, address,
			"accesses %d bytes at an address that is no multiple of that", size)
	}
	for _, v := range w.k.locals {
		if offset := address - v.address; offset < v.size && size <= v.size-offset {
			return uint64(lane)*w.k.localBytes + address - localBase, true
		}
	}
	return 0, w.fail(in, lane, BadAddress, address, "accesses %d bytes of local memory that are of no variable", size)
}

// race fails with a race, and tells with what.
func (w *warp) race(in *instruction, lane int, r *region, address, mark uint64, what string) bool {
	who := ""
	switch {
	case r.allocation != nil && mark < w.r.blockBegin:
		i, found := slices.BinarySearch(w.r.begins, mark&^(markTick-1))
		if !found {
			i--
		}
		who = fmt.Sprintf("block %v, and the order of blocks is not known", w.r.coordinates(w.r.order[i]))
	case mark&markOthers != 0:
		who = "another block, and the order of blocks is not known"
	case mark&markMany != 0:
		who = "threads of several warps, without a barrier between"
	case mark&markWarp != 0:
		who = fmt.Sprintf("threads of warp %d, without a barrier between", mark&markThread/32)
	default:
		who = fmt.Sprintf("thread %v, without a barrier between", w.r.thread(uint32(mark&markThread)))
	}
	return w.fail(in, lane, Race, address, "race: %s, and so did %s", what, who)
}

// readable checks and marks a read of a region.
func (w *warp) readable(in *instruction, lane int, r *region, offset, size, atomic uint64) bool {
	if r.constant {
		return true
	}
	bytes := (uint64(1)<<size - 1) << (offset & 63)
	if r.written[offset>>6]&bytes != bytes {
		return w.fail(in, lane, Unwritten, r.begin+offset, "reads %d bytes of %s, of which not all were written",
			size, r.name)
	}
	thread := uint64(w.number*32 + uint32(lane))
	now := w.r.s.now | thread | atomic
	cells := r.cellsOf(w, offset, size)
	for i := range cells {
		c := &cells[i]
		if c.write < r.since {
			old := c.read
			if old < r.since {
				c.read = now
				continue
			}
			if old>>markTime == now>>markTime && (old|now)&markAtomic == 0 {
				if differ := (old ^ now) & markThread; differ >= 32 {
					c.read = old | markMany
				} else if differ != 0 {
					c.read = old | markWarp
				}
				continue
			}
		}
		if mark := w.reads(c, r, thread, atomic); mark != 0 {
			return w.race(in, lane, r, r.begin+offset, mark, "reads what is written in the same launch")
		}
		if in.mem.readOnly && c.write >= r.since {
			return w.fail(in, lane, Race, r.begin+offset, "ld.global.nc reads what is written in the same launch")
		}
	}
	return true
}

// readAgain marks that another thread of the warp, too, reads what the lane before has just read.
func (w *warp) readAgain(in *instruction, address, size uint64) {
	r := w.r.cached[in.index]
	if r.constant {
		return
	}
	cells := r.cellsOf(w, address-r.begin, size)
	for i := range cells {
		cells[i].read |= markWarp
	}
}

// writable checks and marks a write to a region.
func (w *warp) writable(in *instruction, lane int, r *region, offset, size, atomic uint64) bool {
	if r.constant {
		return w.fail(in, lane, BadAddress, r.begin+offset,
			"writes to a variable of the module, which is not supported")
	}
	thread := uint64(w.number*32 + uint32(lane))
	cells := r.cellsOf(w, offset, size)
	for i := range cells {
		if mark := w.writes(&cells[i], r, thread, atomic); mark != 0 {
			return w.race(in, lane, r, r.begin+offset, mark, "writes what is used in the same launch")
		}
	}
	r.written[offset>>6] |= (uint64(1)<<size - 1) << (offset & 63)
	return true
}

func peek(b []byte, size uint8) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func poke(b []byte, size uint8, value uint64) {
	switch size {
	case 1:
		b[0] = byte(value)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(value))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(value))
	default:
		binary.LittleEndian.PutUint64(b, value)
	}
}

// loading is ld from any space but that of the kernel's parameters.
func loading(w *warp, in *instruction, m uint32) bool {
	mem := in.mem
	size := mem.bytes()
	if m == everyLane {
		if s, ok := w.stretch(in, &w.registers[in.a], size); ok {
			if from := s.load(w, in, size); from != nil {
				for j, slot := range in.more {
					mem.spread(&w.registers[slot], from[j*int(mem.typ.size):], int(size))
					w.written[slot] = everyLane
				}
				return true
			}
		}
	}
	addresses := w.registers[in.a]          // a copy: the result may go to the same register
	before, there := uint64(0), []byte(nil) // the address of the lane before, and its bytes
	for rest := m; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest) & 31
		address := addresses[i] + mem.offset
		from := there
		switch {
		case mem.space == local || mem.space == generic && address>>48 == localBase>>48:
			at, ok := w.localAt(in, i, address, size)
			if !ok {
				return false
			}
			if slices.Contains(w.localKnown[at:at+size], false) {
				return w.fail(in, i, Unwritten, address, "reads local memory of which not all was written")
			}
			from = w.local[at : at+size]
		case address == before && there != nil:
			w.readAgain(in, address, size)
		default:
			r, offset := w.locate(in, i, address, size)
			if r == nil || !w.readable(in, i, r, offset, size, 0) {
				return false
			}
			from = r.bytes[offset : offset+size]
			before, there = address, from
		}
		if mem.typ.size == 4 && mem.wide.size == 4 {
			for j, slot := range in.more {
				w.registers[slot][i] = uint64(binary.LittleEndian.Uint32(from[4*j:]))
			}
			continue
		}
		for j, slot := range in.more {
			value := peek(from[j*int(mem.typ.size):], mem.typ.size)
			w.registers[slot][i] = mem.typ.extend(value) & mem.wide.mask()
		}
	}
	for _, slot := range in.more {
		w.written[slot] |= m
	}
	return true
}

// spread loads an element of each lane; elements are stride bytes apart.
func (a *access) spread(d *lanes, from []byte, apart int) {
	if a.typ.size == 4 && a.typ == a.wide {
		for i := range d {
			d[i] = uint64(binary.LittleEndian.Uint32(from[i*apart:]))
		}
		return
	}
	for i := range d {
		d[i] = a.typ.extend(peek(from[i*apart:], a.typ.size)) & a.wide.mask()
	}
}

// collect stores an element of each lane.
func (a *access) collect(to []byte, from *lanes, apart int) {
	if a.typ.size == 4 {
		for i := range from {
			binary.LittleEndian.PutUint32(to[i*apart:], uint32(from[i]))
		}
		return
	}
	for i := range from {
		poke(to[i*apart:], a.typ.size, from[i])
	}
}

// storing is st to any space.
func storing(w *warp, in *instruction, m uint32) bool {
	mem := in.mem
	size := mem.bytes()
	if !w.moreWritten(in, m) {
		return false
	}
	addresses := &w.registers[in.a]
	if m == everyLane {
		if s, ok := w.stretch(in, addresses, size); ok {
			if to := s.store(w, size); to != nil {
				for j, slot := range in.more {
					mem.collect(to[j*int(mem.typ.size):], &w.registers[slot], int(size))
				}
				return true
			}
		}
	}
	for rest := m; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest) & 31
		address := addresses[i] + mem.offset
		var to []byte
		if mem.space == local || mem.space == generic && address>>48 == localBase>>48 {
			at, ok := w.localAt(in, i, address, size)
			if !ok {
				return false
			}
			for j := range size {
				w.localKnown[at+j] = true
			}
			to = w.local[at : at+size]
		} else {
			r, offset := w.locate(in, i, address, size)
			if r == nil || !w.writable(in, i, r, offset, size, 0) {
				return false
			}
			to = r.bytes[offset : offset+size]
		}
		for j, slot := range in.more {
			poke(to[j*int(mem.typ.size):], mem.typ.size, w.registers[slot][i])
		}
	}
	return true
}

// updating is atom and red: b, and c if there is one, are what is done to the memory; d is what was there.
func updating(w *warp, in *instruction, m uint32) bool {
	mem := in.mem
	size := mem.bytes()
	for rest := m; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest) & 31
		r, offset := w.locate(in, i, w.registers[in.a][i]+mem.offset, size)
		if r == nil || !w.readable(in, i, r, offset, size, markAtomic) || !w.writable(in, i, r, offset, size,
			markAtomic) {
			return false
		}
		to := r.bytes[offset : offset+size]
		old := peek(to, mem.typ.size)
		poke(to, mem.typ.size, mem.update(old, w.registers[in.b][i], w.registers[in.c][i]))
		w.registers[in.d][i] = old
	}
	return true
}

// loadingParam is ld of a parameter of the kernel, which is at the same place for all lanes.
func loadingParam(w *warp, in *instruction, m uint32) bool {
	mem := in.mem
	for j, slot := range in.more {
		value := peek(w.r.params[mem.offset+uint64(j)*uint64(mem.typ.size):], mem.typ.size)
		value = mem.typ.extend(value) & mem.wide.mask()
		for rest := m; rest != 0; rest &= rest - 1 {
			w.registers[slot][bits.TrailingZeros32(rest)&31] = value
		}
		w.written[slot] |= m
	}
	return true
}
