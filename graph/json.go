package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read decodes one graph in JSON form and validates it. Unknown fields and text after the graph are errors; syntax
// errors name the line and column.
func Read(r io.Reader) (*Graph, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read graph: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	g := new(Graph)
	if err := decoder.Decode(g); err != nil {
		return nil, fmt.Errorf("read graph: %s: %w", place(text, err, decoder.InputOffset()), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read graph: %s: more text after the graph", place(text, err, decoder.InputOffset()))
	}
	if err := g.Validate(); err != nil {
		return nil, err
	}
	return g, nil
}

// place says where in the text a decoding error lies.
func place(text []byte, err error, offset int64) string {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset - 1 // the offending byte is counted
	case errors.As(err, &mismatch):
		offset = mismatch.Offset
	case errors.Is(err, io.ErrUnexpectedEOF):
		offset = int64(len(text))
	}
	before := text[:min(int(offset), len(text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	return fmt.Sprintf("line %d, column %d", line, len(before)-bytes.LastIndexByte(before, '\n'))
}
