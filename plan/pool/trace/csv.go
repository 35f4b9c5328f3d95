package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// column is a column of a CSV and the names that it goes by, without regard to case.
type column struct {
	what  string
	names []string
}

var columns = [...]column{
	{"event", []string{"event", "action", "kind", "op"}},
	{"block", []string{"block", "id", "addr", "address", "ptr"}},
	{"size", []string{"size", "bytes"}},
}

const (
	eventColumn = iota
	blockColumn
	sizeColumn
)

// kinds are the words for events in a CSV, without regard to case.
var kinds = map[string]Kind{"malloc": Malloc, "alloc": Malloc, "free": Free, "read": Read, "write": Write}

// parseCSV reads events from a CSV with a header. The columns event, block and size, or as else they are called
// (action, kind, op; id, addr, address, ptr; bytes), stand in any order; others are ignored, and so is the size of what
// is no malloc. Errors name row and column.
func parseCSV(r io.Reader, name string) (Trace, error) {
	in := csv.NewReader(r)
	in.ReuseRecord, in.Comment, in.TrimLeadingSpace = true, '#', true
	record, err := in.Read()
	if err != nil {
		return nil, csvError(name, err)
	}
	at, err := findColumns(record, place{name, 1, 1})
	if err != nil {
		return nil, err
	}
	var t Trace
	known, names := newLedger(), make(map[string]string)
	for {
		record, err := in.Read()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, csvError(name, err)
		}
		e, wrong, err := csvEvent(record, at, names)
		if err == nil {
			wrong, err = at[blockColumn], known.add(e)
		}
		if err != nil {
			line, col := in.FieldPos(wrong)
			return nil, place{name, line, col}.errorf("%w", err)
		}
		t = append(t, e)
	}
}

// findColumns says where the columns are, by the header.
func findColumns(header []string, at place) (found [len(columns)]int, err error) {
	for i, c := range columns {
		found[i] = slices.IndexFunc(header, func(cell string) bool {
			return slices.Contains(c.names, strings.ToLower(strings.TrimSpace(cell)))
		})
		if found[i] < 0 {
			return found, at.errorf("the header has no column %s; it takes event, block and size", c.what)
		}
	}
	return found, nil
}

// csvEvent reads a record; an error comes with the field that is wrong.
func csvEvent(record []string, at [len(columns)]int, names map[string]string) (e Event, wrong int, err error) {
	cell := func(column int) string { return strings.TrimSpace(record[at[column]]) }
	var ok bool
	if e.Kind, ok = kinds[strings.ToLower(cell(eventColumn))]; !ok {
		return e, at[eventColumn], fmt.Errorf("%s is no event; it takes malloc, free, read or write",
			shorten(cell(eventColumn)))
	}
	if e.Kind == Malloc {
		if e.Bytes, err = strconv.ParseInt(cell(sizeColumn), 10, 64); err != nil || e.Bytes < 0 {
			return e, at[sizeColumn], fmt.Errorf("size %s is not a number of bytes from 0 to 2^63-1",
				shorten(cell(sizeColumn)))
		}
	}
	e.Block = intern(names, []byte(cell(blockColumn)))
	return e, 0, nil
}

// csvError puts the file's name before an error of the reader.
func csvError(name string, err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return place{name, parse.Line, parse.Column}.errorf("%w", parse.Err)
	}
	if err == io.EOF {
		return place{name, 1, 1}.errorf("the file is empty; it takes a header with event, block and size")
	}
	return fmt.Errorf("%s: %w", name, err)
}
