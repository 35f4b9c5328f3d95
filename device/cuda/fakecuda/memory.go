package fakecuda

import (
	"cmp"
	"os"
	"slices"
	"unsafe"

	"tensile/device/cuda"
	"tensile/device/ptx"
	"tensile/graph"
)

// Addresses of device memory are none that a program on the host can have, so that the host faults when it uses one.
// Between two allocations lie at least guard bytes, and no address is used twice.
const (
	firstAddress = 0x7000_0000_0000_0000
	alignment    = 256
	guard        = 1 << 16
)

type memory struct {
	allocations []*allocation // Sorted by address.
	pins        []*pin        // Sorted by address.
	next        uint64        // address
	used        graph.Bytes
}

// allocation is memory of the device.
type allocation struct {
	begin, end uint64
	size       graph.Bytes
	refused    bool // its Release was, as Options.Fail had it
	shadow     *shadow
	content    ptx.Allocation // without bytes in a dry driver
	within     *reservation   // The reservation that it is mapped to; nil: it was allocated.
}

// pin is pinned memory of the host.
type pin struct {
	begin, end uint64
	refused    bool
	shadow     shadow
}

// Free implements cuda.Driver.
func (d *Driver) Free() (free, total graph.Bytes, err error) {
	if err := d.enter("cuMemGetInfo"); err != nil {
		return 0, 0, err
	}
	return d.facts.Memory - d.used, d.facts.Memory, nil
}

// Used is how much of the card's memory is used, as NVML would say.
func (d *Driver) Used() graph.Bytes { return d.used }

// Alloc implements cuda.Driver. What is allocated has not been written: to read it is an error.
func (d *Driver) Alloc(size graph.Bytes) (cuda.Address, error) {
	const call = "cuMemAlloc"
	if err := d.enter(call); err != nil {
		return 0, err
	}
	if size <= 0 {
		return 0, refuse(call, cuda.InvalidValue, "an allocation of %d bytes", size)
	}
	if err := d.take(call, size); err != nil {
		return 0, err
	}
	a := &allocation{begin: d.next, end: d.next + uint64(size), size: size, shadow: &shadow{}}
	a.content.Address = a.begin
	if !d.options.Dry {
		a.content.Bytes = make([]byte, size)
		a.content.Written = make([]uint64, (size+63)/64)
	}
	d.next = (a.end + guard + alignment - 1) / alignment * alignment
	d.allocations = append(d.allocations, a)
	return cuda.Address(a.begin), nil
}

// take counts memory of the device as used, if it is free.
func (d *Driver) take(call string, size graph.Bytes) error {
	if free := d.facts.Memory - d.used; size > free {
		return refuse(call, cuda.OutOfMemory, "out of memory: %d bytes are wanted, %d of %d are free", size, free,
			d.facts.Memory)
	}
	d.used += size
	return nil
}

// Release implements cuda.Driver. It waits for all streams, as CUDA's does, and objects if an operation has used the
// memory that the host does not know to have ended.
func (d *Driver) Release(address cuda.Address) error {
	const call = "cuMemFree"
	err := d.enter(call)
	a := d.allocationAt(uint64(address))
	if a == nil || a.begin != uint64(address) || a.within != nil {
		return cmp.Or(err, error(refuse(call, cuda.InvalidValue, "no allocation begins at %#x", address)))
	} else if err != nil {
		a.refused = true
		return err
	}
	d.runAll()
	d.use(a.shadow, a.begin, ptx.Range{Begin: a.begin, End: a.end}, d.byHost("its release"), true)
	d.used -= a.size
	d.allocations = slices.DeleteFunc(d.allocations, func(b *allocation) bool { return a == b })
	return d.settle(call)
}

// Find implements ptx.Memory.
func (d *Driver) Find(address uint64) *ptx.Allocation {
	if a := d.allocationAt(address); a != nil {
		return &a.content
	}
	return nil
}

// allocationAt returns the allocation that an address lies in, nil if there is none.
func (m *memory) allocationAt(address uint64) *allocation {
	i, _ := slices.BinarySearchFunc(m.allocations, address, func(a *allocation, address uint64) int {
		if a.end > address {
			return 1
		}
		return -1
	})
	if i == len(m.allocations) || m.allocations[i].begin > address {
		return nil
	}
	return m.allocations[i]
}

// device returns the allocation that holds a range, which an operation of a call is to use.
func (d *Driver) device(call string, begin uint64, size int) (*allocation, error) {
	a := d.allocationAt(begin)
	switch {
	case size <= 0:
		return nil, refuse(call, cuda.InvalidValue, "a range of %d bytes", size)
	case a == nil:
		return nil, refuse(call, cuda.InvalidValue, "%#x is in no allocation", begin)
	case uint64(size) > a.end-begin:
		return nil, refuse(call, cuda.InvalidValue, "%d bytes at %#x reach %d bytes beyond the end of the allocation",
			size, begin, uint64(size)-(a.end-begin))
	}
	return a, nil
}

// Pin implements cuda.Driver.
func (d *Driver) Pin(memory []byte) error {
	const call = "cuMemHostRegister"
	if err := d.enter(call); err != nil {
		return err
	}
	begin, end := rangeOf(memory)
	if page := uint64(os.Getpagesize()); begin == end || begin%page != 0 || end%page != 0 {
		return refuse(call, cuda.InvalidValue, "%d bytes of host memory at %#x are not whole pages", end-begin, begin)
	}
	i, _ := slices.BinarySearchFunc(d.pins, begin+1, func(p *pin, end uint64) int { return cmp.Compare(p.end, end) })
	if i < len(d.pins) && d.pins[i].begin < end {
		return refuse(call, alreadyRegistered, "%d bytes of host memory at %#x are pinned in part", end-begin, begin)
	}
	d.pins = slices.Insert(d.pins, i, &pin{begin: begin, end: end})
	return nil
}

// Unpin implements cuda.Driver. It waits for all streams, and objects as Release does.
func (d *Driver) Unpin(memory []byte) error {
	const call = "cuMemHostUnregister"
	err := d.enter(call)
	begin, end := rangeOf(memory)
	p := d.pinAt(begin)
	if p == nil || p.begin != begin || p.end != end {
		return cmp.Or(err, error(refuse(call, notRegistered, "no %d bytes of host memory at %#x were pinned as a whole",
			end-begin, begin)))
	} else if err != nil {
		p.refused = true
		return err
	}
	for d.runAll(); len(d.streams.ready) > 0; { // functions
		d.carryOut()
	}
	d.use(&p.shadow, begin, ptx.Range{Begin: begin, End: end}, d.byHost("its Unpin"), true)
	d.pins = slices.DeleteFunc(d.pins, func(q *pin) bool { return p == q })
	return d.settle(call)
}

// pinAt returns the pinned memory that an address of the host lies in, nil if there is none.
func (m *memory) pinAt(address uint64) *pin {
	i, _ := slices.BinarySearchFunc(m.pins, address, func(p *pin, address uint64) int {
		return cmp.Compare(p.end, address+1)
	})
	if i == len(m.pins) || m.pins[i].begin > address {
		return nil
	}
	return m.pins[i]
}

// pinned returns the pinned memory that holds a slice, which a copy of a call is to use.
func (d *Driver) pinned(call string, memory []byte) (*pin, error) {
	begin, end := rangeOf(memory)
	if p := d.pinAt(begin); p != nil && end <= p.end {
		return p, nil
	}
	return nil, refuse(call, cuda.InvalidValue, "%d bytes of host memory at %#x are not pinned", len(memory), begin)
}

// rangeOf returns the addresses of a slice.
func rangeOf(memory []byte) (begin, end uint64) {
	begin = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	return begin, begin + uint64(len(memory))
}

// use notes that an operation uses a range of memory whose addresses begin at base, and keeps what it conflicts with.
func (d *Driver) use(s *shadow, base uint64, r ptx.Range, n *node, writes bool) {
	c, ok := s.use(r, n, writes)
	if !ok {
		return
	}
	did := map[bool]string{false: "reads", true: "writes"}
	d.found(cuda.Unknown, "race: %s %s bytes %d to %d of what begins at %#x, and %s %s them: nothing orders the two",
		n, did[writes], max(c.Begin, r.Begin)-base, min(c.End, r.End)-base, base, c.other, did[c.writes])
}

// write marks bytes as written and returns them.
func (a *allocation) write(begin uint64, size int) []byte {
	for i := begin - a.begin; i < begin-a.begin+uint64(size); i++ {
		if i%64 == 0 && i+64 <= begin-a.begin+uint64(size) {
			a.content.Written[i/64] = ^uint64(0)
			i += 63
			continue
		}
		a.content.Written[i/64] |= 1 << (i % 64)
	}
	return a.content.Bytes[begin-a.begin:][:size]
}

// read returns bytes, and the first that was not written, -1 if all were. Bytes behind the written ones of the last
// word do not count: they round the size of a tensor of bytes up to whole words.
func (a *allocation) read(begin uint64, size int) (bytes []byte, missing int) {
	for i := begin - a.begin; i < begin-a.begin+uint64(size); i++ {
		if i%64 == 0 && a.content.Written[i/64] == ^uint64(0) {
			i += 63
			continue
		}
		if a.content.Written[i/64]>>(i%64)&1 == 0 {
			if missing := int(i - (begin - a.begin)); missing%4 == 0 || missing/4 != (size-1)/4 {
				return nil, missing
			}
			break
		}
	}
	return a.content.Bytes[begin-a.begin:][:size], -1
}
