package ptx

import (
	"fmt"
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
		in.exec = nothing
	}
	f.k.code = append(f.k.code, in)
	f.k.where = append(f.k.where, place{s.line, s.text})
}

func nothing(*warp, *instruction, uint32) bool { return true }

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

func (f *frame) binary(s *statement, in instruction) error {
	key, t, err := s.form()
	if err != nil {
		return err
	}
	result := t
	switch key {
	case "mul.wide":
		result.size *= 2
	case "add.cc", "addc", "addc.cc", "sub.cc", "subc", "subc.cc":
		if !t.integer() || t.size < 4 {
			return unknown(s)
		}
		in.exec = carrying(key, t)
	}
	if in.exec == nil {
		if in.f2 = arithmetic(key, t); in.f2 == nil {
			return unknown(s)
		}
		in.exec = quick(key, t, exec2)
		if (key == "div" || key == "rem") && t.integer() {
			in.exec = dividing
		}
	}
	if err := f.operands(s, &in, result, t, t); err != nil {
		return err
	}
	f.emit(in, s)
	return nil
}

func (f *frame) logic(s *statement, in instruction) error {
	key, t, err := s.form()
	if err != nil {
		return err
	}
	if t.class == predicate && !strings.HasPrefix(key, "sh") {
		return f.predicateLogic(key, s, in)
	}
	in.f2 = logical(key, t)
	if in.f2 == nil || t.integer() != (key == "shr") && t.class != untyped {
		return unknown(s)
	}
	second := t
	if key[0] == 's' {
		second = tU32
	}
	in.exec = quick(key, t, exec2)
	if err := f.operands(s, &in, t, t, second); err != nil {
		return err
	}
	f.emit(in, s)
	return nil
}

func (f *frame) predicateLogic(key string, s *statement, in instruction) error {
	sources := 2
	if key == "not" || key == "mov" {
		sources = 1
	}
	err := s.count(1+sources, 1+sources)
	if err == nil {
		in.p, err = f.predicate(s, s.operands[0])
	}
	if err != nil {
		return err
	}
	var from [2]int32
	for i, o := range s.operands[1:] {
		if o.not {
			return unknown(s)
		}
		if o.kind == number && key == "mov" && o.value <= 1 && o.float == 0 {
			in.exec = setPredicate(-uint32(o.value))
			f.emit(in, s)
			return nil
		}
		if from[i], err = f.predicate(s, o); err != nil {
			return err
		}
	}
	combine := map[string]func(a, b uint32) uint32{
		"and": func(a, b uint32) uint32 { return a & b },
		"or":  func(a, b uint32) uint32 { return a | b },
		"xor": func(a, b uint32) uint32 { return a ^ b },
		"not": func(a, _ uint32) uint32 { return ^a },
		"mov": func(a, _ uint32) uint32 { return a },
	}[key]
	in.q = from[0]
	in.exec = combinePredicates(from[0], from[1], combine)
	f.emit(in, s)
	return nil
}

func (f *frame) unary(s *statement, in instruction) error {
	key, t, err := s.form()
	if err != nil {
		return err
	}
	if key == "not" && t.class == predicate {
		return f.predicateLogic(key, s, in)
	}
	if in.f1 = unary(key, t); in.f1 == nil {
		return unknown(s)
	}
	result := t
	if key == "popc" || key == "clz" {
		result = tU32
	}
	in.exec = exec1
	if err := f.operands(s, &in, result, t); err != nil {
		return err
	}
	f.emit(in, s)
	return nil
}

func (f *frame) ternary(s *statement, in instruction) error {
	key, t, err := s.form()
	if err != nil {
		return err
	}
	if in.f3 = ternary(key, t); in.f3 == nil {
		return unknown(s)
	}
	result, b, c := t, t, t
	switch s.op[0] {
	case "mad":
		if key == "mad.wide" {
			result.size *= 2
			c = result
		}
	case "bfe":
		b, c = tU32, tU32
	case "shf":
		c = tU32
	}
	in.exec = quick(key, t, exec3)
	if err := f.operands(s, &in, result, t, b, c); err != nil {
		return err
	}
	f.emit(in, s)
	return nil
}

func (f *frame) bfi(s *statement, in instruction) error {
	key, t, err := s.form()
	if err != nil || key != "bfi" || t.class != untyped || t.size < 4 {
		return unknown(s)
	}
	in.exec = inserting(t)
	if err := f.operands(s, &in, t, t, t, tU32, tU32); err != nil {
		return err
	}
	f.emit(in, s)
	return nil
}

// setp decodes setp.compare{.combine}.type p{|q}, a, b{, {!}c}.
func (f *frame) setp(s *statement, in instruction) error {
	if len(s.op) < 3 || len(s.op) > 4 {
		return unknown(s)
	}
	_, t, err := s.form()
	if err != nil {
		return err
	}
	if in.is = comparison(s.op[1], t); in.is == nil || t.size == 1 {
		return unknown(s)
	}
	combine := ""
	if len(s.op) == 4 {
		combine = s.op[2]
		if combine != "and" && combine != "or" && combine != "xor" {
			return unknown(s)
		}
	}
	want := 3
	if combine != "" {
		want = 4
	}
	if err := s.count(want, want); err != nil {
		return err
	}
	to := s.operands[0]
	second := to.second
	to.second = ""
	if in.p, err = f.predicate(s, to); err != nil {
		return err
	}
	if second != "" {
		if in.q, err = f.predicate(s, operand{kind: named, name: second}); err != nil {
			return err
		}
	}
	if err := f.sources(s, &in, 1, t, t); err != nil {
		return err
	}
	in.exec = quick("setp."+s.op[1], t, compare)
	if combine != "" || second != "" {
		third, not := int32(0), uint32(0)
		if combine != "" {
			o := s.operands[3]
			if third, err = f.predicate(s, o); err != nil {
				return err
			}
			if o.not {
				not = ^uint32(0)
			}
		}
		in.exec = compareAnd(combine, third, not)
	}
	f.emit(in, s)
	return nil
}

func (f *frame) testp(s *statement, in instruction) error {
	_, t, err := s.form()
	if err != nil || len(s.op) != 3 {
		return unknown(s)
	}
	test := property(s.op[1], t)
	if test == nil {
		return unknown(s)
	}
	in.is = func(a, _ uint64) bool { return test(a) }
	in.exec = compare
	err = s.count(2, 2)
	if err == nil {
		in.p, err = f.predicate(s, s.operands[0])
	}
	if err == nil {
		err = f.sources(s, &in, 1, t)
	}
	f.emit(in, s)
	return err
}

func (f *frame) selp(s *statement, in instruction) error {
	key, t, err := s.form()
	if err != nil || key != "selp" || t.size < 2 {
		return unknown(s)
	}
	err = s.count(4, 4)
	if err == nil {
		in.d, _, err = f.target(s, s.operands[0], t, false)
	}
	if err == nil {
		err = f.sources(s, &in, 1, t, t)
	}
	if err == nil {
		in.p, err = f.predicate(s, s.operands[3])
	}
	in.exec = selecting
	f.emit(in, s)
	return err
}

// slct decodes slct.type.kind d, a, b, c: a if c is at least zero, else b.
func (f *frame) slct(s *statement, in instruction) error {
	_, by, err := s.form()
	if err != nil || len(s.op) != 3 || by != (typ{signed, 4}) && by != (typ{float, 4}) {
		return unknown(s)
	}
	t, ok := typeNames[s.op[1]]
	if !ok || t.size < 2 {
		return unknown(s)
	}
	in.f3 = func(a, b, c uint64) uint64 {
		if by.class == float && toF32(c) >= 0 || by.class == signed && int32(c) >= 0 {
			return a
		}
		return b
	}
	in.exec = exec3
	err = f.operands(s, &in, t, t, t, by)
	f.emit(in, s)
	return err
}

// mov decodes moves between registers, of numbers, special registers, addresses, and to and from the parts of a
// register.
func (f *frame) mov(s *statement, in instruction) error {
	key, t, err := s.form()
	if err != nil || key != "mov" {
		return unknown(s)
	}
	if err := s.count(2, 2); err != nil {
		return err
	}
	if t.class == predicate {
		return f.predicateLogic(key, s, in)
	}
	if t.size < 2 {
		return unknown(s)
	}
	to, from := s.operands[0], s.operands[1]
	if to.kind == vector || from.kind == vector {
		return f.movParts(s, in, t)
	}
	if in.d, _, err = f.target(s, to, t, false); err != nil {
		return err
	}
	in.exec = moving
	if from.kind == named && !from.not && from.second == "" {
		if v := s.scope.variable(from.name); v != nil {
			if t.size != 8 || t.class == float {
				return errorAt(s.line, "an address has 64 bits: %q", s.text)
			}
			in.a = f.number(f.located(v).address + from.value)
			if v.space == param {
				return errorAt(s.line, "the address of a parameter is not supported: %q", s.text)
			}
			f.emit(in, s)
			return nil
		}
		if size, ok := specialSizes[from.name]; ok && from.value == 0 {
			if t.size != size || t.class == float {
				return errorAt(s.line, "%s has %d bytes: %q", from.name, size, s.text)
			}
			at, ok := f.names[from.name]
			if !ok {
				at = f.slot()
				f.names[from.name] = at
				f.k.specials = append(f.k.specials, special{at, from.name})
			}
			in.a = at
			f.emit(in, s)
			return nil
		}
	}
	if in.a, err = f.source(s, from, t, false); err != nil {
		return err
	}
	f.emit(in, s)
	return nil
}

// movParts decodes mov.b64 {a, b}, c and mov.b64 c, {a, b}.
func (f *frame) movParts(s *statement, in instruction, t typ) error {
	whole, parts := s.operands[0], s.operands[1]
	unpack := whole.kind == vector
	if unpack {
		whole, parts = parts, whole
	}
	n := len(parts.elements)
	if t.class != untyped || parts.kind != vector || n != 2 && n != 4 || int(t.size)/n < 2 {
		return unknown(s)
	}
	part := typ{untyped, t.size / uint8(n)}
	var err error
	if unpack {
		in.a, err = f.source(s, whole, t, false)
	} else {
		in.d, _, err = f.target(s, whole, t, false)
	}
	for _, o := range parts.elements {
		var at int32
		if err != nil {
			break
		}
		if unpack {
			at, _, err = f.target(s, o, part, false)
		} else {
			at, err = f.source(s, o, part, false)
		}
		in.more = append(in.more, at)
	}
	in.exec = packing(part)
	if unpack {
		in.exec = unpacking(part)
	}
	f.emit(in, s)
	return err
}

// cvt decodes cvt{.mode}{.sat}.to.from d, a.
func (f *frame) cvt(s *statement, in instruction) error {
	if len(s.op) < 3 || len(s.operands) != 2 {
		return unknown(s)
	}
	last := len(s.op) - 1
	from, ok := typeNames[s.op[last]]
	to, also := typeNames[s.op[last-1]]
	mods := s.op[1 : last-1]
	mode, saturate := "", false
	if len(mods) > 0 && mods[0] != "sat" {
		mode, mods = mods[0], mods[1:]
	}
	if len(mods) > 0 && mods[0] == "sat" {
		saturate, mods = true, mods[1:]
	}
	if !ok || !also || len(mods) > 0 {
		return unknown(s)
	}
	f1 := conversion(to, from, mode, saturate)
	if f1 == nil {
		return unknown(s)
	}
	var err error
	var wide typ
	if in.d, wide, err = f.target(s, s.operands[0], to, true); err != nil {
		return err
	}
	if in.a, err = f.source(s, s.operands[1], from, true); err != nil {
		return err
	}
	in.f1 = func(a uint64) uint64 { return f1(a & from.mask()) }
	in.exec = quick(fmt.Sprintf("cvt.%s.%s", mode, s.op[last-1]), from, exec1)
	if wide.size > to.size {
		in.f1 = func(a uint64) uint64 { return to.extend(f1(a&from.mask())) & wide.mask() }
		in.exec = exec1
	}
	f.emit(in, s)
	return nil
}

// cvta decodes cvta{.to}.space.u64 d, a, which changes no address here.
func (f *frame) cvta(s *statement, in instruction) error {
	mods := s.op[1:]
	if len(mods) > 0 && mods[0] == "to" {
		mods = mods[1:]
	}
	if len(mods) != 2 || spaceNames[mods[0]] == generic || mods[0] == "param" || mods[1] != "u64" {
		return unknown(s)
	}
	in.exec = moving
	t := typ{unsigned, 8}
	if err := s.count(2, 2); err != nil {
		return err
	}
	if v := s.scope.variable(s.operands[1].name); v != nil && s.operands[1].kind == named && v.space != param {
		var err error
		in.d, _, err = f.target(s, s.operands[0], t, false)
		in.a = f.number(f.located(v).address + s.operands[1].value)
		f.emit(in, s)
		return err
	}
	err := f.operands(s, &in, t, t)
	f.emit(in, s)
	return err
}

// bra decodes a jump.
func (f *frame) bra(s *statement, in instruction) error {
	if len(s.op) > 2 || len(s.op) == 2 && s.op[1] != "uni" {
		return unknown(s)
	}
	if err := s.count(1, 1); err != nil {
		return err
	}
	if o := s.operands[0]; o.kind != named || o.not || o.second != "" || o.value != 0 {
		return errorAt(s.line, "want a label: %q", s.text)
	}
	in.flow = jump
	f.jumps = append(f.jumps, pending{int32(len(f.k.code)), s.operands[0].name, s.line})
	f.emit(in, s)
	return nil
}

// ret decodes the end of a kernel, or of a function that was copied in.
func (f *frame) ret(s *statement, in instruction) error {
	if len(s.op) > 2 || len(s.op) == 2 && s.op[1] != "uni" || len(s.operands) > 0 {
		return unknown(s)
	}
	in.flow = leave
	if f.depth > 0 {
		in.flow = jump
		f.returns = append(f.returns, int32(len(f.k.code)))
	}
	f.emit(in, s)
	return nil
}

func (f *frame) exit(s *statement, in instruction) error {
	if len(s.op) > 1 || len(s.operands) > 0 {
		return unknown(s)
	}
	in.flow = leave
	f.emit(in, s)
	return nil
}

func (f *frame) trap(s *statement, in instruction) error {
	if len(s.op) > 1 || len(s.operands) > 0 {
		return unknown(s)
	}
	in.exec = trapping
	f.emit(in, s)
	return nil
}

func (f *frame) fence(s *statement, in instruction) error {
	switch strings.Join(s.op, ".") {
	case "membar.cta", "membar.gl", "membar.sys", "fence.sc.cta", "fence.sc.gpu", "fence.sc.sys",
		"fence.acq_rel.cta", "fence.acq_rel.gpu", "fence.acq_rel.sys":
		if len(s.operands) == 0 {
			f.emit(in, s)
			return nil
		}
	}
	return unknown(s)
}

// call copies the function in: call{.uni} {(results),} name{, (parameters)}.
func (f *frame) call(s *statement, in instruction) error {
	o := s.operands
	var results, params []operand
	if len(o) > 0 && o[0].kind == list {
		results, o = o[0].elements, o[1:]
	}
	if len(o) == 2 && o[1].kind == list {
		params, o = o[1].elements, o[:1]
	}
	if len(s.op) > 2 || len(s.op) == 2 && s.op[1] != "uni" || len(o) != 1 || o[0].kind != named || s.guard != "" {
		return unknown(s)
	}
	callee := f.functions[o[0].name]
	switch {
	case callee == nil || callee.entry:
		return errorAt(s.line, "%s is no function of this text: %q", o[0].name, s.text)
	case f.depth == maxDepth:
		return errorAt(s.line, "calls of %s are too deep, or recursive, which is not supported", callee.name)
	case len(params) != len(callee.params) || len(results) != len(callee.results):
		return errorAt(s.line, "%s has %d parameters and %d results: %q",
			callee.name, len(callee.params), len(callee.results), s.text)
	}
	inner := f.frame(callee, f.depth+1)
	bind := func(actual []operand, formal []*variable) error {
		for i, o := range actual {
			v := s.scope.variable(o.name)
			if v == nil || o.kind != named || v.space != param || v.size != formal[i].size {
				return errorAt(s.line, "%s does not fit %s of %s: %q", o.name, formal[i].name, callee.name, s.text)
			}
			if inner.variables[formal[i]] = f.located(v); f.located(v).space == param {
				return errorAt(s.line, "%s is a parameter of the kernel, not of a call: %q", v.name, s.text)
			}
		}
		return nil
	}
	if err := bind(params, callee.params); err != nil {
		return err
	}
	if err := bind(results, callee.results); err != nil {
		return err
	}
	f.emit(in, s)
	return inner.copy()
}
