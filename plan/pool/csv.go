package pool

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The columns of a CSV file. Those from alignment on may be left out, and their fields be empty.
const (
	csvID = iota
	csvLower
	csvUpper
	csvSize
	csvAlignment
	csvOffset
	csvAlias
	csvGaps
	csvColumns
)

var csvNames = [csvColumns]string{"id", "lower", "upper", "size", "alignment", "offset", "alias", "gaps"}

// ErrNoCSV is returned, wrapped, by ReadCSV where the first row is not one of a CSV.
var ErrNoCSV = errors.New("not a CSV")

// csvSynonyms are older names for the same, but that the slot called end is still part of the lifetime.
var csvSynonyms = map[string]int{"buffer": csvID, "buffer_id": csvID, "start": csvLower, "begin": csvLower,
	"end": csvUpper}

// ReadCSV reads buffers in the form of google/minimalloc: a header that names the columns, in any order, and a row per
// buffer. The ids are unique, and stand in the order of the buffers.
//
//	id         any text on one line
//	lower      the first slot
//	upper      the slot after the last; or a column end, with the last slot
//	size       bytes
//	alignment  of the offset, a power of two                            (optional)
//	offset     where the buffer must stand                              (optional)
//	alias      any text; buffers with the same one share their bytes    (optional)
//	gaps       such as 7-9 12-13: slots without the bytes, half-open    (optional)
//
// Other columns are ignored, unless their first two letters are those of an optional one: a misspelt alignment would
// be lost without a word. The error is one line that begins with name and says in which row (line of the file) and
// column the first mistake is, or the error of r. A gap with a window of bytes (7-9@0:64) is refused.
func ReadCSV(r io.Reader, name string) (ids []string, buffers []Buffer, err error) {
	in := bufio.NewReader(r)
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
	c := csvReader{name: name, rows: csv.NewReader(in), seen: make(map[string]int), groups: make(map[string]csvGroup)}
	c.rows.FieldsPerRecord, c.rows.ReuseRecord = -1, true
	header, err := c.rows.Read()
	if err == io.EOF {
		return nil, nil, fmt.Errorf("%s is empty: its first row is to name the columns %s", name,
			strings.Join(csvNames[:csvAlignment], ","))
	}
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		return nil, nil, fmt.Errorf("%s is %w: its first row is to name the columns %s, and has at character %d: %w",
			name, ErrNoCSV, strings.Join(csvNames[:csvAlignment], ","), wrong.Column, wrong.Err)
	}
	if err != nil {
		return nil, nil, c.place(err)
	}
	c.header(header)
	for c.err == nil {
		record, err := c.rows.Read()
		if err == io.EOF {
			return ids, buffers, nil
		}
		if err != nil {
			return nil, nil, c.place(err)
		}
		id, b := c.buffer(record)
		ids, buffers = append(ids, id), append(buffers, b)
	}
	return nil, nil, c.err
}

// csvReader reads records, up to the first error.
type csvReader struct {
	name   string
	rows   *csv.Reader
	record []string            // the one that is being read
	fields int                 // of each record
	at     [csvColumns]int     // the field in which a column stands; -1: nowhere
	last   bool                // the column upper has the last slot
	seen   map[string]int      // the row of each id
	groups map[string]csvGroup // by what the column alias has
	err    error
}

// row is the line of the file in which the record begins.
func (c *csvReader) row() int {
	line, _ := c.rows.FieldPos(0)
	return line
}

// fail notes what is wrong with the record. Only the first error is kept.
func (c *csvReader) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: row %d%s", c.name, c.row(), fmt.Sprintf(format, args...))
	}
}

// failAt notes what is wrong with a field.
func (c *csvReader) failAt(column int, format string, args ...any) {
	c.fail(", column %s: %s", csvNames[column], fmt.Sprintf(format, args...))
}

// place says where an error of the reader below came from.
func (c *csvReader) place(err error) error {
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("%s: row %d: %w (line %d, character %d)", c.name, wrong.StartLine, wrong.Err, wrong.Line,
			wrong.Column)
	}
	return fmt.Errorf("%s: %w", c.name, err)
}

// header finds the columns.
func (c *csvReader) header(names []string) {
	c.fields = len(names)
	for i := range c.at {
		c.at[i] = -1
	}
	for i, text := range names {
		name := strings.ToLower(strings.TrimSpace(text))
		column, ok := csvSynonyms[name]
		if !ok {
			column = slices.Index(csvNames[:], name)
		}
		switch {
		case column < 0:
			c.unknown(name)
		case c.at[column] >= 0:
			c.fail(": two columns for %s: leave one out", csvNames[column])
		default:
			c.at[column] = i
			c.last = c.last || name == "end"
		}
	}
	if column := slices.Index(c.at[:csvAlignment], -1); column >= 0 {
		c.fail(": no column %s: the first row is to name the columns, with commas between: %s",
			csvNames[column], strings.Join(csvNames[:csvAlignment], ","))
	}
}

// unknown refuses a column that is like an optional one.
func (c *csvReader) unknown(name string) {
	for _, known := range csvNames[csvAlignment:] {
		if strings.HasPrefix(name, known[:2]) {
			c.fail(": unknown column %s: write %s, or another name if something else is meant", excerpt(name), known)
		}
	}
}

// excerpt quotes the beginning of a text, on one line.
func excerpt(text string) string {
	const maxText = 40
	if len(text) > maxText {
		return strconv.Quote(text[:maxText]) + "..."
	}
	return strconv.Quote(text)
}
