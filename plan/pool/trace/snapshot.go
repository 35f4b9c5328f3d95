package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// parseSnapshot reads the JSON of what torch.cuda.memory._snapshot() returns: of the entries in device_traces the
// actions alloc and free_completed become malloc and free of the address; free_requested, after which another stream
// may still use the block, and the segments' own actions are left out. Sizes are those requested, not rounded. A block
// that is freed before it is allocated, or that the segments say is active although the entries do not, was there
// before the history began, or its entry has been dropped from a full buffer: it stands at the start as a malloc, and
// is counted. One that is active although its last entry has freed it came after the last entry: it stands at the end.
// The action oom becomes an OOM.
//
// It decodes entry by entry and keeps no stack frames. Errors name line and column, or device and entry.
func parseSnapshot(r io.Reader, name string, o ImportOptions) (*Record, error) {
	s := newSnapshot(r, name)
	if err := s.read(); err != nil {
		return nil, err
	}
	device, err := s.choose(o.Device)
	if err != nil {
		return nil, err
	}
	return s.record(device)
}

// entry is one element of device_traces, as far as it matters here.
type entry struct {
	Action string `json:"action"`
	Addr   uint64 `json:"addr"` // none for oom
	Size   int64  `json:"size"`
	Free   int64  `json:"device_free"` // of oom alone
}

// segment is one element of segments.
type segment struct {
	Device  int    `json:"device"`
	Address uint64 `json:"address"`
	Blocks  []struct {
		Address   *uint64 `json:"address"` // older forms leave it out: blocks follow each other
		Size      int64   `json:"size"`
		Requested *int64  `json:"requested_size"`
		State     string  `json:"state"`
	} `json:"blocks"`
}

// happened is an entry that is kept, with its place for messages.
type happened struct {
	what  what
	addr  uint64 // of oom: the bytes that were free
	size  int64
	index int // among the entries of its device
}

type what uint8

const (
	entryAlloc what = iota
	entryFree
	entryOOM
)

// residual is a block that is active when the snapshot is taken.
type residual struct {
	addr uint64
	size int64
}

type snapshot struct {
	dec     *json.Decoder
	lines   *lines
	devices [][]happened
	known   bool               // it has a key of a snapshot
	other   bool               // it has another key
	active  map[int][]residual // by device
	traced  bool               // there is a device_traces
}

func newSnapshot(r io.Reader, name string) *snapshot {
	l := &lines{r: r, at: place{file: name, line: 1}}
	return &snapshot{dec: json.NewDecoder(l), lines: l, active: make(map[int][]residual)}
}

// read reads the whole document.
func (s *snapshot) read() error {
	if err := s.open('{', "the snapshot"); err != nil {
		return err
	}
	for s.dec.More() {
		key, err := s.dec.Token()
		if err != nil {
			return s.broken(err)
		}
		if key == "device_traces" || key == "segments" {
			s.known = true
		} else {
			s.other = true
		}
		switch key {
		case "device_traces":
			if s.traced {
				return s.errorf("device_traces stands there twice")
			}
			s.traced = true
			err = s.each("device_traces", s.device)
		case "segments":
			err = s.each("segments", s.segment)
		default:
			err = s.skip()
		}
		if err != nil {
			return err
		}
	}
	if _, err := s.dec.Token(); err != nil {
		return s.broken(err)
	}
	if s.other && !s.known {
		return fmt.Errorf("%s was taken for a PyTorch memory snapshot because it begins with {, but it has neither "+
			"device_traces nor segments; "+
			"a trace is a text (malloc BLOCK SIZE and free BLOCK, one a line), a CSV (columns event,block,size) or "+
			"a snapshot as JSON", s.lines.at.file)
	}
	if _, err := s.dec.Token(); err != io.EOF {
		return s.errorf("something follows the snapshot")
	}
	return nil
}

// open takes the delimiter that begins a list or an object.
func (s *snapshot) open(want json.Delim, what string) error {
	token, err := s.dec.Token()
	if err != nil {
		return s.broken(err)
	}
	if token == json.Delim('[') && what == "the snapshot" {
		return s.errorf("a list of segments without events: call torch.cuda.memory._record_memory_history() before " +
			"what is to be" +
			" recorded, and save all of torch.cuda.memory._snapshot()")
	}
	if token != want {
		return s.errorf("%s begins with %v, not with %v", what, token, want)
	}
	return nil
}

// each calls a function for every element of a list, which is to read it.
func (s *snapshot) each(what string, element func(i int) error) error {
	if err := s.open('[', what); err != nil {
		return err
	}
	for i := 0; s.dec.More(); i++ {
		if err := element(i); err != nil {
			return err
		}
	}
	_, err := s.dec.Token()
	return s.broken(err)
}

func (s *snapshot) device(d int) error {
	s.devices = append(s.devices, nil)
	return s.each(fmt.Sprintf("device_traces[%d]", d), func(i int) error {
		s.lines.forget(s.dec.InputOffset())
		var e entry
		if err := s.dec.Decode(&e); err != nil {
			return s.broken(fmt.Errorf("device %d, entry %d: %w", d, i, err))
		}
		switch e.Action {
		case "alloc":
			s.devices[d] = append(s.devices[d], happened{entryAlloc, e.Addr, e.Size, i})
		case "free_completed", "free": // the latter before there were streams to wait for
			s.devices[d] = append(s.devices[d], happened{entryFree, e.Addr, e.Size, i})
		case "oom":
			s.devices[d] = append(s.devices[d], happened{entryOOM, uint64(e.Free), e.Size, i})
		case "":
			return s.errorf("device %d, entry %d has no action", d, i)
		}
		return nil
	})
}

func (s *snapshot) segment(i int) error {
	s.lines.forget(s.dec.InputOffset())
	var seg segment
	if err := s.dec.Decode(&seg); err != nil {
		return s.broken(fmt.Errorf("segment %d: %w", i, err))
	}
	addr := seg.Address
	for _, b := range seg.Blocks {
		if b.Address != nil {
			addr = *b.Address
		}
		if strings.HasPrefix(b.State, "active") {
			size := b.Size
			if b.Requested != nil {
				size = *b.Requested
			}
			s.active[seg.Device] = append(s.active[seg.Device], residual{addr, size})
		}
		addr += uint64(b.Size)
	}
	return nil
}

// skip reads one value of any kind.
func (s *snapshot) skip() error {
	for depth := 0; ; {
		token, err := s.dec.Token()
		if err != nil {
			return s.broken(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if s.lines.forget(s.dec.InputOffset()); depth == 0 {
			return nil
		}
	}
}

// errorf is an error at the place that was read last.
func (s *snapshot) errorf(format string, args ...any) error {
	return s.lines.place(s.dec.InputOffset()).errorf(format, args...)
}

// broken puts the place before an error of the decoder; nil stays nil.
func (s *snapshot) broken(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return s.errorf("the file ends in the middle of the snapshot")
	}
	return s.errorf("%w", err)
}
