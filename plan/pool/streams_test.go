package pool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	gocmp "github.com/google/go-cmp/cmp"
)

// slowStreams keeps the state of every byte: synced, freed by a stream, or of the block that begins at an offset.
type slowStreams struct {
	bytes  []int
	height int64
	forced int
}

const (
	slowSynced = -1
	slowOwn    = -2 // of stream 0; that of stream n is n less
)

func newSlowStreams(capacity int) *slowStreams {
	return &slowStreams{bytes: slices.Repeat([]int{slowSynced}, capacity)}
}

// smallest returns the smallest run of bytes in a state that has room, the lowest of equal ones, and -1 if none has.
func (s *slowStreams) smallest(state, size int) (at int) {
	at = -1
	best := len(s.bytes) + 1
	for from := 0; from < len(s.bytes); {
		to := from
		for to < len(s.bytes) && s.bytes[to] == s.bytes[from] {
			to++
		}
		if run := to - from; s.bytes[from] == state && run >= size && run < best {
			at, best = from, run
		}
		from = to
	}
	return at
}

func (s *slowStreams) alloc(size, stream int) (int64, error) {
	at := s.smallest(slowOwn-stream, size)
	if at < 0 {
		at = s.smallest(slowSynced, size)
	}
	if at < 0 {
		s.forced++
		s.sync()
		at = s.smallest(slowSynced, size)
	}
	if at < 0 {
		full := &FullError{Size: int64(size), Align: 1, Capacity: int64(len(s.bytes))}
		run := int64(0)
		for _, b := range s.bytes {
			if b >= 0 {
				run = 0
				continue
			}
			run++
			full.Free++
			full.Largest = max(full.Largest, run)
		}
		return 0, full
	}
	for i := range size {
		s.bytes[at+i] = at
	}
	s.height = max(s.height, int64(at+size))
	return int64(at), nil
}

// free frees a block that a stream used last; slowSynced: it was computed.
func (s *slowStreams) free(at, stream int) {
	state := slowSynced
	if stream >= 0 {
		state = slowOwn - stream
	}
	for i, b := range s.bytes {
		if b == at {
			s.bytes[i] = state
		}
	}
}

func (s *slowStreams) sync() {
	for i, b := range s.bytes {
		if b < 0 {
			s.bytes[i] = slowSynced
		}
	}
}

// verify wants blocks and chunks to cover all bytes as the slow model has them.
func (s *Streams) verify(t *testing.T, slow *slowStreams) {
	t.Helper()
	states := make([]int, len(slow.bytes))
	for i := range states {
		states[i] = slowOwn - len(s.sets) // nobody's
	}
	fill := func(h hole, state int) {
		for i := h.at; i < h.at+h.size; i++ {
			states[i] = state
		}
	}
	used, free := int64(0), 0
	for at, size := range s.blocks {
		fill(hole{size, at}, int(at))
		used += size
	}
	for set := range s.sets {
		for h := range s.sets[set].from(0) {
			c := chunk{h, set}
			if h.size <= 0 || s.begins[h.at] != c || s.ends[h.at+h.size] != c {
				t.Fatalf("chunk %+v: begins %v, ends %v", c, s.begins, s.ends)
			}
			free++
			state := slowOwn - set
			if set == len(s.sets)-1 {
				state = slowSynced
			}
			fill(h, state)
		}
	}
	if !slices.Equal(slow.bytes, states) {
		t.Fatalf("bytes are %v, want %v", states, slow.bytes)
	}
	if used != s.Used() || free != len(s.begins) || free != len(s.ends) || s.Height() != slow.height ||
		s.Forced() != slow.forced {
		t.Fatalf("used %d of %d, %d chunks, begins %v, ends %v, height %d, want %d, forced %d, want %d", s.Used(), used,
			free, s.begins, s.ends, s.Height(), slow.height, s.Forced(), slow.forced)
	}
}

// driveStreams does what the bytes say with a Streams and with the slow one.
func driveStreams(t *testing.T, capacity, streams int, script []byte) {
	s, slow := NewStreams(int64(capacity), streams), newSlowStreams(capacity)
	var blocks []int
	for ; len(script) >= 2; script = script[2:] {
		kind, value := int(script[0]), int(script[1])
		switch n := len(blocks); {
		case kind%16 == 0:
			s.Sync()
			slow.sync()
		case kind%16 < 7 && n > 0:
			i := value % n
			at, stream := blocks[i], kind/16%streams
			blocks = slices.Delete(blocks, i, i+1)
			if kind%16 == 1 {
				stream = slowSynced
				s.FreeComputed(int64(at))
			} else {
				s.Free(int64(at), stream)
			}
			slow.free(at, stream)
		default:
			size, stream := 1+value%24, kind/16%streams
			got, err := s.Alloc(int64(size), stream)
			want, wantErr := slow.alloc(size, stream)
			if diff := gocmp.Diff(wantErr, err); diff != "" || got != want {
				t.Fatalf("Alloc(%d, %d) = %d, %v, want %d, %v", size, stream, got, err, want, wantErr)
			}
			if err == nil {
				blocks = append(blocks, int(got))
			}
		}
		s.verify(t, slow)
	}
}

func TestStreamsModel(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 21))
		script := make([]byte, 2*rng.IntN(120))
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			driveStreams(t, []int{40, 100, 300}[seed%3], 1+int(seed%4), script)
		}()
	}
}

func FuzzStreams(f *testing.F) {
	f.Add(byte(100), byte(2), []byte{7, 9, 23, 9, 2, 0, 7, 3, 0, 0, 23, 20})
	f.Add(byte(24), byte(1), []byte{7, 23, 1, 0, 7, 11, 7, 11, 2, 1, 7, 23})
	f.Fuzz(func(t *testing.T, capacity, streams byte, script []byte) {
		driveStreams(t, max(int(capacity), 1), 1+int(streams%4), script[:min(len(script), 400)])
	})
}

// TestStreams plays testdata/streams.txt. Commands, whose answer is the memory from 0 up:
//
//	new capacity=N streams=N
//	alloc block=B size=N stream=N
//	free block=B stream=N       when the last operation that uses it is scheduled
//	free block=B computed       when that has been computed
//	sync                        of all streams
func TestStreams(t *testing.T) {
	var s *Streams
	names := map[int64]string{}
	datadriven.RunTest(t, "testdata/streams.txt", func(t *testing.T, d *datadriven.TestData) string {
		number := func(key string) (n int) { d.ScanArgs(t, key, &n); return n }
		block := func() (name string) { d.ScanArgs(t, "block", &name); return name }
		said := ""
		switch d.Cmd {
		case "new":
			s = NewStreams(int64(number("capacity")), number("streams"))
			clear(names)
		case "alloc":
			forced := s.Forced()
			at, err := s.Alloc(int64(number("size")), number("stream"))
			if s.Forced() > forced {
				said = "synchronises\n"
			}
			if err != nil {
				said += err.Error() + "\n"
				break
			}
			names[at] = block()
		case "free":
			for at, name := range names {
				if name != block() {
					continue
				}
				delete(names, at)
				if d.HasArg("computed") {
					s.FreeComputed(at)
				} else {
					s.Free(at, number("stream"))
				}
			}
		case "sync":
			s.Sync()
		default:
			t.Fatalf("unknown command %s", d.Cmd)
		}
		var b strings.Builder
		for at := int64(0); at < s.capacity; {
			if size, ok := s.blocks[at]; ok {
				fmt.Fprintf(&b, " %s:%d", names[at], size)
				at += size
				continue
			}
			c := s.begins[at]
			set := "synced"
			if c.set < len(s.sets)-1 {
				set = fmt.Sprintf("stream%d", c.set)
			}
			fmt.Fprintf(&b, " (%s:%d)", set, c.size)
			at += c.size
		}
		return said + strings.TrimSpace(b.String()) + "\n"
	})
}

func TestStreamsMistakes(t *testing.T) {
	s := NewStreams(10, 2)
	for name, do := range map[string]func(){
		"no stream":         func() { NewStreams(1, 0) },
		"negative capacity": func() { NewStreams(-1, 1) },
		"unknown stream":    func() { _, _ = s.Alloc(1, 2) },
		"no bytes":          func() { _, _ = s.Alloc(0, 0) },
		"no block":          func() { s.Free(3, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			do()
		}()
	}
}
