package ptx

// Modifiers of ld and st in the order in which they stand.
var accessModifiers = map[string]int{
	"weak": 1, "volatile": 1, "relaxed": 1, "cta": 2, "gpu": 2, "sys": 2,
	"global": 3, "const": 3, "shared": 3, "local": 3, "param": 3,
	"ca": 4, "cg": 4, "cs": 4, "lu": 4, "cv": 4, "wb": 4, "wt": 4, "nc": 5, "v2": 6, "v4": 6,
}

// access reads the modifiers of ld or st and its address, which is operand number at.
func (f *frame) access(s *statement, in *instruction, at int) error {
	mem := &access{count: 1}
	in.mem = mem
	_, t, err := s.form()
	if err != nil || t.class == predicate {
		return unknown(s)
	}
	mem.typ = t
	last := 0
	for _, name := range s.op[1 : len(s.op)-1] {
		rank := accessModifiers[name]
		if rank <= last || (rank == 2) != (last == 1 && s.op[1] == "relaxed") {
			return unknown(s)
		}
		last = rank
		switch rank {
		case 3:
			mem.space = spaceNames[name]
		case 4:
			if store := name[0] == 'w'; store != (s.op[0] == "st") && name != "cg" && name != "cs" {
				return unknown(s)
			}
		case 5:
			mem.readOnly = true
		case 6:
			mem.count = uint64(name[1] - '0')
		}
	}
	if mem.readOnly && (mem.space != global || s.op[0] != "ld") || mem.bytes() > 16 || last == 1 &&
		s.op[1] == "relaxed" {
		return unknown(s)
	}
	return f.address(s, in, at)
}

// address fills in what is needed of operand number at.
func (f *frame) address(s *statement, in *instruction, at int) error {
	mem, o := in.mem, s.operands[at]
	if o.kind != addressed {
		return errorAt(s.line, "want an address in brackets: %q", s.text)
	}
	v := s.scope.variable(o.name)
	switch {
	case v != nil:
		v = f.located(v)
		if mem.space != generic && mem.space != v.space && !(mem.space == param && v.space == local) {
			return errorAt(s.line, "%s is in the %s space, not in the %s space: %q", o.name, v.space, mem.space, s.text)
		}
		if o.value > v.size || mem.bytes() > v.size-o.value || (v.address+o.value)%mem.bytes() != 0 {
			return errorAt(s.line, "%s has %d bytes and no %d aligned ones at %d: %q",
				o.name, v.size, mem.bytes(), int64(o.value), s.text)
		}
		mem.space = v.space
		if v.space == param {
			mem.offset = v.address + o.value
			return nil
		}
		in.a = f.number(v.address + o.value)
		return nil
	case mem.space == param:
		return errorAt(s.line, "%s is no parameter here: %q", o.name, s.text)
	}
	if o.name == "" {
		in.a = f.number(o.value)
		return nil
	}
	mem.offset = o.value
	var err error
	in.a, err = f.source(s, operand{kind: named, name: o.name}, typ{untyped, 8}, false)
	return err
}

// elements reads the registers that are loaded or stored.
func (f *frame) elements(s *statement, in *instruction, o operand, write bool) error {
	all := []operand{o}
	if in.mem.count > 1 {
		if o.kind != vector {
			return errorAt(s.line, "want %d registers: %q", in.mem.count, s.text)
		}
		all = o.elements
	}
	if uint64(len(all)) != in.mem.count {
		return errorAt(s.line, "want %d registers: %q", in.mem.count, s.text)
	}
	in.mem.wide = in.mem.typ
	for _, o := range all {
		var at int32
		var err error
		if write {
			at, in.mem.wide, err = f.target(s, o, in.mem.typ, true)
		} else {
			at, err = f.source(s, o, in.mem.typ, true)
		}
		if err != nil {
			return err
		}
		in.more = append(in.more, at)
	}
	return nil
}

func (f *frame) load(s *statement, in instruction) error {
	err := s.count(2, 2)
	if err == nil {
		err = f.access(s, &in, 1)
	}
	if err == nil {
		err = f.elements(s, &in, s.operands[0], true)
	}
	if err != nil {
		return err
	}
	in.exec = loading
	if in.mem.space == param {
		in.exec = loadingParam
	}
	f.emit(in, s)
	return nil
}

func (f *frame) store(s *statement, in instruction) error {
	err := s.count(2, 2)
	if err == nil {
		err = f.access(s, &in, 0)
	}
	if err == nil {
		err = f.elements(s, &in, s.operands[1], false)
	}
	if err != nil {
		return err
	}
	if in.mem.space == param || in.mem.space == constant {
		return errorAt(s.line, "the %s space cannot be written: %q", in.mem.space, s.text)
	}
	in.exec = storing
	f.emit(in, s)
	return nil
}

// atomic decodes atom{.relaxed}{.scope}{.space}.op.type d, [a], b{, c} and red, which has no d. Floats are refused:
// their sums depend on the order of threads.
func (f *frame) atomic(s *statement, in instruction) error {
	if len(s.op) < 3 {
		return unknown(s)
	}
	_, t, err := s.form()
	if err != nil || t.size < 4 || t.class == float {
		return unknown(s)
	}
	op := s.op[len(s.op)-2]
	in.mem = &access{count: 1, typ: t, wide: t, update: update(op, t)}
	last := 0
	for _, name := range s.op[1 : len(s.op)-2] {
		rank := accessModifiers[name]
		if rank <= last || rank > 3 || name == "weak" || name == "volatile" || rank == 3 && name != "global" &&
			name != "shared" {
			return unknown(s)
		}
		if last = rank; rank == 3 {
			in.mem.space = spaceNames[name]
		}
	}
	at := 1
	if s.op[0] == "red" {
		at = 0
	}
	sources := []typ{t}
	if op == "cas" {
		sources = append(sources, t)
	}
	if in.mem.update == nil || at == 0 && (op == "cas" || op == "exch") {
		return unknown(s)
	}
	if err := s.count(at+1+len(sources), at+1+len(sources)); err != nil {
		return err
	}
	if in.d = f.slot(); at == 1 {
		if in.d, _, err = f.target(s, s.operands[0], t, false); err != nil {
			return err
		}
	}
	if err := f.address(s, &in, at); err != nil {
		return err
	}
	address := in.a
	if err := f.sources(s, &in, at+1, sources...); err != nil {
		return err
	}
	in.a, in.b, in.c = address, in.a, in.b
	if op != "cas" {
		in.c = 0
	}
	in.exec = updating
	f.emit(in, s)
	return nil
}

// update returns what an atomic operation makes of memory, nil if there is none such.
func update(op string, t typ) func(old, b, c uint64) uint64 {
	var f func(a, b uint64) uint64
	switch op {
	case "add":
		if t != (typ{signed, 8}) {
			f = arithmetic(op, t)
		}
	case "min", "max":
		f = arithmetic(op, t)
	case "and", "or", "xor":
		if t.class == untyped {
			f = logical(op, t)
		}
	case "exch":
		if t.class == untyped {
			f = func(_, b uint64) uint64 { return b }
		}
	case "cas":
		if t.class == untyped {
			return func(old, b, c uint64) uint64 {
				if old == b {
					return c
				}
				return old
			}
		}
	case "inc":
		if t == tU32 {
			f = func(old, b uint64) uint64 {
				if old >= b {
					return 0
				}
				return old + 1
			}
		}
	case "dec":
		if t == tU32 {
			f = func(old, b uint64) uint64 {
				if old == 0 || old > b {
					return b
				}
				return old - 1
			}
		}
	}
	if f == nil {
		return nil
	}
	return func(old, b, _ uint64) uint64 { return f(old, b) }
}
