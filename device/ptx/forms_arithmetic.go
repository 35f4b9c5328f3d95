package ptx

import (
	"strings"
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
