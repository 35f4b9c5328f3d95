package ptx

import (
	"math"
	"math/bits"
)

// Registers hold integers zero-extended to 64 bits. What follows takes and returns them so.

// arithmetic returns what an instruction on two operands of type t computes, nil if there is none. A division by zero
// is found before.
func arithmetic(op string, t typ) func(a, b uint64) uint64 {
	mask, sign := t.mask(), t.class == signed
	ext := t.extend
	if t.class == float {
		return floatArithmetic(op, t)
	}
	if t.class == untyped || t.class == predicate || t.size == 1 {
		return nil
	}
	switch op {
	case "add":
		return func(a, b uint64) uint64 { return (a + b) & mask }
	case "sub":
		return func(a, b uint64) uint64 { return (a - b) & mask }
	case "mul.lo":
		return func(a, b uint64) uint64 { return a * b & mask }
	case "mul.hi":
		return highProduct(t)
	case "mul.wide":
		if t.size == 8 {
			return nil
		}
		wide := typ{t.class, 2 * t.size}.mask()
		return func(a, b uint64) uint64 { return ext(a) * ext(b) & wide }
	case "div":
		if sign {
			return func(a, b uint64) uint64 { return uint64(quotient(int64(ext(a)), int64(ext(b)))) & mask }
		}
		return func(a, b uint64) uint64 { return a / b }
	case "rem":
		if sign {
			return func(a, b uint64) uint64 {
				x, y := int64(ext(a)), int64(ext(b))
				return uint64(x-quotient(x, y)*y) & mask
			}
		}
		return func(a, b uint64) uint64 { return a % b }
	case "min":
		return func(a, b uint64) uint64 {
			if less(sign, ext(a), ext(b)) {
				return a
			}
			return b
		}
	case "max":
		return func(a, b uint64) uint64 {
			if less(sign, ext(a), ext(b)) {
				return b
			}
			return a
		}
	}
	return nil
}

// quotient divides, towards zero; the least number by -1 is itself, as in hardware.
func quotient(a, b int64) int64 {
	if b == -1 {
		return -a
	}
	return a / b
}

func less(sign bool, a, b uint64) bool {
	if sign {
		return int64(a) < int64(b)
	}
	return a < b
}

func highProduct(t typ) func(a, b uint64) uint64 {
	if t.size < 8 {
		return func(a, b uint64) uint64 { return t.extend(a) * t.extend(b) >> (8 * t.size) & t.mask() }
	}
	return func(a, b uint64) uint64 {
		high, _ := bits.Mul64(a, b)
		if t.class == signed {
			high -= uint64(int64(a)>>63)&b + uint64(int64(b)>>63)&a
		}
		return high
	}
}

func floatArithmetic(op string, t typ) func(a, b uint64) uint64 {
	switch t.size {
	case 4:
		switch op {
		case "add.rn":
			return func(a, b uint64) uint64 { return fromF32(toF32(a) + toF32(b)) }
		case "sub.rn":
			return func(a, b uint64) uint64 { return fromF32(toF32(a) - toF32(b)) }
		case "mul.rn":
			return func(a, b uint64) uint64 { return fromF32(toF32(a) * toF32(b)) }
		case "div.rn":
			return func(a, b uint64) uint64 { return fromF32(toF32(a) / toF32(b)) }
		case "min":
			return func(a, b uint64) uint64 { return fromF32(lesser(toF32(a), toF32(b))) }
		case "max":
			return func(a, b uint64) uint64 { return fromF32(greater(toF32(a), toF32(b))) }
		case "copysign":
			return func(a, b uint64) uint64 { return a&(1<<31) | b&(1<<31-1) }
		}
	case 8:
		switch op {
		case "add.rn":
			return func(a, b uint64) uint64 { return fromF64(toF64(a) + toF64(b)) }
		case "sub.rn":
			return func(a, b uint64) uint64 { return fromF64(toF64(a) - toF64(b)) }
		case "mul.rn":
			return func(a, b uint64) uint64 { return fromF64(toF64(a) * toF64(b)) }
		case "div.rn":
			return func(a, b uint64) uint64 { return fromF64(toF64(a) / toF64(b)) }
		case "min":
			return func(a, b uint64) uint64 { return fromF64(lesser(toF64(a), toF64(b))) }
		case "max":
			return func(a, b uint64) uint64 { return fromF64(greater(toF64(a), toF64(b))) }
		case "copysign":
			return func(a, b uint64) uint64 { return a&(1<<63) | b&(1<<63-1) }
		}
	}
	return nil
}

// logical returns and, or, xor, shl, shr on a type, nil if there is none. Shifts by more than the width shift all out.
func logical(op string, t typ) func(a, b uint64) uint64 {
	mask := t.mask()
	if t.size == 1 || t.class == float {
		return nil
	}
	switch op {
	case "and":
		return func(a, b uint64) uint64 { return a & b }
	case "or":
		return func(a, b uint64) uint64 { return a | b }
	case "xor":
		return func(a, b uint64) uint64 { return a ^ b }
	case "shl":
		return func(a, b uint64) uint64 { return a << min(b, 64) & mask }
	case "shr":
		if t.class == signed {
			return func(a, b uint64) uint64 { return uint64(int64(t.extend(a))>>min(b, 63)) & mask }
		}
		return func(a, b uint64) uint64 { return a >> min(b, 64) }
	}
	return nil
}

// unary returns what an instruction on one operand of type t computes, nil if there is none.
func unary(op string, t typ) func(a uint64) uint64 {
	mask := t.mask()
	top := mask ^ mask>>1
	width := 8 * uint64(t.size)
	switch {
	case t.class == float && t.size >= 4:
		switch op {
		case "neg":
			return func(a uint64) uint64 { return a ^ top }
		case "abs":
			return func(a uint64) uint64 { return a &^ top }
		case "sqrt.rn":
			return func(a uint64) uint64 { return narrow(math.Sqrt(widen(a, t.size)), t.size, nearest) }
		case "rcp.rn":
			divide := floatArithmetic("div.rn", t)
			one := narrow(1, t.size, nearest)
			return func(a uint64) uint64 { return divide(one, a) }
		}
	case t.class == signed && t.size > 1:
		switch op {
		case "neg":
			return func(a uint64) uint64 { return -a & mask }
		case "abs":
			return func(a uint64) uint64 {
				if a&top != 0 {
					return -a & mask
				}
				return a
			}
		}
	case t.class == untyped && t.size > 1:
		switch op {
		case "not":
			return func(a uint64) uint64 { return ^a & mask }
		case "cnot":
			return func(a uint64) uint64 {
				if a == 0 {
					return 1
				}
				return 0
			}
		}
		if t.size < 4 {
			return nil
		}
		switch op {
		case "popc":
			return func(a uint64) uint64 { return uint64(bits.OnesCount64(a)) }
		case "clz":
			return func(a uint64) uint64 { return uint64(bits.LeadingZeros64(a)) + width - 64 }
		case "brev":
			return func(a uint64) uint64 { return bits.Reverse64(a) >> (64 - width) }
		}
	}
	return nil
}

// ternary returns what an instruction on three operands of type t computes, nil if there is none. Of mad.wide the third
// operand is twice as wide.
func ternary(op string, t typ) func(a, b, c uint64) uint64 {
	switch op {
	case "mad.lo", "mad.hi", "mad.wide":
		product := arithmetic("mul"+op[3:], t)
		mask := t.mask()
		if op == "mad.wide" {
			mask = typ{t.class, 2 * t.size}.mask()
		}
		if product == nil || t.class == float {
			return nil
		}
		return func(a, b, c uint64) uint64 { return (product(a, b) + c) & mask }
	case "fma.rn":
		switch {
		case t == typ{float, 4}:
			return func(a, b, c uint64) uint64 { return fromF32(fma32(toF32(a), toF32(b), toF32(c))) }
		case t == typ{float, 8}:
			return func(a, b, c uint64) uint64 { return fromF64(math.FMA(toF64(a), toF64(b), toF64(c))) }
		}
	case "bfe":
		if t.integer() && t.size >= 4 {
			return func(a, b, c uint64) uint64 { return extract(t, a, b, c) }
		}
	case "shf.l.wrap", "shf.l.clamp", "shf.r.wrap", "shf.r.clamp":
		if t != (typ{untyped, 4}) {
			return nil
		}
		return func(a, b, c uint64) uint64 {
			if op[6] == 'w' {
				c &= 31
			}
			c = min(c, 32)
			if op[4] == 'l' {
				return (b<<32 | a) << c >> 32
			}
			return (b<<32 | a) >> c & (1<<32 - 1)
		}
	case "prmt":
		if t == (typ{untyped, 4}) {
			return permute
		}
	}
	return nil
}

// extract is bfe: length bits of a from position on, of a signed type with its last bit before them.
func extract(t typ, a, position, length uint64) uint64 {
	position, length = position&255, length&255
	if length == 0 {
		return 0
	}
	field := t.extend(a) // beyond the width the sign follows
	if t.class == signed {
		field = uint64(int64(field) >> min(position, 63))
		if length < 64 {
			field = uint64(int64(field<<(64-length)) >> (64 - length))
		}
		return field & t.mask()
	}
	field >>= min(position, 64)
	if length < 64 {
		field &= 1<<length - 1
	}
	return field
}

// insert is bfi: a's low bits take the place of length bits of b from position on.
func insert(t typ, a, b, position, length uint64) uint64 {
	position, length = position&255, length&255
	field := (uint64(1)<<min(length, 64) - 1) << min(position, 64) & t.mask()
	return b&^field | a<<min(position, 64)&field
}

// permute is prmt: each half byte of c picks a byte of b:a, or with its high bit eight times that byte's sign.
func permute(a, b, c uint64) uint64 {
	all, result := b<<32|a, uint64(0)
	for i := range 4 {
		pick := c >> (4 * i)
		chosen := all >> (8 * (pick & 7)) & 255
		if pick&8 != 0 {
			chosen = uint64(int64(chosen<<56)>>63) & 255
		}
		result |= chosen << (8 * i)
	}
	return result
}

// comparison returns what setp does on type t, nil if there is no such comparison.
func comparison(op string, t typ) func(a, b uint64) bool {
	if t.class == float {
		return floatComparison(op, t)
	}
	if t.size == 1 {
		return nil
	}
	ext := t.extend
	switch op {
	case "eq":
		return func(a, b uint64) bool { return a == b }
	case "ne":
		return func(a, b uint64) bool { return a != b }
	case "lt", "le", "gt", "ge":
		if !t.integer() {
			return nil
		}
	case "lo", "ls", "hi", "hs":
		if t.class != unsigned {
			return nil
		}
	default:
		return nil
	}
	sign := t.class == signed
	switch op {
	case "lt", "lo":
		return func(a, b uint64) bool { return less(sign, ext(a), ext(b)) }
	case "le", "ls":
		return func(a, b uint64) bool { return !less(sign, ext(b), ext(a)) }
	case "gt", "hi":
		return func(a, b uint64) bool { return less(sign, ext(b), ext(a)) }
	}
	return func(a, b uint64) bool { return !less(sign, ext(a), ext(b)) }
}

func floatComparison(op string, t typ) func(a, b uint64) bool {
	if t.size < 4 {
		return nil
	}
	unordered := len(op) == 3 && op[2] == 'u'
	if unordered {
		op = op[:2]
	}
	var f func(a, b float64) bool
	switch op {
	case "eq":
		f = func(a, b float64) bool { return a == b }
	case "ne":
		f = func(a, b float64) bool { return a < b || a > b }
	case "lt":
		f = func(a, b float64) bool { return a < b }
	case "le":
		f = func(a, b float64) bool { return a <= b }
	case "gt":
		f = func(a, b float64) bool { return a > b }
	case "ge":
		f = func(a, b float64) bool { return a >= b }
	case "num":
		f = func(a, b float64) bool { return a == a && b == b }
	case "nan":
		f = func(a, b float64) bool { return a != a || b != b }
	default:
		return nil
	}
	return func(a, b uint64) bool {
		x, y := widen(a, t.size), widen(b, t.size)
		return f(x, y) || unordered && (x != x || y != y)
	}
}

// property returns what testp does, nil if there is none of that name.
func property(op string, t typ) func(a uint64) bool {
	if t.class != float || t.size < 4 {
		return nil
	}
	least := math.Ldexp(1, formatOf(t.size).least)
	test := map[string]func(v float64) bool{
		"finite":     func(v float64) bool { return v-v == 0 },
		"infinite":   func(v float64) bool { return math.IsInf(v, 0) },
		"number":     func(v float64) bool { return v == v },
		"notanumber": func(v float64) bool { return v != v },
		"normal":     func(v float64) bool { return math.Abs(v) >= least && !math.IsInf(v, 0) },
		"subnormal":  func(v float64) bool { return v != 0 && math.Abs(v) < least },
	}[op]
	if test == nil {
		return nil
	}
	return func(a uint64) bool { return test(widen(a, t.size)) }
}
