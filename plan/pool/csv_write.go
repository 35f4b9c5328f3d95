package pool

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteCSV writes buffers in the form that [ReadCSV] reads, with the offsets of a layout if it has any, else with those
// of the buffers that are fixed. Optional columns are left out where they say nothing; a group of aliases is written as
// its number, and spans that touch as one. Errors are those of w. It panics if there are not as many ids, or offsets.
func WriteCSV(w io.Writer, ids []string, buffers []Buffer, l Layout) error {
	if len(ids) != len(buffers) || len(l.Offsets) > 0 && len(l.Offsets) != len(buffers) {
		panic(fmt.Sprintf("pool: %d ids and %d offsets for %d buffers", len(ids), len(l.Offsets), len(buffers)))
	}
	columns := writtenColumns(buffers, l)
	out := csv.NewWriter(w)
	var record []string
	for column, written := range columns {
		if written {
			record = append(record, csvNames[column])
		}
	}
	if err := out.Write(record); err != nil {
		return err
	}
	for i, b := range buffers {
		if len(l.Offsets) > 0 {
			b.Fixed, b.At = true, l.Offsets[i]
		}
		record = record[:0]
		for column, written := range columns {
			if written {
				record = append(record, b.field(column, ids[i]))
			}
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// writtenColumns are those in which a buffer has something to say.
func writtenColumns(buffers []Buffer, l Layout) (columns [csvColumns]bool) {
	for column := csvID; column < csvAlignment; column++ {
		columns[column] = true
	}
	columns[csvOffset] = len(l.Offsets) > 0
	for _, b := range buffers {
		columns[csvAlignment] = columns[csvAlignment] || b.Align > 1
		columns[csvOffset] = columns[csvOffset] || b.Fixed
		columns[csvAlias] = columns[csvAlias] || b.Alias != 0
		columns[csvGaps] = columns[csvGaps] || b.field(csvGaps, "") != ""
	}
	return columns
}

// field is the text of a column.
func (b Buffer) field(column int, id string) string {
	switch {
	case column == csvID:
		return id
	case column == csvLower:
		return strconv.Itoa(b.Spans[0].From)
	case column == csvUpper:
		return strconv.Itoa(b.Spans[len(b.Spans)-1].To)
	case column == csvSize:
		return strconv.FormatInt(b.Size, 10)
	case column == csvAlignment:
		return strconv.FormatInt(b.align(), 10)
	case column == csvOffset && b.Fixed:
		return strconv.FormatInt(b.At, 10)
	case column == csvAlias && b.Alias != 0:
		return strconv.Itoa(b.Alias)
	case column == csvGaps:
		var gaps []string
		for i, s := range b.Spans[1:] {
			if before := b.Spans[i]; before.To < s.From {
				gaps = append(gaps, fmt.Sprintf("%d-%d", before.To, s.From))
			}
		}
		return strings.Join(gaps, " ")
	}
	return ""
}
