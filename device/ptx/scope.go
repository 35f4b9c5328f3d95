package ptx

import (
	"strconv"
	"strings"
)

// scope is what the braces around a statement declare. Names of registers may stand for many: %r<9> is %r0 to %r8.
type scope struct {
	outer     *scope
	depth     int
	registers map[string]typ
	ranges    map[string]registerRange
	variables map[string]*variable
}

type registerRange struct {
	typ   typ
	count uint64
}

func (s *scope) declare(v *variable, line int) error {
	if s.variables[v.name] != nil {
		return errorAt(line, "%s is declared twice", v.name)
	}
	if s.variables == nil {
		s.variables = map[string]*variable{}
	}
	s.variables[v.name] = v
	return nil
}

// registers reads what follows .reg.
func (p *parser) registers(at *scope) error {
	t, err := p.take('w')
	if err != nil {
		return err
	}
	of, ok := typeNames[strings.TrimPrefix(t.text, ".")]
	if !ok || of.size == 1 && of.class != predicate {
		return errorAt(t.line, "%s is no type of a register", t.text)
	}
	if at.registers == nil {
		at.registers, at.ranges = map[string]typ{}, map[string]registerRange{}
	}
	for {
		name, err := p.take('w')
		if err != nil {
			return err
		}
		_, one := at.registers[name.text]
		_, many := at.ranges[name.text]
		if ok, err := p.accept('<'); err != nil {
			return err
		} else if ok {
			n, err := p.integer()
			if err != nil {
				return err
			}
			if _, err := p.take('>'); err != nil {
				return err
			}
			at.ranges[name.text] = registerRange{of, n}
		} else {
			at.registers[name.text] = of
			many = false
		}
		if one || many {
			return errorAt(name.line, "%s is declared twice", name.text)
		}
		if ok, err := p.accept(','); err != nil {
			return err
		} else if !ok {
			_, err := p.take(';')
			return err
		}
	}
}

// register returns the type of a register and the scope that declares it.
func (s *scope) register(name string) (typ, *scope) {
	prefix := strings.TrimRight(name, "0123456789")
	digits := name[len(prefix):]
	n, err := strconv.ParseUint(digits, 10, 64)
	counted := err == nil && (digits == "0" || digits[0] != '0')
	for ; s != nil; s = s.outer {
		if t, ok := s.registers[name]; ok {
			return t, s
		}
		if r, ok := s.ranges[prefix]; ok && counted && n < r.count {
			return r.typ, s
		}
	}
	return typ{}, nil
}

// variable returns the variable of that name, nil if there is none.
func (s *scope) variable(name string) *variable {
	for ; s != nil; s = s.outer {
		if v := s.variables[name]; v != nil {
			return v
		}
	}
	return nil
}
