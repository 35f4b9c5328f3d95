package ptx

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
