package ptx

import (
	"strings"
)

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
