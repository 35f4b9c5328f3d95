package external

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// version is the version of the lines and of the file: one with other meanings has another.
const version = 1

// maxLine is how many bytes a line may have, its end left out.
const maxLine = 64 << 20

// Side is who has written what is read.
type Side int

const (
	Script Side = iota
	Sidecar
)

// readers read the body of each kind of message that a side writes.
var readers = [...]map[string]func([]byte) (Message, error){
	Script: {
		Hello{}.kind():     read[Hello],
		Recorded{}.kind():  read[Recorded],
		Applied{}.kind():   read[Applied],
		Iteration{}.kind(): read[Iteration],
		Passive{}.kind():   read[Passive],
		Parked{}.kind():    read[Parked],
		End{}.kind():       read[End],
	},
	Sidecar: {
		Plan{}.kind():   read[Plan],
		Park{}.kind():   read[Park],
		Resume{}.kind(): read[Resume],
		Stop{}.kind():   read[Stop],
	},
}

type envelope struct {
	Version int             `json:"version"`
	Kind    string          `json:"kind"`
	Body    json.RawMessage `json:"body"`
}

func read[T Message](body []byte) (Message, error) {
	var m T
	if err := strictly(body, &m); err != nil {
		return nil, err
	}
	return m, m.check()
}

// strictly decodes one value without unknown fields, and nothing behind it.
func strictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more text behind it")
	}
	return nil
}

// Encode returns a message as a line, with its end. A message that Decode would refuse for what it says is a bug of the
// caller, and panics; the error is of one that is too large.
func Encode(m Message) ([]byte, error) {
	if err := m.check(); err != nil {
		panic(fmt.Sprintf("external: encode %s: %v", m.kind(), err))
	}
	body, err := json.Marshal(m)
	if err == nil {
		body, err = json.Marshal(envelope{version, m.kind(), body})
	}
	if err != nil {
		panic(fmt.Sprintf("external: encode %s: %v", m.kind(), err))
	}
	if len(body) > maxLine {
		return nil, fmt.Errorf("a line of kind %s has %d bytes, and %d at most", m.kind(), len(body), maxLine)
	}
	return append(body, '\n'), nil
}

// Decode reads a line of a side, without its end. The message has the type of Hello{}, not of a pointer.
func Decode(line []byte, from Side) (Message, error) {
	if len(line) > maxLine {
		return nil, fmt.Errorf("a line has more than %d bytes", maxLine)
	}
	if bytes.IndexByte(line, '\n') >= 0 {
		return nil, errors.New("a message is more than a line")
	}
	var e envelope
	if err := strictly(line, &e); err != nil {
		return nil, fmt.Errorf("a line is no message of tensile: %w", err)
	}
	if e.Version != version {
		return nil, fmt.Errorf("a line is of version %d, this tensile knows version %d: take the python package of "+
			"the same release", e.Version, version)
	}
	reader := readers[from][e.Kind]
	if reader == nil {
		return nil, fmt.Errorf("there is no kind %.40q of lines here (there are %s)", e.Kind, kinds(from))
	}
	if len(e.Body) == 0 || e.Body[0] != '{' {
		return nil, fmt.Errorf("a line of kind %s has no body", e.Kind)
	}
	m, err := reader(e.Body)
	if err != nil {
		return nil, fmt.Errorf("a line of kind %s: %w", e.Kind, err)
	}
	return m, nil
}

func kinds(from Side) string {
	var names []string
	for kind := range readers[from] {
		names = append(names, kind)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Reader reads the lines of a side.
type Reader struct {
	from  Side
	lines *bufio.Reader
	count int
}

// NewReader returns a reader of what a side writes.
func NewReader(r io.Reader, from Side) *Reader { return &Reader{from: from, lines: bufio.NewReader(r)} }

// Next returns the next message. At the end the error is io.EOF; a line without an end is an error, which names the
// line as all others do.
func (r *Reader) Next() (Message, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("line %d: it has no end", r.count+1)
		case len(line) > maxLine+1:
			return nil, fmt.Errorf("line %d: it has more than %d bytes", r.count+1, maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		}
		r.count++
		m, err := Decode(line[:len(line)-1], r.from)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.count, err)
		}
		return m, nil
	}
}

// File is a recorded graph with what it was recorded on.
type File struct {
	Hello    Hello
	Recorded Recorded
}

// ReadFile reads the file of a recorded graph.
func ReadFile(from io.Reader) (*File, error) {
	r := NewReader(from, Script)
	var f File
	first, err := r.Next()
	if err == nil {
		var ok bool
		if f.Hello, ok = first.(Hello); !ok {
			return nil, fmt.Errorf("line 1: a recorded graph begins with hello, not with %s", first.kind())
		}
	}
	var second Message
	if err == nil {
		second, err = r.Next()
	}
	if errors.Is(err, io.EOF) {
		return nil, errors.New("a recorded graph has a line of kind hello and one of kind graph: record it again")
	}
	if err != nil {
		return nil, err
	}
	var ok bool
	if f.Recorded, ok = second.(Recorded); !ok {
		return nil, fmt.Errorf("line 2: a recorded graph ends with graph, not with %s", second.kind())
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind the graph of line 2: record it again")
	}
	return &f, nil
}
