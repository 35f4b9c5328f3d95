package recording

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
)

// Writer writes lines. A nil one writes nothing.
type Writer struct {
	out     io.Writer
	trouble func(error)
	failed  bool
}

// NewWriter returns a writer. trouble is told once why a line could not be written; nothing is written after that.
func NewWriter(out io.Writer, trouble func(error)) *Writer {
	return &Writer{out: out, trouble: trouble}
}

// Write writes a value as a line.
func (w *Writer) Write(v any) {
	if w == nil || w.failed {
		return
	}
	text, err := json.Marshal(v)
	if err == nil {
		_, err = w.out.Write(append(text, '\n'))
	}
	if err != nil {
		w.failed = true
		w.trouble(fmt.Errorf("the recording ends here: %w", err))
	}
}

// Reader reads lines.
type Reader struct {
	in *bufio.Reader

	Line int // number of the line that was read last, from 1
}

// NewReader returns a reader.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReader(in)} }

// Read reads the next line, and returns io.EOF after the last complete one. Other errors name the line.
func (r *Reader) Read(v any) error {
	text, err := r.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	r.Line++
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return r.Errorf("%w", err)
	}
	return nil
}

// Errorf returns an error that names the line that was read last.
func (r *Reader) Errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %w", r.Line, fmt.Errorf(format, args...))
}

// Same returns an error that names the line and the first difference if outputs are not those that were recorded.
func (r *Reader) Same(recorded []json.RawMessage, outputs []json.RawMessage) error {
	for i := range max(len(recorded), len(outputs)) {
		switch {
		case i >= len(outputs):
			return r.Errorf("output %d was %s, and is missing now", i+1, quoted(recorded[i]))
		case i >= len(recorded):
			return r.Errorf("output %d is new: %s", i+1, quoted(outputs[i]))
		case !bytes.Equal(recorded[i], outputs[i]):
			return r.Errorf("output %d was %s, and is %s now", i+1, quoted(recorded[i]), quoted(outputs[i]))
		}
	}
	return nil
}

func quoted(text []byte) string {
	const limit = 500
	if len(text) > limit {
		return string(text[:limit]) + "..."
	}
	return string(text)
}

// Digest is a short name for a large value: equal values have equal ones.
func Digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("recording: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Outputs are values in the form in which they are recorded and compared.
func Outputs[T any](list []T) []json.RawMessage {
	texts := make([]json.RawMessage, len(list))
	for i, v := range list {
		text, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("recording: %v", err))
		}
		texts[i] = text
	}
	return texts
}

// Do steps a machine by what a recording says, which may be anything: what the machine takes for a mistake of its own,
// and panics for, is an error here.
func Do[T any](step func() []T) (outputs []T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the machine cannot be told this: %v", p)
		}
	}()
	return step(), nil
}
