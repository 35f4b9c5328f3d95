package ptx

import (
	"slices"
	"strings"
)

// Where spaces begin as generic addresses; cvta changes nothing. No allocation lies there.
const (
	moduleBase = 0xfffc << 48
	localBase  = 0xfffd << 48
	sharedBase = 0xfffe << 48
)

// Kernel is a kernel whose instructions are decoded. What it calls is copied in at each call.
type Kernel struct {
	Name   string
	Params []int // sizes in bytes

	code             []instruction
	where            []place // of each instruction
	slots, preds     int
	constants        []fixed // slots that hold a number
	specials         []special
	offsets          []uint64 // of the parameters in their space
	paramBytes       uint64
	shared           []*variable
	locals           []*variable
	localBytes       uint64
	module           []*variable
	maximum, require [3]uint32
}

type fixed struct {
	slot  int32
	value uint64
}

// special is a slot that holds a special register.
type special struct {
	slot int32
	name string
}

// place is an instruction in the text.
type place struct {
	line int
	text string
}

// flow says how an instruction moves on.
type flow uint8

const (
	onward  flow = iota // to the next
	jump                // bra
	leave               // ret, exit
	meet                // lanes that it names must come together: shfl.sync, vote.sync, bar.warp.sync
	barrier             // bar.sync
)

// instruction is decoded for a warp: exec computes it for the lanes of a mask, and false means that the warp has
// failed. Slot 0 stands for no operand, and predicate 0 is always true.
type instruction struct {
	exec     execution
	d        int32
	a, b, c  int32
	guard    int32
	guardNot uint32 // all bits set if the guard is negated
	flow     flow
	target   int32
	p, q     int32 // predicates
	index    int32 // of this instruction

	f1 func(a uint64) uint64
	f2 func(a, b uint64) uint64
	f3 func(a, b, c uint64) uint64
	is func(a, b uint64) bool

	more []int32 // further slots: the elements of a vector, the fourth operand
	mem  *access

	named int32 // the slot that says which lanes come together
}

// decoder makes the instructions of a kernel.
type decoder struct {
	k         *Kernel
	functions map[string]*function
	numbers   map[uint64]int32
	names     map[string]int32 // slots of special registers
	sharedAt  map[*variable]*variable
	nextShare uint64
}

// frame is a function as it is copied into a kernel, once per call.
type frame struct {
	*decoder
	f         *function
	depth     int
	registers map[registerName]int32
	variables map[*variable]*variable // those of the param and local spaces, where they are
	jumps     []pending
	returns   []int32
}

type registerName struct {
	scope *scope
	name  string
}

// pending is a jump to a label.
type pending struct {
	index int32
	label string
	line  int
}

// decode makes a kernel of a function.
func decode(f *function, functions map[string]*function) (*Kernel, error) {
	k := &Kernel{Name: f.name, slots: 1, preds: 1, maximum: f.maximum, require: f.require}
	d := &decoder{k: k, functions: functions, numbers: map[uint64]int32{}, names: map[string]int32{},
		sharedAt: map[*variable]*variable{}}
	fr := d.frame(f, 0)
	for _, v := range f.params {
		if v.size > 8 {
			return nil, errorAt(f.line, "parameter %s of kernel %s has %d bytes; at most 8 are supported", v.name,
				f.name, v.size)
		}
		at := *v
		at.address = (k.paramBytes + v.align - 1) / v.align * v.align
		k.paramBytes = at.address + v.size
		k.Params = append(k.Params, int(v.size))
		k.offsets = append(k.offsets, at.address)
		fr.variables[v] = &at
	}
	if err := fr.copy(); err != nil {
		return nil, err
	}
	sum := uint64(0)
	for _, v := range k.shared {
		sum += (v.size + v.align - 1) / v.align * v.align
	}
	if sum > maxShared || k.localBytes > maxLocal {
		return nil, errorAt(f.line,
			"kernel %s has %d bytes of shared memory, at most %d, and %d of local memory, at most %d",
			f.name, sum, maxShared, k.localBytes, maxLocal)
	}
	if len(k.code) == 0 || k.code[len(k.code)-1].flow != leave || k.code[len(k.code)-1].guard != 0 {
		fr.emit(instruction{flow: leave}, &statement{line: f.line, text: "the end of " + f.name})
	}
	return k, nil
}

func (d *decoder) frame(f *function, depth int) *frame {
	return &frame{decoder: d, f: f, depth: depth, registers: map[registerName]int32{},
		variables: map[*variable]*variable{}}
}

// copy decodes the function's statements behind the code so far.
func (f *frame) copy() error {
	starts := make([]int32, len(f.f.body)+1)
	for i := range f.f.body {
		s := &f.f.body[i]
		starts[i] = int32(len(f.k.code))
		if err := f.statement(s); err != nil {
			return err
		}
		if len(f.k.code) > maxCode || f.k.slots+f.k.preds > maxRegisters {
			return errorAt(s.line, "kernel %s needs more than %d instructions or %d registers", f.k.Name, maxCode,
				maxRegisters)
		}
	}
	starts[len(f.f.body)] = int32(len(f.k.code))
	for _, j := range f.jumps {
		at, ok := f.f.labels[j.label]
		if !ok {
			return errorAt(j.line, "%s has no label %s", f.f.name, j.label)
		}
		f.k.code[j.index].target = starts[at]
	}
	for _, index := range f.returns {
		f.k.code[index].target = int32(len(f.k.code))
	}
	return nil
}

func (f *frame) emit(in instruction, s *statement) {
	in.index = int32(len(f.k.code))
	if in.exec == nil {
		in.exec = noOperation
	}
	f.k.code = append(f.k.code, in)
	f.k.where = append(f.k.where, place{s.line, s.text})
}

func noOperation(*warp, *instruction, uint32) bool { return true }

// statement decodes one statement.
func (f *frame) statement(s *statement) error {
	in := instruction{}
	if s.guard != "" {
		guard, err := f.predicate(s, operand{kind: named, name: s.guard})
		if err != nil {
			return err
		}
		in.guard = guard
		if s.guardNot {
			in.guardNot = ^uint32(0)
		}
	}
	how, ok := decoders[s.op[0]]
	if !ok {
		return errorAt(s.line, "unknown instruction %s", strings.Join(s.op, "."))
	}
	return how(f, s, in)
}

// unknown is the error of a form that does not exist or is not supported.
func unknown(s *statement) error {
	return errorAt(s.line, "unknown form %s of %s: %q", strings.Join(s.op, "."), s.op[0], s.text)
}

// form splits the mnemonic into what comes before the type, and the type.
func (s *statement) form() (string, typ, error) {
	last := len(s.op) - 1
	t, ok := typeNames[s.op[last]]
	if !ok || last == 0 {
		return "", typ{}, unknown(s)
	}
	return strings.Join(s.op[:last], "."), t, nil
}

// count checks the number of operands.
func (s *statement) count(least, most int) error {
	if len(s.operands) < least || len(s.operands) > most {
		return errorAt(s.line, "%q has %d operands", s.text, len(s.operands))
	}
	return nil
}

func (d *decoder) slot() int32 {
	d.k.slots++
	return int32(d.k.slots - 1)
}

// number returns a slot that holds a value.
func (d *decoder) number(value uint64) int32 {
	at, ok := d.numbers[value]
	if !ok {
		at = d.slot()
		d.numbers[value] = at
		d.k.constants = append(d.k.constants, fixed{at, value})
	}
	return at
}

// register returns a register's slot and type.
func (f *frame) register(s *statement, name string) (int32, typ, error) {
	t, where := s.scope.register(name)
	if where == nil {
		return 0, t, errorAt(s.line, "%s is no register here: %q", name, s.text)
	}
	key := registerName{where, name}
	at, ok := f.registers[key]
	if !ok {
		if t.class == predicate {
			at = int32(f.k.preds)
			f.k.preds++
		} else {
			at = f.slot()
		}
		f.registers[key] = at
	}
	return at, t, nil
}

// predicate returns the index of a predicate register.
func (f *frame) predicate(s *statement, o operand) (int32, error) {
	if o.kind != named || o.value != 0 {
		return 0, errorAt(s.line, "want a predicate: %q", s.text)
	}
	at, t, err := f.register(s, o.name)
	if err == nil && t.class != predicate {
		err = errorAt(s.line, "%s is no predicate: %q", o.name, s.text)
	}
	return at, err
}

// source returns the slot of an operand that is read as type t. If wider, a register may be wider than t.
func (f *frame) source(s *statement, o operand, t typ, wider bool) (int32, error) {
	switch {
	case o.kind == number:
		value, err := o.valueAs(t, s.line)
		return f.number(value), err
	case o.kind != named || o.not || o.second != "" || o.value != 0:
		return 0, errorAt(s.line, "want a register or a number: %q", s.text)
	}
	at, of, err := f.register(s, o.name)
	if err == nil && !fits(t, of, wider) {
		err = errorAt(s.line, "%s is %s, not %s: %q", o.name, of, t, s.text)
	}
	return at, err
}

// fits tells whether a register may be an operand of type t; wider, as ld, st and cvt take it, also if it has more
// bits.
func fits(t, register typ, wider bool) bool {
	if !wider || t.class == predicate || register.class == predicate {
		return t.takes(register)
	}
	if register.class == float || t.class == float {
		return t.takes(register) || t == typ{float, 2} && register.class == untyped && register.size >= 2
	}
	return register.size >= t.size
}

// target returns the slot of an operand that is written as type t; _ is a slot that nothing reads.
func (f *frame) target(s *statement, o operand, t typ, wider bool) (int32, typ, error) {
	if o.kind != named || o.not || o.second != "" || o.value != 0 {
		return 0, t, errorAt(s.line, "want a register: %q", s.text)
	}
	if o.name == "_" {
		return f.slot(), t, nil
	}
	at, of, err := f.register(s, o.name)
	if err == nil && !fits(t, of, wider) {
		err = errorAt(s.line, "%s is %s, not %s: %q", o.name, of, t, s.text)
	}
	return at, of, err
}

// operands fills d, a, b and c: the result has the first type, operands the others.
func (f *frame) operands(s *statement, in *instruction, result typ, sources ...typ) error {
	if err := s.count(1+len(sources), 1+len(sources)); err != nil {
		return err
	}
	var err error
	if in.d, _, err = f.target(s, s.operands[0], result, false); err != nil {
		return err
	}
	return f.sources(s, in, 1, sources...)
}

// sources fills a, b and c with the operands from the first on.
func (f *frame) sources(s *statement, in *instruction, first int, types ...typ) error {
	for i, t := range types {
		at, err := f.source(s, s.operands[first+i], t, false)
		if err != nil {
			return err
		}
		switch i {
		case 0:
			in.a = at
		case 1:
			in.b = at
		case 2:
			in.c = at
		default:
			in.more = append(in.more, at)
		}
	}
	return nil
}

// located returns where a variable is.
func (f *frame) located(v *variable) *variable {
	switch v.space {
	case global, constant:
		if !slices.Contains(f.k.module, v) {
			f.k.module = append(f.k.module, v)
		}
	case shared:
		at := f.sharedAt[v]
		if at == nil {
			at = &variable{name: v.name, space: shared, align: v.align, size: v.size}
			at.address = sharedBase + (f.nextShare+255)/256*256
			f.nextShare = at.address - sharedBase + v.size + 256
			f.k.shared = append(f.k.shared, at)
			f.sharedAt[v] = at
		}
		return at
	case local, param:
		at := f.variables[v]
		if at == nil {
			at = &variable{name: v.name, space: local, align: v.align, size: v.size}
			at.address = localBase + (f.k.localBytes+63)/64*64
			f.k.localBytes = at.address - localBase + v.size
			f.k.locals = append(f.k.locals, at)
			f.variables[v] = at
		}
		return at
	}
	return v
}

// decoders has the instructions by the first word of their mnemonic.
var decoders map[string]func(f *frame, s *statement, in instruction) error

func init() {
	decoders = map[string]func(f *frame, s *statement, in instruction) error{
		"setp": (*frame).setp, "testp": (*frame).testp, "selp": (*frame).selp, "slct": (*frame).slct,
		"bfi": (*frame).bfi,
		"mov": (*frame).mov, "cvt": (*frame).cvt, "cvta": (*frame).cvta,
		"ld": (*frame).load, "st": (*frame).store, "atom": (*frame).atomic, "red": (*frame).atomic,
		"shfl": (*frame).shuffle, "vote": (*frame).vote, "activemask": (*frame).active,
		"bar": (*frame).bar, "barrier": (*frame).bar, "membar": (*frame).fence, "fence": (*frame).fence,
		"bra": (*frame).bra, "call": (*frame).call, "ret": (*frame).ret, "exit": (*frame).exit, "trap": (*frame).trap,
	}
	for _, op := range strings.Fields("add sub mul div rem min max copysign addc subc") {
		decoders[op] = (*frame).binary
	}
	for _, op := range strings.Fields("and or xor shl shr") {
		decoders[op] = (*frame).logic
	}
	for _, op := range strings.Fields("neg abs not cnot popc clz brev sqrt rcp") {
		decoders[op] = (*frame).unary
	}
	for _, op := range strings.Fields("mad fma bfe shf prmt") {
		decoders[op] = (*frame).ternary
	}
}

var (
	tU32 = typ{unsigned, 4}
	tB32 = typ{untyped, 4}
)
