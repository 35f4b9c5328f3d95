package fakecuda

import (
	"testing"

	"tensile/device/cuda"
)

// body puts two fills and copies on two streams, without one of its edges: -1: none.
func body(b *bench, in, out []byte, without int) {
	edge := func(i int, from, to cuda.Stream) {
		if e := b.mark(from); i != without {
			b.do(b.d.Wait(to, e))
		}
	}
	edge(0, b.one, b.two)
	b.do(b.d.CopyIn(b.two, b.a, in))
	edge(1, b.two, b.one)
	b.do(b.d.CopyOut(b.one, out, b.a))
	edge(2, b.one, b.two)
	b.do(b.d.Fill(b.two, b.a, 3, 1))
	edge(3, b.two, b.one)
	b.do(b.d.CopyOut(b.one, out[:4], b.a))
}

// TestGraph captures a body, launches it three times, and loses each of its edges in turn.
func TestGraph(t *testing.T) {
	for seed := range uint64(6) {
		for without := -1; without < 4; without++ {
			b := newBench(t, seed)
			in, out := b.host[:8], b.host[100:108]
			copy(in, "tensile!")
			b.do(b.d.Fill(b.one, b.a, 9, 2))
			b.do(b.d.BeginCapture(b.one))
			if without == 0 { // so that stream two is in the graph
				b.do(b.d.Wait(b.two, b.mark(b.one)))
			}
			body(b, in, out, without)
			if without == 3 {
				b.do(b.d.Wait(b.one, b.mark(b.two)))
			}
			g, err := b.d.EndCapture(b.one)
			b.do(err)
			b.refused(b.d.Wait(b.one, lastEvent(b)), captureIsolation, "not recorded in the capture")
			for range 3 {
				b.do(b.d.LaunchGraph(b.one, g))
				b.do(b.d.Fill(b.one, b.a, 9, 2)) // in order with the launches
			}
			switch err := b.d.Synchronize(); {
			case without == 1 || without == 2:
				b.refused(err, cuda.Unknown, "race")
			case without == 3: // the last copy may come before the fill, but nothing tells them apart
				b.refused(err, cuda.Unknown, "race")
			default:
				b.do(err)
				if got := string(out); got != "\x03\x00\x00\x00ile!" {
					t.Errorf("seed %d: %q came out", seed, got)
				}
			}
		}
	}
}

// TestEmptyGraph shows that what is put after a graph without operations comes after what was before it.
func TestEmptyGraph(t *testing.T) {
	for seed := range uint64(8) {
		b := newBench(t, seed)
		b.do(b.d.BeginCapture(b.one))
		g, err := b.d.EndCapture(b.one)
		b.do(err)
		b.do(b.d.Fill(b.one, b.a, 1, 1))
		b.do(b.d.LaunchGraph(b.one, g))
		b.do(b.d.CopyOut(b.one, b.host[:1], b.a))
		b.do(b.d.Synchronize())
		if b.host[0] != 1 {
			t.Errorf("seed %d: %d came out", seed, b.host[0])
		}
	}
}

// lastEvent returns the newest event.
func lastEvent(b *bench) cuda.Event {
	var last cuda.Event
	for e := range b.d.eventOf {
		last = max(last, e)
	}
	return last
}

// TestCapture shows what a capture refuses.
func TestCapture(t *testing.T) {
	b := newBench(t, 0)
	before := b.mark(b.two)
	b.do(b.d.BeginCapture(b.one))
	b.refused(b.d.BeginCapture(b.one), cuda.StreamCaptureBad, "being captured")
	b.refused(b.d.Synchronize(), cuda.StreamCaptureBad, "being captured")
	b.refused(b.d.Wait(b.one, before), captureIsolation, "not recorded in the capture")
	b.do(b.d.Wait(b.two, b.mark(b.one)))
	b.do(b.d.Fill(b.two, b.a, 0, 1))
	_, err := b.d.EndCapture(b.two)
	b.refused(err, cuda.StreamCaptureBad, "no capture was begun on stream 2")
	_, err = b.d.Ended(lastEvent(b))
	b.refused(err, cuda.StreamCaptureBad, "recorded in a capture")
	_, err = b.d.EndCapture(b.one)
	b.refused(err, unjoinedCapture, "stream 1 does not wait for fill of 4 bytes")
	b.do(b.d.Synchronize())
}
