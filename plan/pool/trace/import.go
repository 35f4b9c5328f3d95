package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ImportOptions are the settings of Import; the zero value is the recommended one.
type ImportOptions struct {
	Device *int // of a snapshot, by number; nil: the only one with events
}

// Record is a trace and what else a file says.
type Record struct {
	Trace  Trace
	Before int // of a snapshot: the first events stand for so many blocks from before its history; they are none of it
	OOM    []OOM
}

// OOM is a request for which there was no memory.
type OOM struct {
	Event int   // of the trace that came next
	Asked int64 // bytes
	Free  int64 // bytes of the device
	Held  int64 // bytes of all blocks
}

// ErrPickle is what Import returns, after the file's name, for a pickle: convert it to JSON.
var ErrPickle = errors.New("is a pickle, not JSON")

// Import reads a trace in whichever form it is: the text form, a CSV (see ParseCSV) or the JSON of a PyTorch memory
// snapshot (see ParseSnapshot). The first bytes tell.
func Import(r io.Reader, name string, o ImportOptions) (*Record, error) {
	in := bufio.NewReaderSize(r, longest)
	start, err := in.Peek(longest)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if mark := []byte("\uFEFF"); bytes.HasPrefix(start, mark) {
		in.Discard(len(mark)) // of what was peeked at
		start = start[len(mark):]
	}
	switch start = bytes.TrimLeft(start, " \t\r\n"); {
	case bytes.HasPrefix(start, []byte{0x80}):
		return nil, fmt.Errorf("%s %w", name, ErrPickle)
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return nil, fmt.Errorf("%s is compressed; unpack it with gunzip first", name)
	case bytes.HasPrefix(start, []byte("{")), bytes.HasPrefix(start, []byte("[")):
		return parseSnapshot(in, name, o)
	case o.Device != nil:
		return nil, fmt.Errorf("%s is no snapshot: only that has devices to choose from", name)
	}
	parse := parse
	if looksLikeCSV(start) {
		parse = parseCSV
	}
	t, err := parse(in, name)
	if err != nil {
		return nil, err
	}
	return &Record{Trace: t}, nil
}

// looksLikeCSV reports whether the first line that is no comment has commas and is no event of the text form.
func looksLikeCSV(start []byte) bool {
	for line := range bytes.Lines(start) {
		found := split(line)
		if len(found) == 0 {
			continue
		}
		first := string(found[0].text)
		return first != header && !slices.Contains(kindWords[:], first) && bytes.ContainsRune(line, ',')
	}
	return false
}
