package pool

import (
	"cmp"
	"errors"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// csvGroup is a group of aliases, as the first row that names it has it.
type csvGroup struct {
	number, row int
	fixed       bool
	at          int64
}

// buffer reads a record. What it returns is right if no error has been noted.
func (c *csvReader) buffer(record []string) (id string, b Buffer) {
	if len(record) != c.fields {
		c.fail(": %d fields, and the header has %d", len(record), c.fields)
		return id, b
	}
	c.record = record
	id = c.id()
	b.Spans = c.spans()
	if b.Size = c.number(csvSize, c.text(csvSize)); b.Size < 0 {
		c.failAt(csvSize, "%d is negative", b.Size)
	}
	if text := c.text(csvAlignment); text != "" && text != "1" {
		b.Align = c.number(csvAlignment, text)
	}
	if b.Align < 0 || bits.OnesCount64(uint64(b.Align)) > 1 {
		c.failAt(csvAlignment, "%d is not a power of two", b.Align)
		return id, b
	}
	if text := c.text(csvOffset); text != "" {
		b.Fixed, b.At = true, c.number(csvOffset, text)
		c.checkOffset(b)
	}
	if text := c.text(csvAlias); text != "" {
		b.Alias = c.alias(text, b)
	}
	return id, b
}

// id wants an id that is new.
func (c *csvReader) id() string {
	id := c.record[c.at[csvID]]
	before, ok := c.seen[id]
	switch {
	case ok:
		c.failAt(csvID, "%s is the id of row %d already", excerpt(id), before)
	case id == "":
		c.failAt(csvID, "is empty")
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		c.failAt(csvID, "%s is not a line of text", excerpt(id))
	}
	c.seen[id] = c.row()
	return id
}

// text is a field without the spaces around it; those of a column that is not there are empty.
func (c *csvReader) text(column int) string {
	if c.at[column] < 0 {
		return ""
	}
	return strings.TrimSpace(c.record[c.at[column]])
}

// number is that of a text in a column; after an error it is 0.
func (c *csvReader) number(column int, text string) int64 {
	v, err := strconv.ParseInt(text, 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		c.failAt(column, "%s is more than 64 bits hold", excerpt(text))
		return 0
	}
	if err != nil {
		c.failAt(column, "%s is not a whole number", excerpt(text))
	}
	return v
}

// slot is a number that an int holds, plus one if it is to follow a slot that is given.
func (c *csvReader) slot(column int, text string, after bool) int {
	v := c.number(column, text)
	if v < math.MinInt || v > math.MaxInt || after && v == math.MaxInt {
		c.failAt(column, "%s is beyond the slots that can be counted", text)
		return 0
	}
	if after {
		v++
	}
	return int(v)
}

// spans is the lifetime without its gaps.
func (c *csvReader) spans() []Span {
	life := Span{c.slot(csvLower, c.text(csvLower), false), c.slot(csvUpper, c.text(csvUpper), c.last)}
	if life.From >= life.To {
		c.failAt(csvUpper, "%s leaves no slot to a lifetime from %d on", c.text(csvUpper), life.From)
	}
	text := c.text(csvGaps)
	if text == "" {
		return []Span{life}
	}
	var spans []Span
	at := life.From
	for _, g := range append(c.gaps(text, life), Span{life.To, life.To}) {
		if at < g.From {
			spans = append(spans, Span{at, g.From})
		}
		at = g.To
	}
	if len(spans) == 0 {
		c.failAt(csvGaps, "%s leaves no slot to the lifetime", excerpt(text))
	}
	return spans
}

// gaps are those of a lifetime, sorted.
func (c *csvReader) gaps(text string, life Span) []Span {
	var gaps []Span
	for word := range strings.FieldsSeq(text) {
		if strings.Contains(word, "@") {
			c.failAt(csvGaps, "%s has a window of bytes, which is not supported: a buffer has all of its bytes or none",
				excerpt(word))
			return nil
		}
		dash := strings.Index(word[1:], "-") + 1 // the first character may be a sign
		if dash == 0 {
			c.failAt(csvGaps, "%s is no gap such as 7-9", excerpt(word))
			return nil
		}
		g := Span{c.slot(csvGaps, word[:dash], false), c.slot(csvGaps, word[dash+1:], c.last)}
		if g.From >= g.To || g.From < life.From || life.To < g.To {
			c.failAt(csvGaps, "%s is empty or not within the lifetime", excerpt(word))
		}
		gaps = append(gaps, g)
	}
	slices.SortFunc(gaps, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for i := 1; i < len(gaps); i++ {
		if gaps[i-1].Overlaps(gaps[i]) {
			c.failAt(csvGaps, "%s has slot %d twice", excerpt(text), gaps[i].From)
		}
	}
	return gaps
}

// checkOffset looks at the offset of a buffer that is fixed.
func (c *csvReader) checkOffset(b Buffer) {
	switch {
	case b.At < 0:
		c.failAt(csvOffset, "%d is negative; leave the field empty where any offset will do", b.At)
	case b.Size > math.MaxInt64-b.At:
		c.failAt(csvOffset, "%d and the size %d together are more than 64 bits hold", b.At, b.Size)
	case b.At%b.align() != 0:
		c.failAt(csvOffset, "%d is not a multiple of the alignment %d", b.At, b.Align)
	}
}

// alias is the number of a buffer's group. Groups are numbered from 1 in the order in which they are met.
func (c *csvReader) alias(text string, b Buffer) int {
	g, ok := c.groups[text]
	if !ok {
		g = csvGroup{len(c.groups) + 1, c.row(), b.Fixed, b.At}
		c.groups[text] = g
	}
	if b.Fixed != g.fixed || b.At != g.at {
		c.failAt(csvOffset, "not as in row %d of the same alias %s: buffers that share their bytes have one offset",
			g.row, excerpt(text))
	}
	return g.number
}
