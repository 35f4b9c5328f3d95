package fakecuda

import (
	"cmp"
	"math/rand/v2"

	"tensile/device/cuda"
)

type streams struct {
	handles    uint64 // the last that was given; no number is used twice
	streamOf   map[cuda.Stream]*stream
	eventOf    map[cuda.Event]*event
	lanes      int
	host       clock // Operations that the host knows to have ended.
	all        clock // all that was put
	ready      []*node
	unfinished int // nodes of streams that are not carried out
	order      *rand.Rand
}

type stream struct {
	lane    lane
	waits   []*node // what the next operation waits for: the one before it, and records that were awaited since
	capture *Graph  // The graph that captures operations; nil: none.
	outside []*node // waits as they were before the capture
	refused bool
}

// NewStream implements cuda.Driver.
func (d *Driver) NewStream() (cuda.Stream, error) {
	if err := d.enter("cuStreamCreate"); err != nil {
		return 0, err
	}
	d.handles++
	d.lanes++
	d.streamOf[cuda.Stream(d.handles)] = &stream{lane: lane{number: d.lanes}}
	return cuda.Stream(d.handles), nil
}

// DestroyStream implements cuda.Driver. What is on the stream goes on.
func (d *Driver) DestroyStream(s cuda.Stream) error {
	const call = "cuStreamDestroy"
	err := d.enter(call)
	of, unknown := d.stream(call, s)
	if unknown != nil {
		return cmp.Or(err, unknown)
	} else if err != nil {
		of.refused = true
		return err
	}
	delete(d.streamOf, s)
	return nil
}

func (d *Driver) stream(call string, s cuda.Stream) (*stream, error) {
	of, ok := d.streamOf[s]
	switch {
	case s == 0:
		return nil, refuse(call, invalidHandle, "stream 0 is the default stream, which waits for all others")
	case !ok:
		return nil, refuse(call, invalidHandle, "there is no stream %d", s)
	}
	return of, nil
}

// Synchronize implements cuda.Driver.
func (d *Driver) Synchronize() error {
	const call = "cuCtxSynchronize"
	if err := d.enter(call); err != nil {
		return err
	}
	for _, s := range d.streamOf {
		if s.capture != nil {
			return refuse(call, cuda.StreamCaptureBad, "a stream is being captured")
		}
	}
	d.runAll()
	d.host = d.host.merge(d.all)
	return d.settle(call)
}
