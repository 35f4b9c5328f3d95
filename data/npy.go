package data

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tensile/data/weights"
	"tensile/graph"
)

const (
	npyMagic  = "\x93NUMPY"
	npyHeader = 1 << 16 // bytes that a header may have; NumPy itself reads 10,000
	npyRank   = 32      // as in NumPy before 2.0
)

// npyTypes are the types by NumPy's names for them, without the order of bytes.
var npyTypes = map[string]weights.Type{
	"f2": "F16", "f4": "F32", "f8": "F64", "i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64",
	"u1": "U8", "u2": "U16", "u4": "U32", "u8": "U64", "b1": "BOOL",
}

// readNPY reads the header of an .npy file of the given size, and returns the type and shape of its array and where its
// elements begin. It accepts versions 1 to 3 of the format, C order and little-endian numbers.
func readNPY(r io.ReaderAt, size int64) (kind weights.Type, shape graph.Shape, begin int64, err error) {
	var head [12]byte
	n, err := r.ReadAt(head[:], 0)
	if err != nil && err != io.EOF {
		return "", nil, 0, err
	}
	if n < len(head) || string(head[:6]) != npyMagic {
		return "", nil, 0, fmt.Errorf("is no .npy array: save it by numpy.savez")
	}
	length := int64(binary.LittleEndian.Uint16(head[8:]))
	switch begin = 10; head[6] {
	case 1:
	case 2, 3:
		length, begin = int64(binary.LittleEndian.Uint32(head[8:])), 12
	default:
		return "", nil, 0, fmt.Errorf("has version %d of the .npy format, want 1 to 3: save it by another NumPy",
			head[6])
	}
	if length > npyHeader || begin+length > size {
		return "", nil, 0, fmt.Errorf("claims a header of %d bytes, which is longer than the file or than %d: save or "+
			"download it again", length, npyHeader)
	}
	text := make([]byte, length)
	if n, err := r.ReadAt(text, begin); n < len(text) {
		return "", nil, 0, fmt.Errorf("its header: %w", err)
	}
	h, err := parseNPY(string(text))
	if err != nil {
		return "", nil, 0, err
	}
	if kind, err = h.kind(); err != nil {
		return "", nil, 0, err
	}
	begin += length
	total := kind.Bytes()
	for _, extent := range h.shape {
		if extent > 0 && total > size/int64(extent) {
			return "", nil, 0, fmt.Errorf("truncated: shape %v has more elements than the file: save or download it "+
				"again", h.shape)
		}
		total *= int64(extent)
	}
	if total != size-begin {
		return "", nil, 0, fmt.Errorf("has %d bytes of elements, want %d for shape %v: save or download it again",
			size-begin, total, h.shape)
	}
	return kind, h.shape, begin, nil
}

// npy is what a header says.
type npy struct {
	descr   string
	fortran bool
	shape   graph.Shape
}

// kind returns the type of the elements, or why they are not read.
func (h npy) kind() (weights.Type, error) {
	if h.fortran && len(h.shape) > 1 {
		return "", fmt.Errorf("is in Fortran order: save numpy.ascontiguousarray of it")
	}
	order, name := h.descr[:min(1, len(h.descr))], h.descr[min(1, len(h.descr)):]
	kind, known := npyTypes[name]
	switch {
	case strings.HasPrefix(name, "O"):
		return "", fmt.Errorf("holds Python objects, which are not read: convert it to an array of numbers")
	case !known || !strings.Contains("<>|=", order):
		return "", fmt.Errorf("has elements of type %.40q, want floats, whole numbers or booleans: convert it by "+
			"astype", h.descr)
	case order == ">" && kind.Bytes() > 1:
		return "", fmt.Errorf("has its numbers in big-endian order (%s): convert it by astype('<%s')", h.descr, name)
	}
	return kind, nil
}

// parseNPY reads the header's text: a dict of Python with the keys descr, fortran_order and shape.
func parseNPY(text string) (npy, error) {
	p := literal{rest: text}
	var h npy
	seen := make(map[string]bool)
	p.expect("{")
	for p.err == nil && !p.take("}") {
		key := p.text()
		p.expect(":")
		switch key {
		case "descr":
			if p.peek("[") {
				return npy{}, fmt.Errorf("has elements of several fields: save each field as an array of its own")
			}
			h.descr = p.text()
		case "fortran_order":
			h.fortran = p.flag()
		case "shape":
			h.shape = p.shape()
		default:
			p.fail()
		}
		if seen[key] {
			p.fail()
		}
		seen[key] = true
		if !p.take(",") && !p.peek("}") {
			p.fail()
		}
	}
	if p.err == nil && (len(seen) != 3 || strings.TrimSpace(p.rest) != "") {
		p.fail()
	}
	return h, p.err
}

// literal reads a literal of Python from its front on. After an error it reads nothing more.
type literal struct {
	rest string
	err  error
}

func (p *literal) fail() {
	if p.err == nil {
		p.err = fmt.Errorf("its header is damaged before %.20q: save or download it again", p.rest)
	}
}

// peek reports whether a word is next.
func (p *literal) peek(word string) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\n\r")
	return p.err == nil && strings.HasPrefix(p.rest, word)
}

func (p *literal) take(word string) bool {
	if !p.peek(word) {
		return false
	}
	p.rest = p.rest[len(word):]
	return true
}

func (p *literal) expect(word string) {
	if !p.take(word) {
		p.fail()
	}
}

// text reads a string without escapes.
func (p *literal) text() string {
	for _, quote := range []string{"'", `"`} {
		if !p.take(quote) {
			continue
		}
		s, rest, closed := strings.Cut(p.rest, quote)
		if !closed || strings.Contains(s, `\`) {
			break
		}
		p.rest = rest
		return s
	}
	p.fail()
	return ""
}

func (p *literal) flag() bool {
	if p.take("True") {
		return true
	}
	p.expect("False")
	return false
}

// shape reads a tuple of numbers, which Python 2 ends with an L.
func (p *literal) shape() graph.Shape {
	shape := graph.Shape{}
	p.expect("(")
	for p.err == nil && !p.take(")") {
		digits := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		n, err := strconv.ParseUint(p.rest[:digits], 10, 62)
		if p.rest = p.rest[digits:]; err != nil || len(shape) == npyRank {
			p.fail()
		}
		p.take("L")
		shape = append(shape, int(n))
		if !p.take(",") && (!p.peek(")") || len(shape) == 1) { // (3) is no tuple
			p.fail()
		}
	}
	return shape
}
