package ptx

import (
	"math"
	"strconv"
	"strings"
)

type operandKind uint8

const (
	named     operandKind = iota // a register or a variable
	number                       // an integer, or the bits of a float
	addressed                    // [base+offset]
	vector                       // {a, b}
	list                         // (a, b)
)

type operand struct {
	kind     operandKind
	name     string // of a number in an address ""
	not      bool
	second   string // q of p|q
	value    uint64 // of a number; of an address or a variable what is added
	float    uint8  // size of a number that is written as the bits of a float, else 0
	elements []operand
}

func (p *parser) integer() (uint64, error) {
	t, err := p.take('n')
	if err != nil {
		return 0, err
	}
	n, perr := strconv.ParseUint(strings.TrimSuffix(t.text, "U"), 0, 64)
	if perr != nil {
		return 0, errorAt(t.line, "%s is no integer", t.text)
	}
	return n, nil
}

// number reads an integer, which may be negative, or the bits of a float: 0f3F800000, 0d3FF0000000000000.
func (p *parser) number() (operand, error) {
	minus, err := p.accept('-')
	if err != nil {
		return operand{}, err
	}
	t := p.token.text
	for prefix, size := range map[string]uint8{"0f": 4, "0F": 4, "0d": 8, "0D": 8} {
		if !strings.HasPrefix(t, prefix) || p.token.kind != 'n' {
			continue
		}
		value, err := strconv.ParseUint(t[2:], 16, 8*int(size))
		if err != nil || minus || len(t) != 2+2*int(size) {
			return operand{}, errorAt(p.token.line, "%s is no float", t)
		}
		return operand{kind: number, value: value, float: size}, p.advance()
	}
	line := p.token.line
	n, err := p.integer()
	if minus {
		if n > 1<<63 {
			return operand{}, errorAt(line, "-%d does not fit 64 bits", n)
		}
		n = -n
	}
	return operand{kind: number, value: n}, err
}

// valueAs returns the bits of a number in an instruction of type t.
func (o *operand) valueAs(t typ, line int) (uint64, error) {
	switch {
	case t.class == float && o.float == t.size, t.class == untyped && o.float == t.size:
		return o.value, nil
	case t == typ{float, 4} && o.float == 8:
		return uint64(math.Float32bits(float32(math.Float64frombits(o.value)))), nil
	case t == typ{float, 8} && o.float == 4:
		return math.Float64bits(float64(math.Float32frombits(uint32(o.value)))), nil
	case t.class == float || t.class == predicate || o.float != 0:
		return 0, errorAt(line, "a number of another kind than %s", t)
	}
	high := int64(o.value) >> (8*uint(t.size) - 1)
	if o.value&^t.mask() != 0 && high != -1 {
		return 0, errorAt(line, "%d does not fit %s", int64(o.value), t)
	}
	return o.value & t.mask(), nil
}

// operand reads an operand.
func (p *parser) operand() (operand, error) {
	switch p.token.kind {
	case '[':
		return p.address()
	case '{':
		return p.elements(vector, '}')
	case '(':
		return p.elements(list, ')')
	}
	return p.simple()
}

func (p *parser) address() (operand, error) {
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	o, err := p.simple()
	if err != nil {
		return o, err
	}
	if o.not || o.second != "" || o.float != 0 {
		return o, errorAt(p.token.line, "this is no address")
	}
	o.kind = addressed
	_, err = p.take(']')
	return o, err
}

func (p *parser) elements(kind operandKind, end byte) (operand, error) {
	o := operand{kind: kind}
	if err := p.advance(); err != nil {
		return o, err
	}
	if ok, err := p.accept(end); ok || err != nil {
		return o, err
	}
	for {
		e, err := p.simple()
		if err != nil {
			return o, err
		}
		o.elements = append(o.elements, e)
		if ok, err := p.accept(','); err != nil {
			return o, err
		} else if !ok {
			_, err := p.take(end)
			return o, err
		}
	}
}

// simple reads a number or a name: %r1, !%p1, p|q, table+4, %rd1+-8.
func (p *parser) simple() (operand, error) {
	if p.token.kind == 'n' || p.token.kind == '-' {
		return p.number()
	}
	o := operand{kind: named}
	var err error
	if o.not, err = p.accept('!'); err != nil {
		return o, err
	}
	t, err := p.take('w')
	if err != nil {
		return o, err
	}
	o.name = t.text
	if ok, err := p.accept('|'); err != nil {
		return o, err
	} else if ok {
		t, err = p.take('w')
		o.second = t.text
		return o, err
	}
	if ok, err := p.accept('+'); err != nil || !ok {
		if p.token.kind != '-' || err != nil {
			return o, err
		}
	}
	line := p.token.line
	n, err := p.number()
	if err == nil && n.float != 0 {
		err = errorAt(line, "a float is added to an address")
	}
	o.value = n.value
	return o, err
}
