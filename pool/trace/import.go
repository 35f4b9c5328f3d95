package trace

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
)

// ImportOptions are the settings of Import; the zero value is the recommended one.
type ImportOptions struct {
	Device *int // of a snapshot, by number; nil: the only one with events
}

// Import reads a trace in whichever form it is: the text form, a CSV (see ParseCSV) or the JSON of a PyTorch memory
// snapshot (see ParseSnapshot). The first bytes tell.
func Import(r io.Reader, name string, o ImportOptions) (Trace, error) {
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
		return nil, fmt.Errorf("%s is a pickle; convert it: python -c \"import json,pickle,sys; "+
			"json.dump(pickle.load(open("+
			"sys.argv[1],'rb')), open(sys.argv[2],'w'))\" %s snapshot.json", name, name)
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return nil, fmt.Errorf("%s is compressed; unpack it with gunzip first", name)
	case bytes.HasPrefix(start, []byte("{")), bytes.HasPrefix(start, []byte("[")):
		return ParseSnapshot(in, name, o)
	case looksLikeCSV(start):
		return ParseCSV(in, name)
	}
	return Parse(in, name)
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
