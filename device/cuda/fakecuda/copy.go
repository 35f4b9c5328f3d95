package fakecuda

import (
	"fmt"
	"time"

	"tensile/device/cuda"
	"tensile/device/ptx"
	"tensile/graph"
)

// CopyIn implements cuda.Driver.
func (d *Driver) CopyIn(s cuda.Stream, to cuda.Address, from []byte) error {
	const call = "cuMemcpyHtoDAsync"
	if err := d.enter(call); err != nil {
		return err
	}
	return d.copy(call, s, to, from, true)
}

// CopyOut implements cuda.Driver. To copy bytes that nothing has written is an error.
func (d *Driver) CopyOut(s cuda.Stream, to []byte, from cuda.Address) error {
	const call = "cuMemcpyDtoHAsync"
	if err := d.enter(call); err != nil {
		return err
	}
	return d.copy(call, s, from, to, false)
}

// copy puts a copy between device and host on a stream.
func (d *Driver) copy(call string, s cuda.Stream, address cuda.Address, host []byte, in bool) error {
	of, err := d.stream(call, s)
	if err != nil {
		return err
	}
	begin, size := uint64(address), len(host)
	a, err := d.device(call, begin, size)
	if err != nil {
		return err
	}
	p, err := d.pinned(call, host)
	if err != nil {
		return err
	}
	there := ptx.Range{Begin: begin, End: begin + uint64(size)}
	here := ptx.Range{}
	here.Begin, here.End = rangeOf(host)
	n := &node{what: fmt.Sprintf("copy out of %d bytes from %#x", size, begin), stream: s, unit: out,
		time: func(*node) time.Duration { return d.facts.Out.Time(graph.Bytes(size)) }}
	if in {
		n.what, n.unit = fmt.Sprintf("copy in of %d bytes to %#x", size, begin), inward
		n.time = func(*node) time.Duration { return d.facts.In.Time(graph.Bytes(size)) }
	}
	n.run = func(n *node) {
		d.use(&p.shadow, p.begin, here, n, !in)
		d.use(a.shadow, a.begin, there, n, in)
		switch {
		case d.options.Dry || d.failed != nil:
		case in:
			copy(a.write(begin, size), host)
		default:
			bytes, missing := a.read(begin, size)
			if missing >= 0 {
				d.found(cuda.Unknown, "%s: its byte %d was never written", n, missing)
				return
			}
			copy(host, bytes)
		}
	}
	d.put(of, n)
	return nil
}

// Fill implements cuda.Driver.
func (d *Driver) Fill(s cuda.Stream, to cuda.Address, word uint32, words int) error {
	const call = "cuMemsetD32Async"
	if err := d.enter(call); err != nil {
		return err
	}
	of, err := d.stream(call, s)
	if err != nil {
		return err
	}
	begin, size := uint64(to), 4*words
	a, err := d.device(call, begin, size)
	if err != nil {
		return err
	} else if begin%4 != 0 {
		return refuse(call, cuda.InvalidValue, "%#x is not the address of a word", begin)
	}
	d.put(of, &node{what: fmt.Sprintf("fill of %d bytes at %#x", size, begin), stream: s, unit: compute,
		time: func(*node) time.Duration { return d.roofline(0, int64(size)) },
		run: func(n *node) {
			d.use(a.shadow, a.begin, ptx.Range{Begin: begin, End: begin + uint64(size)}, n, true)
			if d.options.Dry || d.failed != nil {
				return
			}
			bytes := a.write(begin, size)
			for i := range bytes {
				bytes[i] = byte(word >> (i % 4 * 8))
			}
		}})
	return nil
}
