package fakecuda

import (
	"cmp"
	"fmt"
	"slices"

	"tensile/device/cuda"
	"tensile/device/ptx"
	"tensile/graph"
)

// defaultPage is the unit in which GPUs map memory.
const defaultPage = 2 * graph.MiB

// paging is addresses that were reserved, and memory that was created for them.
type paging struct {
	reserved []*reservation // Sorted by address.
	memoryOf map[cuda.Memory]*physical
}

// reservation is addresses with memory here and there. What is mapped and may be used is in memory.allocations, an
// allocation per run of neighbours.
type reservation struct {
	begin, end uint64
	refused    bool       // its release was, or that of something in it, as Options.Fail had it
	mapped     []*mapping // Sorted by address.
	shadow     *shadow
	content    ptx.Allocation // Content of all addresses; without bytes in a dry driver.
}

type mapping struct {
	begin, end uint64
	memory     *physical
	accessible bool
}

// physical is memory without an address of its own.
type physical struct {
	size                          graph.Bytes
	isMapped, isReleased, refused bool
}

// ReserveAddresses implements cuda.Driver.
func (d *Driver) ReserveAddresses(size graph.Bytes) (cuda.Address, error) {
	const call = "cuMemAddressReserve"
	if err := d.enter(call); err != nil {
		return 0, err
	}
	if err := d.mustBePages(call, 0, size); err != nil {
		return 0, err
	}
	page := uint64(d.page)
	begin := (d.next + page - 1) / page * page
	r := &reservation{begin: begin, end: begin + uint64(size), shadow: &shadow{}}
	r.content.Address = begin
	if !d.options.Dry {
		r.content.Bytes = make([]byte, size)
		r.content.Written = make([]uint64, size/64)
	}
	d.next = (r.end + guard + alignment - 1) / alignment * alignment
	d.reserved = append(d.reserved, r)
	return cuda.Address(begin), nil
}

// mustBePages returns an error unless a range is of whole pages.
func (d *Driver) mustBePages(call string, a cuda.Address, size graph.Bytes) error {
	switch {
	case d.page == 0:
		return refuse(call, notSupported, "the device maps no memory")
	case size <= 0 || size%d.page != 0 || graph.Bytes(a)%d.page != 0:
		return refuse(call, cuda.InvalidValue, "%d bytes at %#x are not whole pages of %d", size, a, d.page)
	}
	return nil
}

// ReleaseAddresses implements cuda.Driver. That memory is mapped to them yet is an error.
func (d *Driver) ReleaseAddresses(a cuda.Address, size graph.Bytes) error {
	const call = "cuMemAddressFree"
	err := d.enter(call)
	r := d.reservationAt(uint64(a), size)
	switch {
	case r == nil || r.begin != uint64(a) || r.end != r.begin+uint64(size):
		return cmp.Or(err, error(refuse(call, cuda.InvalidValue, "no %d bytes were reserved at %#x as a whole", size,
			a)))
	case err != nil:
		r.refused = true
		return err
	case len(r.mapped) > 0:
		return refuse(call, cuda.InvalidValue, "memory is mapped at %#x, within what is to be released",
			r.mapped[0].begin)
	}
	d.reserved = slices.DeleteFunc(d.reserved, func(other *reservation) bool { return r == other })
	return nil
}

// reservationAt returns the reservation that holds a range, nil if there is none.
func (p *paging) reservationAt(begin uint64, size graph.Bytes) *reservation {
	i := slices.IndexFunc(p.reserved, func(r *reservation) bool {
		return r.begin <= begin && begin+uint64(size) <= r.end
	})
	if i < 0 {
		return nil
	}
	return p.reserved[i]
}

// CreateMemory implements cuda.Driver. The memory counts as used from here on until it is released and nowhere mapped.
func (d *Driver) CreateMemory(size graph.Bytes) (cuda.Memory, error) {
	const call = "cuMemCreate"
	if err := d.enter(call); err != nil {
		return 0, err
	}
	if err := d.mustBePages(call, 0, size); err != nil {
		return 0, err
	}
	if err := d.take(call, size); err != nil {
		return 0, err
	}
	d.handles++
	d.memoryOf[cuda.Memory(d.handles)] = &physical{size: size}
	return cuda.Memory(d.handles), nil
}

// ReleaseMemory implements cuda.Driver.
func (d *Driver) ReleaseMemory(m cuda.Memory) error {
	const call = "cuMemRelease"
	err := d.enter(call)
	of := d.memoryOf[m]
	if of == nil {
		return cmp.Or(err, error(refuse(call, cuda.InvalidValue, "there is no memory %d", m)))
	} else if err != nil {
		of.refused = true
		return err
	}
	delete(d.memoryOf, m)
	of.isReleased = true
	d.giveBack(of)
	return nil
}

// giveBack counts memory as free that nobody has any more.
func (d *Driver) giveBack(m *physical) {
	if m.isReleased && !m.isMapped {
		d.used -= m.size
	}
}

// Map implements cuda.Driver. What is mapped was never written.
func (d *Driver) Map(a cuda.Address, size graph.Bytes, m cuda.Memory) error {
	const call = "cuMemMap"
	if err := d.enter(call); err != nil {
		return err
	}
	if err := d.mustBePages(call, a, size); err != nil {
		return err
	}
	of, r := d.memoryOf[m], d.reservationAt(uint64(a), size)
	switch {
	case of == nil:
		return refuse(call, cuda.InvalidValue, "there is no memory %d", m)
	case of.isMapped || of.size != size:
		return refuse(call, cuda.InvalidValue, "memory %d of %d bytes, which is mapped or not of %d", m, of.size, size)
	case r == nil:
		return refuse(call, cuda.InvalidValue, "%d bytes at %#x are not reserved", size, a)
	}
	made := &mapping{begin: uint64(a), end: uint64(a) + uint64(size), memory: of}
	i, _ := slices.BinarySearchFunc(r.mapped, made.begin+1, func(m *mapping, end uint64) int {
		return cmp.Compare(m.end, end)
	})
	if i < len(r.mapped) && r.mapped[i].begin < made.end {
		return refuse(call, cuda.InvalidValue, "%d bytes at %#x have memory in part", size, a)
	}
	r.mapped = slices.Insert(r.mapped, i, made)
	of.isMapped = true
	return nil
}

// mappingsOf returns which of the mappings a range is made of; false if it is not of whole ones, one after the other.
func (r *reservation) mappingsOf(a cuda.Address, size graph.Bytes) (from, to int, ok bool) {
	at, end := uint64(a), uint64(a)+uint64(size)
	from = slices.IndexFunc(r.mapped, func(m *mapping) bool { return m.begin == at })
	if from < 0 {
		return 0, 0, false
	}
	for to = from; to < len(r.mapped) && r.mapped[to].begin == at && at < end; to++ {
		at = r.mapped[to].end
	}
	return from, to, at == end
}

// mappings is within, with an error for what is not mapped.
func (d *Driver) mappings(call string, a cuda.Address, size graph.Bytes) (r *reservation, from, to int, err error) {
	if r = d.reservationAt(uint64(a), size); r != nil {
		var ok bool
		if from, to, ok = r.mappingsOf(a, size); ok {
			return r, from, to, nil
		}
	}
	return nil, 0, 0, refuse(call, cuda.InvalidValue, "%d bytes at %#x are not what was mapped, whole", size, a)
}

// Access implements cuda.Driver.
func (d *Driver) Access(a cuda.Address, size graph.Bytes) error {
	const call = "cuMemSetAccess"
	if err := d.enter(call); err != nil {
		return err
	}
	r, from, to, err := d.mappings(call, a, size)
	if err != nil {
		return err
	}
	for _, m := range r.mapped[from:to] {
		m.accessible = true
	}
	d.show(r)
	return nil
}

// Unmap implements cuda.Driver. More than what one Map has mapped is an error: CUDA does not promise to take it. Unmap
// objects if an operation uses the memory that the host does not know to have ended, and forgets what was written.
func (d *Driver) Unmap(a cuda.Address, size graph.Bytes) error {
	const call = "cuMemUnmap"
	err := d.enter(call)
	r, from, to, wrong := d.mappings(call, a, size)
	if wrong == nil && to > from+1 {
		wrong = refuse(call, cuda.InvalidValue, "%d bytes at %#x are not what one call has mapped", size, a)
	}
	if wrong != nil {
		return cmp.Or(err, wrong)
	} else if err != nil {
		r.refused = true
		return err
	}
	for d.unfinished > 0 {
		d.carryOut()
	}
	begin, end := uint64(a), uint64(a)+uint64(size)
	d.use(r.shadow, r.begin, ptx.Range{Begin: begin, End: end}, d.byHost("its Unmap"), true)
	m := r.mapped[from].memory
	m.isMapped = false
	d.giveBack(m)
	r.mapped = slices.Delete(r.mapped, from, to)
	if !d.options.Dry {
		clear(r.content.Written[(begin-r.begin)/64 : (end-r.begin)/64])
	}
	d.show(r)
	return d.settle(call)
}

// show makes allocations of what is mapped and accessible.
func (d *Driver) show(r *reservation) {
	all := slices.DeleteFunc(d.allocations, func(a *allocation) bool { return a.within == r })
	at, _ := slices.BinarySearchFunc(all, r.begin, func(a *allocation, begin uint64) int {
		return cmp.Compare(a.begin, begin)
	})
	var runs []*allocation
	for _, m := range r.mapped {
		if n := len(runs); m.accessible && n > 0 && runs[n-1].end == m.begin {
			runs[n-1].end = m.end
		} else if m.accessible {
			runs = append(runs, &allocation{begin: m.begin, end: m.end, within: r, shadow: r.shadow})
		}
	}
	for _, a := range runs {
		a.size = graph.Bytes(a.end - a.begin)
		a.content.Address = a.begin
		if from, to := a.begin-r.begin, a.end-r.begin; !d.options.Dry {
			a.content.Bytes, a.content.Written = r.content.Bytes[from:to:to], r.content.Written[from/64:to/64:to/64]
		}
	}
	d.allocations = slices.Insert(all, at, runs...)
}

// leftPages lists addresses and memory that are held.
func (d *Driver) leftPages() []string {
	var left []string
	for _, r := range d.reserved {
		if r.refused {
			continue
		}
		var mapped graph.Bytes
		for _, m := range r.mapped {
			mapped += m.memory.size
		}
		left = append(left, fmt.Sprintf("%s of addresses at %#x with %s of memory", graph.Bytes(r.end-r.begin), r.begin,
			mapped))
	}
	return left
}
