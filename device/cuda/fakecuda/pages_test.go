package fakecuda

import (
	"bytes"
	"slices"
	"testing"

	"tensile/device/cuda"
	"tensile/graph"
)

// paged is a bench with reserved addresses of eight pages of 4096 bytes, of which the first two have memory that was
// written.
type paged struct {
	*bench
	at cuda.Address
}

const testPage = 4096

func newPaged(t *testing.T, seed uint64) *paged {
	p := &paged{bench: newBenchOf(t, Options{Seed: seed, Page: testPage})}
	p.at = must[cuda.Address](p.rig)(p.d.ReserveAddresses(8 * testPage))
	p.mapAt(0, 2)
	p.do(p.d.Fill(p.one, p.at, 0x01020304, 2*testPage/4))
	p.do(p.d.Synchronize())
	return p
}

// page is the address of a page.
func (p *paged) page(n int) cuda.Address { return p.at + cuda.Address(n*testPage) }

// mapAt maps memory to some pages, each its own.
func (p *paged) mapAt(from, to int) {
	p.Helper()
	for n := from; n < to; n++ {
		m := must[cuda.Memory](p.rig)(p.d.CreateMemory(testPage))
		p.do(p.d.Map(p.page(n), testPage, m))
		p.do(p.d.ReleaseMemory(m))
	}
	p.do(p.d.Access(p.page(from), graph.Bytes(to-from)*testPage))
}

func (p *paged) unmap(from, to int) error {
	return p.d.Unmap(p.page(from), graph.Bytes(to-from)*testPage)
}

// unmapEach unmaps pages, each its own.
func (p *paged) unmapEach(from, to int) {
	p.Helper()
	for n := from; n < to; n++ {
		p.do(p.unmap(n, n+1))
	}
}

// free is how much memory of the device is.
func (p *paged) free() graph.Bytes {
	free, _, err := p.d.Free()
	p.do(err)
	return free
}

// Neighbours are one range whenever they were mapped, pages keep what they hold while others come and go, and memory is
// used from when it is made until it is released and unmapped.
func TestPages(t *testing.T) {
	for seed := range uint64(4) {
		p := newPaged(t, seed)
		free := p.free()
		p.mapAt(3, 4)
		p.mapAt(2, 3)
		if now := p.free(); now != free-2*testPage {
			t.Errorf("%d bytes are free, then %d", free, now)
		}
		host := p.pin(4)
		p.do(p.d.Fill(p.one, p.page(2)-8, 5, 2*testPage/4))
		p.do(p.d.CopyOut(p.one, host[:4*testPage-8], p.at))
		p.do(p.d.Synchronize())
		want := slices.Concat(bytes.Repeat([]byte{4, 3, 2, 1}, (2*testPage-8)/4),
			bytes.Repeat([]byte{5, 0, 0, 0}, 2*testPage/4))
		if !bytes.Equal(host[:4*testPage-8], want) {
			t.Errorf("seed %d: other bytes came back", seed)
		}
		p.unmapEach(1, 3)
		if now := p.free(); now != free {
			t.Errorf("%d bytes are free, then %d", free, now)
		}
		p.do(p.d.CopyOut(p.one, host[:testPage], p.at))
		p.do(p.d.CopyOut(p.one, host[testPage:][:testPage-8], p.page(3)))
		p.do(p.d.Synchronize())
		if !bytes.Equal(host[:testPage], want[:testPage]) ||
			!bytes.Equal(host[testPage:][:testPage-8], want[3*testPage:]) {
			t.Errorf("seed %d: the pages that stay hold other bytes", seed)
		}
		m := must[cuda.Memory](p.rig)(p.d.CreateMemory(2 * testPage)) // one for two pages
		p.do(p.d.Map(p.page(1), 2*testPage, m))
		p.do(p.d.Access(p.page(1), 2*testPage))
		p.do(p.unmap(1, 3))
		if now := p.free(); now != free-2*testPage {
			t.Errorf("unmapped memory that is not released: %d bytes are free, then %d", free, now)
		}
		p.do(p.d.ReleaseMemory(m))
		p.do(p.unmap(3, 4))
		p.do(p.unmap(0, 1))
		p.do(p.d.ReleaseAddresses(p.at, 8*testPage))
		if now := p.free(); now != free+2*testPage {
			t.Errorf("all is released: %d bytes are free, then %d", free, now)
		}
		if next := must[cuda.Address](p.rig)(p.d.ReserveAddresses(testPage)); next < p.page(8)+guard {
			t.Errorf("addresses at %#x, before the end of those at %#x", next, p.at)
		}
	}
}

// TestPagesMisuse shows what is refused, and what is found when operations are carried out.
func TestPagesMisuse(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(*paged) error
		code  cuda.Code
		words string
	}{
		{"fill of a page without memory", func(p *paged) error { return p.d.Fill(p.one, p.page(2), 0, 1) },
			cuda.InvalidValue, "in no allocation"},
		{"fill into a page without memory", func(p *paged) error { return p.d.Fill(p.one, p.page(2)-4, 0, 2) },
			cuda.InvalidValue, "reach 4 bytes beyond the end"},
		{"kernel on a page without memory", func(p *paged) error {
			f, _ := p.adder()
			p.do(p.add(p.one, f, p.page(2)-4, p.at, 2))
			return p.d.Synchronize()
		}, cuda.IllegalAddress, "launch of"},
		{"fill without access", func(p *paged) error {
			p.do(p.d.Map(p.page(2), testPage, must[cuda.Memory](p.rig)(p.d.CreateMemory(testPage))))
			return p.d.Fill(p.one, p.page(2), 0, 1)
		}, cuda.InvalidValue, "in no allocation"},
		{"fill after Unmap", func(p *paged) error {
			p.do(p.unmap(1, 2))
			return p.d.Fill(p.one, p.page(1), 0, 1)
		}, cuda.InvalidValue, "in no allocation"},
		{"read what another memory held", func(p *paged) error {
			p.do(p.unmap(1, 2))
			p.mapAt(1, 2)
			p.do(p.d.CopyOut(p.one, p.host[:64], p.page(1)))
			return p.d.Synchronize()
		}, cuda.Unknown, "its byte 0 was never written"},
		{"map twice", func(p *paged) error {
			return p.d.Map(p.page(1), testPage, must[cuda.Memory](p.rig)(p.d.CreateMemory(testPage)))
		}, cuda.InvalidValue, "have memory in part"},
		{"map over", func(p *paged) error {
			return p.d.Map(p.page(1), 2*testPage, must[cuda.Memory](p.rig)(p.d.CreateMemory(2*testPage)))
		}, cuda.InvalidValue, "have memory in part"},
		{"map elsewhere", func(p *paged) error {
			return p.d.Map(p.page(8), testPage, must[cuda.Memory](p.rig)(p.d.CreateMemory(testPage)))
		}, cuda.InvalidValue, "are not reserved"},
		{"map memory in two places", func(p *paged) error {
			m := must[cuda.Memory](p.rig)(p.d.CreateMemory(testPage))
			p.do(p.d.Map(p.page(2), testPage, m))
			return p.d.Map(p.page(3), testPage, m)
		}, cuda.InvalidValue, "which is mapped"},
		{"map a part of memory", func(p *paged) error {
			return p.d.Map(p.page(2), testPage, must[cuda.Memory](p.rig)(p.d.CreateMemory(2*testPage)))
		}, cuda.InvalidValue, "not of 4096"},
		{"map released memory", func(p *paged) error {
			m := must[cuda.Memory](p.rig)(p.d.CreateMemory(testPage))
			p.do(p.d.ReleaseMemory(m))
			return p.d.Map(p.page(2), testPage, m)
		}, cuda.InvalidValue, "there is no memory"},
		{"map a part of a page", func(p *paged) error { return p.d.Map(p.page(2)+256, testPage, 1) },
			cuda.InvalidValue, "not whole pages"},
		{"memory of a part of a page", func(p *paged) error {
			_, err := p.d.CreateMemory(256)
			return err
		}, cuda.InvalidValue, "not whole pages"},
		{"addresses of a part of a page", func(p *paged) error {
			_, err := p.d.ReserveAddresses(testPage + 256)
			return err
		}, cuda.InvalidValue, "not whole pages"},
		{"access of what is not mapped", func(p *paged) error { return p.d.Access(p.page(1), 2*testPage) },
			cuda.InvalidValue, "not what was mapped"},
		{"unmap what is not mapped", func(p *paged) error { return p.unmap(1, 3) },
			cuda.InvalidValue, "not what was mapped"},
		{"unmap a part of memory", func(p *paged) error {
			p.do(p.d.Map(p.page(2), 2*testPage, must[cuda.Memory](p.rig)(p.d.CreateMemory(2*testPage))))
			return p.unmap(2, 3)
		}, cuda.InvalidValue, "not what was mapped"},
		{"unmap two memories at once", func(p *paged) error { return p.unmap(0, 2) },
			cuda.InvalidValue, "not what one call has mapped"},
		{"release memory twice", func(p *paged) error {
			m := must[cuda.Memory](p.rig)(p.d.CreateMemory(testPage))
			p.do(p.d.ReleaseMemory(m))
			return p.d.ReleaseMemory(m)
		}, cuda.InvalidValue, "there is no memory"},
		{"release what is mapped as if it were allocated", func(p *paged) error { return p.d.Release(p.at) },
			cuda.InvalidValue, "no allocation begins"},
		{"release addresses with memory", func(p *paged) error { return p.d.ReleaseAddresses(p.at, 8*testPage) },
			cuda.InvalidValue, "memory is mapped"},
		{"release a part of addresses", func(p *paged) error { return p.d.ReleaseAddresses(p.at, testPage) },
			cuda.InvalidValue, "reserved at"},
		{"too much memory", func(p *paged) error {
			_, err := p.d.CreateMemory(48e9 / testPage * testPage)
			return err
		}, cuda.OutOfMemory, "out of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPaged(t, 0)
			p.refused(c.do(p), c.code, c.words)
		})
	}
	none := newRig(t, Options{NoPages: true})
	_, err := none.d.ReserveAddresses(2 * graph.MiB)
	none.refused(err, notSupported, "maps no memory")
}

// Memory is unmapped while something on a stream uses it, that the host does not know to have ended: an error whatever
// the order was, and none where the host knows.
func TestUnmapRaces(t *testing.T) {
	for _, use := range map[string]func(*paged) error{
		"copy":   func(p *paged) error { return p.d.CopyOut(p.one, p.host[:64], p.page(2)-32) },
		"fill":   func(p *paged) error { return p.d.Fill(p.one, p.page(1), 1, 4) },
		"kernel": func(p *paged) error { f, _ := p.adder(); return p.add(p.one, f, p.page(1), p.at, 4) },
	} {
		for seed := range uint64(8) {
			p := newPaged(t, seed)
			p.mapAt(2, 3)
			p.do(p.d.Fill(p.one, p.page(2), 1, 16))
			p.do(p.d.Synchronize())
			p.do(use(p))
			p.refused(p.unmap(1, 2), cuda.Unknown, "race", "its Unmap")
			p = newPaged(t, seed)
			p.mapAt(2, 3)
			p.do(p.d.Fill(p.one, p.page(2), 1, 16))
			p.do(use(p))
			p.d.Watch(p.one, p.mark(p.one), 1)
			p.do(next(p.bench))
			p.do(p.unmap(1, 2))
		}
	}
}

// What is left at Close is listed.
func TestPagesLeft(t *testing.T) {
	p := newPaged(t, 0)
	must[cuda.Memory](p.rig)(p.d.CreateMemory(testPage))
	p.refused(p.d.Close(), cuda.InvalidValue, "32KiB of addresses at 0x7000", "with 8KiB of memory", ", memory ")
}
