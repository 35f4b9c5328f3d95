package trace

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// torchEntry is one of a snapshot.
type torchEntry struct {
	Action string   `json:"action"`
	Addr   uint64   `json:"addr"`
	Size   int64    `json:"size"`
	Stream int      `json:"stream"`
	Free   int64    `json:"device_free,omitempty"`
	Time   int64    `json:"time_us"`
	Frames []string `json:"frames"`
}

// torch is a program on a device, as its allocator records it.
type torch struct {
	history []torchEntry
	live    map[uint64]int64
	next    uint64
	wait    map[uint64]bool // a stream still uses the block
	peak    int64           // since the history was begun
}

func newTorch() *torch {
	return &torch{live: make(map[uint64]int64), next: 0x7f0000000000, wait: make(map[uint64]bool)}
}

func (d *torch) add(action string, addr uint64, size int64) {
	d.history = append(d.history, torchEntry{Action: action, Addr: addr, Size: size, Time: 1700000000000000 +
		int64(len(d.history)), Frames: []string{}})
}

func (d *torch) allocated() (bytes int64) {
	for _, size := range d.live {
		bytes += size
	}
	return bytes
}

// begin forgets the history: recording begins.
func (d *torch) begin() { d.history, d.peak = nil, d.allocated() }

func (d *torch) alloc(size int64) uint64 {
	addr := d.next
	d.next += uint64(size+511) &^ 511
	d.add("segment_alloc", addr, (size+2<<20-1)&^(2<<20-1))
	d.add("alloc", addr, size)
	d.live[addr] = size
	d.peak = max(d.peak, d.allocated())
	return addr
}

func (d *torch) free(addrs ...uint64) {
	for _, addr := range addrs {
		d.add("free_requested", addr, d.live[addr])
		if !d.wait[addr] {
			d.add("free_completed", addr, d.live[addr])
			delete(d.live, addr)
		}
	}
}

func (d *torch) scratch(sizes ...int64) {
	for _, size := range sizes {
		d.free(d.alloc(size))
	}
}

func (d *torch) oom(asked, free int64) {
	d.history = append(d.history, torchEntry{Action: "oom", Size: asked, Free: free, Frames: []string{}})
}

// snapshot has the last entries of the history.
func (d *torch) snapshot(last int) string {
	type block struct {
		Address   uint64 `json:"address"`
		Size      int64  `json:"size"`
		Requested int64  `json:"requested_size"`
		State     string `json:"state"`
	}
	type segment struct {
		Device  int     `json:"device"`
		Address uint64  `json:"address"`
		Stream  int     `json:"stream"`
		Blocks  []block `json:"blocks"`
	}
	segments := []segment{}
	for addr, size := range d.live {
		state := "active_allocated"
		if d.wait[addr] {
			state = "active_pending_free"
		}
		segments = append(segments, segment{Address: addr, Blocks: []block{{addr, (size + 511) &^ 511, size, state},
			{addr + 4096, 512, 0, "inactive"}}})
	}
	d.add("snapshot", 0, 0)
	history := d.history[max(0, len(d.history)-last):]
	text, err := json.Marshal(map[string]any{"segments": segments, "device_traces": [][]torchEntry{{}, history}[1:],
		"allocator_settings": map[string]any{"expandable_segments": false}, "external_annotations": []string{}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// all is more entries than a history has.
const all = 1 << 30

// step is a training step of a transformer of equal layers; the first makes the optimizer's state, and may try
// algorithms.
func (d *torch) step(layers int, first, tries, trains bool) {
	x := d.alloc(1 << 20)
	acts := []uint64{x}
	for range layers {
		if first && tries {
			d.scratch(64<<20, 96<<20, 8<<20)
		}
		normed, qkv := d.alloc(1<<20), d.alloc(3<<20)
		scores := d.alloc(2 << 20)
		d.scratch(1<<20 + 4)
		y := d.alloc(1<<20 + 512)
		if !trains {
			d.free(acts...)
			acts = nil
			d.free(normed, qkv, scores)
			acts = append(acts, y)
			continue
		}
		acts = append(acts, normed, qkv, scores, y)
	}
	logits := d.alloc(9 << 20)
	loss := d.alloc(4)
	var grads []uint64
	for i := len(acts) - 1; i >= 0; i-- {
		if trains {
			d.scratch(1<<20 + 8)
		}
		if trains && i%4 == 0 {
			grads = append(grads, d.alloc(4<<20))
		}
		d.free(acts[i])
	}
	d.free(logits)
	for range grads {
		if first {
			d.alloc(4<<20 + 4)
			d.alloc(4<<20 + 4)
		}
		d.scratch(4<<20+8, 4<<20+16)
	}
	d.free(grads...)
	d.free(loss)
}

// What is said of a snapshot in the form of torch 2 is never below what was allocated at once, and says what it is.
func TestSnapshots(t *testing.T) {
	weights := func(d *torch, layers int) {
		for range layers {
			d.alloc(4 << 20)
		}
	}
	const layers = 24
	for _, c := range []struct {
		name    string
		run     func(d *torch)
		last    int
		repeats int
		held    bool
		oom     int
	}{
		{"one inference", func(d *torch) { weights(d, layers); d.begin(); d.step(layers, false, false, false) }, all, 1,
			true, 0},
		{"one training step", func(d *torch) { weights(d, layers); d.begin(); d.step(layers, true, false, true) }, all,
			1, true, 0},
		{"one step, from the start", func(d *torch) { weights(d, layers); d.step(layers, true, true, true) }, all, 1,
			false, 0},
		{"three steps with a warm-up", func(d *torch) {
			weights(d, layers)
			d.begin()
			for i := range 3 {
				d.step(layers, i == 0, true, true)
			}
		}, all, 2, true, 0},
		{"an overflowed buffer", func(d *torch) {
			weights(d, layers)
			for i := range 5 {
				d.step(layers, i == 0, true, true)
			}
		}, 2600, 2, true, 0},
		{"out of memory", func(d *torch) {
			weights(d, layers)
			for i := range 3 {
				d.step(layers, i == 0, false, true)
			}
			d.alloc(1 << 20)
			d.oom(80<<30, 3<<30)
		}, all, 2, false, 1},
		{"a block for which a stream waits", func(d *torch) {
			a := d.alloc(5 << 20)
			d.wait[a] = true
			d.free(a)
			d.step(3, true, true, true)
		}, all, 1, false, 0},
	} {
		d := newTorch()
		c.run(d)
		r, a := answer(t, c.name, d.snapshot(c.last))
		if a.Found.Repeats != c.repeats || (r.Before > 0) != c.held {
			t.Errorf("%s: %+v, %v, %d blocks from before", c.name, a.Found, a.Part, r.Before)
		}
		if c.last == all && a.Peak != d.peak {
			t.Errorf("%s: peak %d, want %d", c.name, a.Peak, d.peak)
		}
		if len(r.OOM) != c.oom || c.oom > 0 && r.OOM[0] != (OOM{len(r.Trace), 80 << 30, 3 << 30, d.allocated()}) {
			t.Errorf("%s: %+v", c.name, r.OOM)
		}
	}
}

// answer imports a snapshot and checks what is said of it.
func answer(t *testing.T, what, text string) (*Record, *Answer) {
	t.Helper()
	r, err := Import(strings.NewReader(text), what, ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r, checkAnswer(t, what, r)
}

// Random programs on a device, of which the history is whole or cut.
func TestRandomSnapshots(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := newTorch()
		last := all
		if rng.IntN(2) == 0 {
			last = 10 + rng.IntN(200)
		}
		var live []uint64
		for range 1 + rng.IntN(6) {
			piece := rand.New(rand.NewPCG(seed, uint64(rng.IntN(3))))
			for range rng.IntN(30) {
				if k := len(live); k > 0 && piece.IntN(2) == 0 {
					at := piece.IntN(k)
					d.free(live[at])
					live = append(live[:at], live[at+1:]...)
				} else {
					live = append(live, d.alloc(int64(1+piece.IntN(5))<<9))
				}
			}
			if rng.IntN(4) == 0 {
				d.step(1+rng.IntN(3), rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0)
			}
			if rng.IntN(5) == 0 {
				d.begin()
			}
		}
		d.scratch(1)
		what := fmt.Sprintf("seed %d", seed)
		if _, a := answer(t, what, d.snapshot(last)); last == all && a.Peak != d.peak {
			t.Errorf("%s: peak %d, want %d", what, a.Peak, d.peak)
		}
	}
}
