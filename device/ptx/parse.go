package ptx

import (
	"math"
	"strconv"
	"strings"
)

// Bounds of what a text may declare, so that a damaged one costs no memory.
const (
	maxShared    = 48 << 10 // bytes of static shared memory that a block may have on any GPU
	maxLocal     = 64 << 10 // bytes of local memory of a thread
	maxVariable  = 16 << 20 // bytes of a variable of the module
	maxDepth     = 64       // braces within braces, and calls within calls
	maxCode      = 1 << 18  // instructions of a kernel with all that it calls
	maxRegisters = 1 << 16  // that a kernel uses
)

// Module is a text that was read.
type Module struct {
	Version string // 6.0
	Target  string // sm_60
	kernels map[string]*Kernel
}

// Kernel returns the kernel of that name, nil if there is none.
func (m *Module) Kernel(name string) *Kernel { return m.kernels[name] }

// space is where a variable lies.
type space uint8

const (
	generic space = iota
	global
	constant
	shared
	local
	param
	noSpace
)

var spaceNames = map[string]space{"global": global, "const": constant, "shared": shared, "local": local, "param": param}

func (s space) String() string {
	return [...]string{"generic", "global", "constant", "shared", "local", "parameter", "no"}[s]
}

// variable is memory that the text declares.
type variable struct {
	name    string
	space   space
	align   uint64
	size    uint64
	address uint64 // where it is in its space; of a kernel's parameter the offset
	content []byte // of a variable of the module
}

// function is a kernel or a device function as it stands in the text.
type function struct {
	name             string
	line             int
	entry            bool
	results, params  []*variable
	body             []statement
	labels           map[string]int // index of the statement that follows
	maximum, require [3]uint32      // .maxntid and .reqntid, 0 if absent
}

// statement is an instruction as it stands in the text.
type statement struct {
	line     int
	text     string
	guard    string // the predicate, "" if there is none
	guardNot bool
	op       []string // mnemonic and modifiers
	operands []operand
	scope    *scope
}

// Parse reads a module. An instruction, type or modifier that it does not know, or that does not fit its operands, is
// an error that names the line.
func Parse(text string) (*Module, error) {
	p := &parser{lexer: lexer{text: text, line: 1}, functions: map[string]*function{}}
	p.module = &scope{variables: map[string]*variable{}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for p.token.kind != 0 {
		if err := p.directive(); err != nil {
			return nil, err
		}
	}
	m := &Module{Version: p.version, Target: p.target, kernels: map[string]*Kernel{}}
	if m.Version == "" || m.Target == "" {
		return nil, errorAt(1, "the text has no .version or no .target")
	}
	for _, f := range p.order {
		if !f.entry {
			continue
		}
		k, err := decode(f, p.functions)
		if err != nil {
			return nil, err
		}
		m.kernels[f.name] = k
	}
	return m, nil
}

type parser struct {
	lexer
	token           token
	version, target string
	module          *scope
	functions       map[string]*function
	order           []*function
	globals         uint64 // bytes of the module's variables so far
	placed          uint64 // where the last of them ends
}

func (p *parser) advance() (err error) {
	p.token, err = p.next()
	return err
}

// take passes over a token of that kind.
func (p *parser) take(kind byte) (token, error) {
	t := p.token
	if t.kind != kind {
		want := map[byte]string{'w': "a name", 'n': "a number", 's': "a string"}[kind]
		if want == "" {
			want = strconv.Quote(string(kind))
		}
		return t, errorAt(t.line, "want %s, got %q", want, t.text)
	}
	return t, p.advance()
}

// accept passes over a token if it is of that kind.
func (p *parser) accept(kind byte) (bool, error) {
	if p.token.kind != kind {
		return false, nil
	}
	return true, p.advance()
}

// directive reads what stands outside of functions.
func (p *parser) directive() error {
	t, err := p.take('w')
	if err != nil {
		return err
	}
	switch t.text {
	case ".version":
		n, err := p.take('n')
		p.version = n.text
		return err
	case ".target":
		w, err := p.take('w')
		p.target = w.text
		return err
	case ".address_size":
		n, err := p.take('n')
		if err == nil && n.text != "64" {
			err = errorAt(n.line, "the address size is %s, not 64", n.text)
		}
		return err
	case ".visible", ".weak", ".extern":
		return nil // what is declared and not defined is an error where it is used
	case ".entry", ".func":
		return p.function(t.text == ".entry")
	case ".global", ".const", ".shared":
		v, err := p.variable(spaceNames[t.text[1:]], true)
		if err != nil {
			return err
		}
		if v.content != nil {
			v.address = moduleBase + (p.placed+255)/256*256
			p.placed = v.address - moduleBase + v.size + 256
		}
		return p.module.declare(v, t.line)
	}
	return p.harmless(t)
}

// harmless passes over directives that mean nothing to a run.
func (p *parser) harmless(t token) error {
	switch t.text {
	case ".file", ".loc":
		p.at = t.end
		p.restOfLine()
		return p.advance()
	case ".section":
		for p.token.kind != '}' {
			if p.token.kind == 0 {
				return errorAt(t.line, ".section has no end")
			}
			if err := p.advance(); err != nil {
				return err
			}
		}
		return p.advance()
	case ".pragma":
		if _, err := p.take('s'); err != nil {
			return err
		}
		_, err := p.take(';')
		return err
	}
	return errorAt(t.line, "unknown directive %s", t.text)
}

// variable reads what follows .global and the like up to the semicolon, if one is to end it.
func (p *parser) variable(in space, ends bool) (*variable, error) {
	v := &variable{space: in}
	t, err := p.take('w')
	if err != nil {
		return nil, err
	}
	if t.text == ".align" {
		if v.align, err = p.integer(); err != nil {
			return nil, err
		}
		if v.align == 0 || v.align > 256 || v.align&(v.align-1) != 0 {
			return nil, errorAt(t.line, "the alignment %d is no power of two up to 256", v.align)
		}
		if t, err = p.take('w'); err != nil {
			return nil, err
		}
	}
	typ, ok := typeNames[strings.TrimPrefix(t.text, ".")]
	if !ok || t.text[0] != '.' || typ.class == predicate {
		return nil, errorAt(t.line, "%s is no type of a variable", t.text)
	}
	v.size, v.align = uint64(typ.size), max(v.align, uint64(typ.size))
	if t, err = p.take('w'); err != nil {
		return nil, err
	}
	v.name = t.text
	if ok, err := p.accept('['); err != nil {
		return nil, err
	} else if ok {
		n, err := p.integer()
		if err != nil {
			return nil, err
		}
		bound := uint64(maxVariable)
		if in == shared {
			bound = maxShared
		} else if in == local || in == param {
			bound = maxLocal
		}
		if n == 0 || n > bound/v.size {
			return nil, errorAt(t.line, "%s has %d elements of %d bytes; the %s space takes 1 to %d bytes",
				v.name, n, v.size, in, bound)
		}
		v.size *= n
		if _, err := p.take(']'); err != nil {
			return nil, err
		}
	}
	if in == global || in == constant {
		if p.globals += v.size; p.globals > maxVariable {
			return nil, errorAt(t.line, "the variables of the module have more than %d bytes", maxVariable)
		}
		v.content = make([]byte, v.size)
		if err := p.content(v, typ); err != nil {
			return nil, err
		}
	}
	if ends {
		_, err = p.take(';')
	}
	return v, err
}

// content reads the initial value of a variable, if it has one.
func (p *parser) content(v *variable, element typ) error {
	if ok, err := p.accept('='); err != nil || !ok {
		return err
	}
	if ok, err := p.accept('{'); err != nil {
		return err
	} else if !ok {
		return p.element(v, element, 0)
	}
	for at := uint64(0); ; at += uint64(element.size) {
		if at >= v.size {
			return errorAt(p.token.line, "%s has more values than elements", v.name)
		}
		if err := p.element(v, element, at); err != nil {
			return err
		}
		if ok, err := p.accept(','); err != nil {
			return err
		} else if !ok {
			_, err := p.take('}')
			return err
		}
	}
}

func (p *parser) element(v *variable, element typ, at uint64) error {
	line := p.token.line
	o, err := p.number()
	if err != nil {
		return err
	}
	value, err := o.valueAs(element, line)
	for i := range uint64(element.size) {
		v.content[at+i] = byte(value >> (8 * i))
	}
	return err
}

// function reads what follows .entry or .func.
func (p *parser) function(entry bool) error {
	f := &function{entry: entry, labels: map[string]int{}}
	var err error
	if !entry && p.token.kind == '(' {
		if f.results, err = p.parameters(); err != nil {
			return err
		}
	}
	name, err := p.take('w')
	if err != nil {
		return err
	}
	f.name, f.line = name.text, name.line
	if p.token.kind == '(' {
		if f.params, err = p.parameters(); err != nil {
			return err
		}
	}
	for p.token.kind == 'w' {
		if err := p.tuning(f); err != nil {
			return err
		}
	}
	if p.token.kind == ';' {
		return p.advance() // a declaration
	}
	if p.functions[f.name] != nil {
		return errorAt(f.line, "%s is defined twice", f.name)
	}
	top := &scope{outer: p.module}
	for _, v := range append(f.params[:len(f.params):len(f.params)], f.results...) {
		if err := top.declare(v, f.line); err != nil {
			return err
		}
	}
	p.functions[f.name] = f
	p.order = append(p.order, f)
	return p.body(f, top)
}

func (p *parser) parameters() ([]*variable, error) {
	var all []*variable
	if _, err := p.take('('); err != nil {
		return nil, err
	}
	if ok, err := p.accept(')'); ok || err != nil {
		return nil, err
	}
	for {
		t, err := p.take('w')
		if err != nil {
			return nil, err
		}
		if t.text != ".param" {
			return nil, errorAt(t.line, "want .param, got %s", t.text)
		}
		v, err := p.variable(param, false)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		if ok, err := p.accept(','); err != nil {
			return nil, err
		} else if !ok {
			_, err := p.take(')')
			return all, err
		}
	}
}

// tuning reads a directive between the parameters and the body.
func (p *parser) tuning(f *function) error {
	t, err := p.take('w')
	if err != nil {
		return err
	}
	var to *[3]uint32
	count := 3
	switch t.text {
	case ".maxntid":
		to = &f.maximum
	case ".reqntid":
		to = &f.require
	case ".minnctapersm", ".maxnreg":
		to, count = new([3]uint32), 1
	case ".noreturn":
		return nil
	default:
		return errorAt(t.line, "unknown directive %s", t.text)
	}
	*to = [3]uint32{1, 1, 1}
	for i := range count {
		n, err := p.integer()
		if err != nil {
			return err
		}
		to[i] = uint32(min(n, math.MaxUint32))
		if ok, err := p.accept(','); err != nil || !ok {
			return err
		}
	}
	return nil
}

// body reads a function's statements, braces included.
func (p *parser) body(f *function, at *scope) error {
	open, err := p.take('{')
	for err == nil {
		switch p.token.kind {
		case '{':
			at = &scope{outer: at, depth: at.depth + 1}
			if at.depth > maxDepth {
				return errorAt(p.token.line, "more than %d braces within one another", maxDepth)
			}
			err = p.advance()
		case '}':
			if at.depth == 0 {
				return p.advance()
			}
			at = at.outer
			err = p.advance()
		case 0:
			return errorAt(open.line, "the body of %s has no end", f.name)
		case ';':
			err = p.advance()
		default:
			err = p.statement(f, at)
		}
	}
	return err
}

// statement reads a declaration, a label or an instruction.
func (p *parser) statement(f *function, at *scope) error {
	s := statement{line: p.token.line, scope: at}
	begin := p.token.begin
	if ok, err := p.accept('@'); err != nil {
		return err
	} else if ok {
		if s.guardNot, err = p.accept('!'); err != nil {
			return err
		}
		t, err := p.take('w')
		if err != nil {
			return err
		}
		s.guard = t.text
	}
	t, err := p.take('w')
	if err != nil {
		return err
	}
	if s.guard == "" {
		if ok, err := p.accept(':'); err != nil {
			return err
		} else if ok {
			if _, is := f.labels[t.text]; is {
				return errorAt(t.line, "label %s stands twice in %s", t.text, f.name)
			}
			f.labels[t.text] = len(f.body)
			return nil
		}
		switch t.text {
		case ".reg":
			return p.registers(at)
		case ".shared", ".local", ".param":
			v, err := p.variable(spaceNames[t.text[1:]], true)
			if err != nil {
				return err
			}
			return at.declare(v, t.line)
		}
		if t.text[0] == '.' {
			return p.harmless(t)
		}
	}
	s.op = strings.Split(t.text, ".")
	for p.token.kind != ';' {
		o, err := p.operand()
		if err != nil {
			return err
		}
		s.operands = append(s.operands, o)
		if ok, err := p.accept(','); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	end, err := p.take(';')
	s.text = strings.Join(strings.Fields(p.text[begin:end.begin]), " ")
	f.body = append(f.body, s)
	return err
}
