package ptx

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Random straight programs, and an evaluator of them that shares nothing with the package but the names of types: it
// computes one thread after the other, in integers of any size and in exact floats.

// form is an instruction as PTX has it; slow computes it, from the values of operands zero-extended to 64 bits.
type form struct {
	text     string // mnemonic
	operands string // types of the result and of the operands, "p" for a predicate, "n" for any number
	slow     func(x []uint64) uint64
}

func mask(width int) uint64 { return ^uint64(0) >> (64 - width) }

// integerOf returns the value of an operand of type t, such as s32.
func integerOf(t string, x uint64) *big.Int {
	width := widthOf(t)
	v := new(big.Int).SetUint64(x & mask(width))
	if t[0] == 's' && x>>(width-1)&1 == 1 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(width)))
	}
	return v
}

func widthOf(t string) int {
	width := 0
	fmt.Sscanf(t[1:], "%d", &width)
	return width
}

// wrapped returns an integer modulo the width.
func wrapped(v *big.Int, width int) uint64 {
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(width))
	return new(big.Int).Mod(v, modulus).Uint64()
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// forms lists all instructions on registers, but for conversions, which have a test of their own.
func forms() []form {
	var all []form
	add := func(text, operands string, slow func(x []uint64) uint64) {
		all = append(all, form{text, operands, slow})
	}
	for _, t := range strings.Fields("u16 s16 u32 s32 u64 s64") {
		width := widthOf(t)
		double := map[int]string{16: t[:1] + "32", 32: t[:1] + "64"}[width]
		value := func(x uint64) *big.Int { return integerOf(t, x) }
		two := func(op string, f func(z, a, b *big.Int) *big.Int) {
			add(op+"."+t, t+" "+t+" "+t, func(x []uint64) uint64 {
				return wrapped(f(new(big.Int), value(x[0]), value(x[1])), width)
			})
		}
		two("add", (*big.Int).Add)
		two("sub", (*big.Int).Sub)
		two("mul.lo", (*big.Int).Mul)
		high := func(z, a, b *big.Int) *big.Int { return z.Rsh(z.Mul(a, b), uint(width)) }
		two("mul.hi", high)
		two("min", func(_, a, b *big.Int) *big.Int {
			if a.Cmp(b) < 0 {
				return a
			}
			return b
		})
		two("max", func(_, a, b *big.Int) *big.Int {
			if a.Cmp(b) > 0 {
				return a
			}
			return b
		})
		// the operand n is a number, and none is 0
		add("div."+t, t+" "+t+" n", func(x []uint64) uint64 {
			return wrapped(new(big.Int).Quo(value(x[0]), value(x[1])), width)
		})
		add("rem."+t, t+" "+t+" n", func(x []uint64) uint64 {
			return wrapped(new(big.Int).Rem(value(x[0]), value(x[1])), width)
		})
		three := t + " " + t + " " + t + " " + t
		add("mad.lo."+t, three, func(x []uint64) uint64 {
			return wrapped(new(big.Int).Add(new(big.Int).Mul(value(x[0]), value(x[1])), value(x[2])), width)
		})
		add("mad.hi."+t, three, func(x []uint64) uint64 {
			return wrapped(new(big.Int).Add(high(new(big.Int), value(x[0]), value(x[1])), value(x[2])), width)
		})
		if double != "" {
			add("mul.wide."+t, double+" "+t+" "+t, func(x []uint64) uint64 {
				return wrapped(new(big.Int).Mul(value(x[0]), value(x[1])), 2*width)
			})
			add("mad.wide."+t, double+" "+t+" "+t+" "+double, func(x []uint64) uint64 {
				return wrapped(new(big.Int).Add(new(big.Int).Mul(value(x[0]), value(x[1])), integerOf(double,
					x[2])), 2*width)
			})
		}
		if t[0] == 's' {
			add("neg."+t, t+" "+t, func(x []uint64) uint64 { return wrapped(new(big.Int).Neg(value(x[0])), width) })
			add("abs."+t, t+" "+t, func(x []uint64) uint64 { return wrapped(new(big.Int).Abs(value(x[0])), width) })
		}
		add("shr."+t, t+" "+t+" u32", func(x []uint64) uint64 {
			return wrapped(new(big.Int).Rsh(value(x[0]), uint(x[1])), width)
		})
		if width >= 32 {
			add("bfe."+t, t+" "+t+" u32 u32", func(x []uint64) uint64 { return slowExtract(t, x[0], x[1], x[2]) })
		}
		for _, c := range strings.Fields("eq ne lt le gt ge") {
			compare := func(x []uint64) uint64 { return truth(ordering(c, value(x[0]).Cmp(value(x[1])))) }
			add("setp."+c+"."+t, "p "+t+" "+t, compare)
			for _, combine := range []string{"and", "or", "xor"} {
				add("setp."+c+"."+combine+"."+t, "p "+t+" "+t+" p", func(x []uint64) uint64 {
					return map[string]uint64{"and": compare(x) & x[2], "or": compare(x) | x[2],
						"xor": compare(x) ^ x[2]}[combine]
				})
			}
			if c := map[string]string{"lt": "lo", "le": "ls", "gt": "hi", "ge": "hs"}[c]; c != "" && t[0] == 'u' {
				add("setp."+c+"."+t, "p "+t+" "+t, compare)
			}
		}
	}
	for _, t := range strings.Fields("b16 b32 b64") {
		width := widthOf(t)
		two, three := t+" "+t+" "+t, t+" "+t+" "+t+" "+t
		add("and."+t, two, func(x []uint64) uint64 { return x[0] & x[1] })
		add("or."+t, two, func(x []uint64) uint64 { return x[0] | x[1] })
		add("xor."+t, two, func(x []uint64) uint64 { return x[0] ^ x[1] })
		add("not."+t, t+" "+t, func(x []uint64) uint64 { return mask(width) - x[0] })
		add("cnot."+t, t+" "+t, func(x []uint64) uint64 { return truth(x[0] == 0) })
		add("shl."+t, t+" "+t+" u32", func(x []uint64) uint64 {
			return wrapped(new(big.Int).Lsh(new(big.Int).SetUint64(x[0]), uint(min(x[1], 100))), width)
		})
		add("shr."+t, t+" "+t+" u32", func(x []uint64) uint64 {
			return new(big.Int).Rsh(new(big.Int).SetUint64(x[0]), uint(x[1])).Uint64()
		})
		add("selp."+t, two+" p", func(x []uint64) uint64 { return x[1-x[2]] })
		add("mov."+t, t+" "+t, func(x []uint64) uint64 { return x[0] })
		add("setp.eq."+t, "p "+t+" "+t, func(x []uint64) uint64 { return truth(x[0] == x[1]) })
		add("setp.ne."+t, "p "+t+" "+t, func(x []uint64) uint64 { return truth(x[0] != x[1]) })
		add("slct."+t+".s32", three[:8]+t+" s32", func(x []uint64) uint64 { return x[x[2]>>31&1] })
		if width == 16 {
			continue
		}
		digits := func(x uint64) string { return fmt.Sprintf("%0*b", width, x) }
		add("popc."+t, "u32 "+t, func(x []uint64) uint64 { return uint64(strings.Count(digits(x[0]), "1")) })
		add("clz."+t, "u32 "+t, func(x []uint64) uint64 { return uint64(strings.Index(digits(x[0])+"1", "1")) })
		add("brev."+t, t+" "+t, func(x []uint64) uint64 {
			b := []byte(digits(x[0]))
			slices.Reverse(b)
			v, _ := new(big.Int).SetString(string(b), 2)
			return v.Uint64()
		})
		add("bfi."+t, two+" u32 u32", func(x []uint64) uint64 {
			result := x[1]
			for i := range x[3] & 255 {
				if at := x[2]&255 + i; at < uint64(width) {
					bit := uint64(0)
					if i < 64 {
						bit = x[0] >> i & 1
					}
					result = result&^(1<<at) | bit<<at
				}
			}
			return result
		})
	}
	add("prmt.b32", "b32 b32 b32 b32", func(x []uint64) uint64 {
		var b [8]byte
		for i := range 4 {
			b[i], b[i+4] = byte(x[0]>>(8*i)), byte(x[1]>>(8*i))
		}
		result := uint64(0)
		for i := range 4 {
			pick := x[2] >> (4 * i) & 15
			v := b[pick&7]
			if pick >= 8 {
				v = byte(int8(v) >> 7)
			}
			result |= uint64(v) << (8 * i)
		}
		return result
	})
	for _, wrap := range []bool{true, false} {
		name, amount := ".clamp.b32", func(x uint64) int { return int(min(x, 32)) }
		if wrap {
			name, amount = ".wrap.b32", func(x uint64) int { return int(x % 32) }
		}
		add("shf.l"+name, "b32 b32 b32 u32", func(x []uint64) uint64 {
			n := amount(x[2])
			return x[1]<<n&mask(32) | x[0]>>(32-n)
		})
		add("shf.r"+name, "b32 b32 b32 u32", func(x []uint64) uint64 {
			n := amount(x[2])
			return x[0]>>n | x[1]<<(32-n)&mask(32)
		})
	}
	for _, op := range []string{"and", "or", "xor"} {
		add(op+".pred", "p p p", func(x []uint64) uint64 {
			return map[string]uint64{"and": x[0] & x[1], "or": x[0] | x[1], "xor": x[0] ^ x[1]}[op]
		})
	}
	add("not.pred", "p p", func(x []uint64) uint64 { return 1 - x[0] })
	add("mov.pred", "p p", func(x []uint64) uint64 { return x[0] })
	add("slct.f32.f32", "f32 f32 f32 f32", func(x []uint64) uint64 {
		return x[truth(!(math.Float32frombits(uint32(x[2])) >= 0))]
	})
	for _, t := range []string{"f32", "f64"} {
		all = append(all, floatForms(t)...)
	}
	return all
}

func ordering(c string, order int) bool {
	return map[string]bool{"eq": order == 0, "ne": order != 0, "lt": order < 0, "le": order <= 0, "gt": order > 0,
		"ge": order >= 0}[c]
}

// slowExtract is bfe, bit by bit, as PTX's document has it.
func slowExtract(t string, a, position, length uint64) uint64 {
	width := uint64(widthOf(t))
	position, length = position&255, length&255
	sign := uint64(0)
	if t[0] == 's' && length > 0 {
		sign = a >> min(position+length-1, width-1) & 1
	}
	result := uint64(0)
	for i := range width {
		bit := sign
		if i < length && position+i < width {
			bit = a >> (position + i) & 1
		}
		result |= bit << i
	}
	return result
}

func floatForms(t string) []form {
	var all []form
	size := uint8(widthOf(t) / 8)
	value := func(x uint64) float64 { return widen(x, size) }
	// result rounds what exact makes of finite operands; special says what others give
	result := func(x []uint64, exact func(v []*big.Float) *big.Float, special func(v []float64) float64) uint64 {
		var v []float64
		var b []*big.Float
		finite := true
		for _, x := range x {
			v = append(v, value(x))
			if last := v[len(v)-1]; last-last == 0 {
				b = append(b, bigOf(last))
			} else {
				finite = false
			}
		}
		if finite {
			if e := exact(b); e != nil && e.Sign() != 0 {
				return narrow(exactly(e, size, nearest), size, nearest)
			}
		}
		return narrow(special(v), size, nearest)
	}
	two, three := t+" "+t+" "+t, t+" "+t+" "+t+" "+t
	add := func(text, operands string, slow func(x []uint64) uint64) {
		all = append(all, form{text, operands, slow})
	}
	add("add.rn."+t, two, func(x []uint64) uint64 {
		return result(x, func(v []*big.Float) *big.Float { return new(big.Float).Add(v[0], v[1]) },
			func(v []float64) float64 { return v[0] + v[1] })
	})
	add("sub.rn."+t, two, func(x []uint64) uint64 {
		return result(x, func(v []*big.Float) *big.Float { return new(big.Float).Sub(v[0], v[1]) },
			func(v []float64) float64 { return v[0] - v[1] })
	})
	add("mul.rn."+t, two, func(x []uint64) uint64 {
		return result(x, func(v []*big.Float) *big.Float { return new(big.Float).Mul(v[0], v[1]) },
			func(v []float64) float64 { return v[0] * v[1] })
	})
	add("fma.rn."+t, three, func(x []uint64) uint64 {
		return result(x, func(v []*big.Float) *big.Float {
			return new(big.Float).Add(new(big.Float).Mul(v[0], v[1]),
				v[2])
		},
			func(v []float64) float64 { return math.FMA(v[0], v[1], v[2]) })
	})
	quotient := func(v []*big.Float) *big.Float {
		if v[1].Sign() == 0 {
			return nil
		}
		return rough().Quo(v[0], v[1])
	}
	add("div.rn."+t, two, func(x []uint64) uint64 {
		return result(x, quotient, func(v []float64) float64 { return v[0] / v[1] })
	})
	one := narrow(1, size, nearest)
	add("rcp.rn."+t, t+" "+t, func(x []uint64) uint64 {
		return result([]uint64{one, x[0]}, quotient, func(v []float64) float64 { return v[0] / v[1] })
	})
	add("sqrt.rn."+t, t+" "+t, func(x []uint64) uint64 {
		return result(x, func(v []*big.Float) *big.Float {
			if v[0].Sign() < 0 {
				return nil
			}
			return rough().Sqrt(v[0])
		}, func(v []float64) float64 { return math.Sqrt(v[0]) })
	})
	sign := uint64(1) << (8*size - 1)
	add("neg."+t, t+" "+t, func(x []uint64) uint64 { return (x[0] + sign) & mask(8*int(size)) })
	add("abs."+t, t+" "+t, func(x []uint64) uint64 { return x[0] % sign })
	add("copysign."+t, two, func(x []uint64) uint64 { return x[0]/sign*sign | x[1]%sign })
	pick := func(x []uint64, least bool) uint64 {
		a, b := value(x[0]), value(x[1])
		nan := formatOf(size).nan
		switch {
		case a != a && b != b:
			return nan
		case a != a:
			return x[1]
		case b != b:
			return x[0]
		case a == b:
			if math.Signbit(a) == least {
				return x[0]
			}
			return x[1]
		case a < b == least:
			return x[0]
		}
		return x[1]
	}
	add("min."+t, two, func(x []uint64) uint64 { return pick(x, true) })
	add("max."+t, two, func(x []uint64) uint64 { return pick(x, false) })
	for _, c := range strings.Fields("eq ne lt le gt ge num nan equ neu ltu leu gtu geu") {
		add("setp."+c+"."+t, "p "+t+" "+t, func(x []uint64) uint64 {
			a, b := value(x[0]), value(x[1])
			unordered := a != a || b != b
			switch {
			case c == "num" || c == "nan":
				return truth(unordered == (c == "nan"))
			case unordered:
				return truth(len(c) == 3)
			}
			order := 0
			if a < b {
				order = -1
			} else if a > b {
				order = 1
			}
			return truth(ordering(c[:2], order))
		})
	}
	exponent := func(x uint64) uint64 { return x % sign >> (formatOf(size).precision - 1) }
	infinite := uint64(2*formatOf(size).most + 1)
	fraction := func(x uint64) uint64 { return x % (1 << (formatOf(size).precision - 1)) }
	for name, test := range map[string]func(x uint64) bool{
		"finite":     func(x uint64) bool { return exponent(x) != infinite },
		"infinite":   func(x uint64) bool { return exponent(x) == infinite && fraction(x) == 0 },
		"number":     func(x uint64) bool { return exponent(x) != infinite || fraction(x) == 0 },
		"notanumber": func(x uint64) bool { return exponent(x) == infinite && fraction(x) != 0 },
		"normal":     func(x uint64) bool { return exponent(x) != 0 && exponent(x) != infinite },
		"subnormal":  func(x uint64) bool { return exponent(x) == 0 && fraction(x) != 0 },
	} {
		add("testp."+name+"."+t, "p "+t, func(x []uint64) uint64 { return truth(test(x[0])) })
	}
	add("selp."+t, two+" p", func(x []uint64) uint64 { return x[1-x[2]] })
	add("mov."+t, t+" "+t, func(x []uint64) uint64 { return x[0] })
	slices.SortFunc(all, func(a, b form) int { return strings.Compare(a.text, b.text) })
	return all
}

const perClass = 6 // registers of a class

// classOf returns the name of the registers for operands of a type.
func classOf(t string) string {
	switch {
	case t == "p":
		return "%p"
	case t[0] == 'f':
		return map[string]string{"f32": "%f", "f64": "%fd"}[t]
	}
	return map[int]string{16: "%rs", 32: "%r", 64: "%rd"}[widthOf(t)]
}

var classes = []struct {
	name, typ string
	bytes     int
}{{"%p", "pred", 4}, {"%rs", "b16", 2}, {"%r", "b32", 4}, {"%rd", "b64", 8}, {"%f", "f32", 4}, {"%fd", "f64", 8}}

// TestRandomPrograms compares straight programs of all forms, some of whose instructions are guarded, with the slow
// evaluator.
func TestRandomPrograms(t *testing.T) {
	all := forms()
	t.Logf("%d forms", len(all))
	const programs, length, threads = 40, 60, 64
	used := map[string]bool{}
	for seed := range uint64(programs) {
		r := rand.New(rand.NewPCG(seed, 9))
		var text strings.Builder
		var steps []func(registers map[string]uint64)
		for i := range length {
			f := all[(int(seed)*length+i)*37%len(all)]
			used[f.text] = true
			line, step := instance(r, f)
			text.WriteString(line)
			steps = append(steps, step)
		}
		module, err := Parse(aroundRandom(text.String()))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		m := &memory{}
		var inputs, outputs []byte
		for range threads {
			registers := map[string]uint64{}
			for _, c := range classes {
				for i := range perClass {
					x := someBits(r, typ{untyped, uint8(c.bytes)})
					if c.name[1] == 'f' {
						x = someBits(r, typ{float, uint8(c.bytes)})
					} else if c.name == "%p" {
						x &= 1
					}
					registers[fmt.Sprintf("%s%d", c.name, i)] = x
					inputs = append(inputs, bytesOf(x)...)
				}
			}
			for _, step := range steps {
				step(registers)
			}
			for _, c := range classes {
				for i := range perClass {
					outputs = append(outputs, bytesOf(registers[fmt.Sprintf("%s%d", c.name, i)])...)
				}
			}
		}
		in, out := m.add(inputs), m.add(make([]byte, len(outputs)))
		if _, err := module.Kernel("main").Run(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{threads, 1, 1},
			Args: []uint64{in, out}, Seed: seed, Memory: m}); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text.String())
		}
		got := m.bytes(out)
		for i := 0; i < len(outputs); i += 8 {
			if g, w := peek(got[i:], 8), peek(outputs[i:], 8); g != w {
				n := i / 8 % (len(classes) * perClass)
				t.Fatalf("seed %d: %s%d of thread %d is %#x, want %#x\n%s", seed, classes[n/perClass].name, n%perClass,
					i/8/(len(classes)*perClass), g, w, text.String())
			}
		}
	}
	if len(used) != len(all) {
		t.Errorf("%d of %d forms were used", len(used), len(all))
	}
}

// instance draws operands for a form, and a guard for some; it returns the line and what it does.
func instance(r *rand.Rand, f form) (string, func(registers map[string]uint64)) {
	types := strings.Fields(f.operands)
	names := make([]string, len(types))
	numbers := make([]uint64, len(types))
	for i, t := range types {
		width := 0
		if t == "n" {
			width = widthOf(types[0])
		} else if t != "p" && t[0] != 'f' && i > 0 && r.IntN(6) == 0 {
			width = widthOf(t)
		}
		if width == 0 {
			names[i] = fmt.Sprintf("%s%d", classOf(t), r.IntN(perClass))
			continue
		}
		numbers[i] = uint64(r.IntN(9)+1) << r.IntN(width-4)
		names[i] = fmt.Sprint(numbers[i])
		if r.IntN(4) == 0 {
			numbers[i] = -numbers[i] & mask(width)
			names[i] = "-" + names[i]
		}
		if r.IntN(4) == 0 && t == "u32" {
			numbers[i] = uint64(r.IntN(70)) // an amount
			names[i] = fmt.Sprint(numbers[i])
		}
	}
	line := f.text + " " + strings.Join(names, ", ") + ";\n"
	guard, not := "", uint64(0)
	if r.IntN(5) == 0 {
		guard = fmt.Sprintf("%%p%d", r.IntN(perClass))
		if not = uint64(r.IntN(2)); not == 1 {
			line = "@!" + guard + " " + line
		} else {
			line = "@" + guard + " " + line
		}
	}
	return line, func(registers map[string]uint64) {
		if guard != "" && registers[guard] == not {
			return
		}
		var x []uint64
		for i := range types[1:] {
			if names[i+1][0] == '%' {
				x = append(x, registers[names[i+1]])
			} else {
				x = append(x, numbers[i+1])
			}
		}
		registers[names[0]] = f.slow(x)
	}
}

// aroundRandom loads all registers from the memory of the thread, and stores them.
func aroundRandom(body string) string {
	var declare, load, store strings.Builder
	at := 0
	for _, c := range classes {
		fmt.Fprintf(&declare, ".reg .%s %s<%d>;\n", c.typ, c.name, perClass)
		for i := range perClass {
			switch c.name {
			case "%p":
				fmt.Fprintf(&load, "ld.global.u32 %%t, [%%in+%d]; setp.ne.u32 %%p%d, %%t, 0;\n", at, i)
				fmt.Fprintf(&store, "selp.u64 %%tt, 1, 0, %%p%d; st.global.u64 [%%out+%d], %%tt;\n", i, at)
			case "%rd", "%fd":
				fmt.Fprintf(&load, "ld.global.%s %s%d, [%%in+%d];\n", c.typ, c.name, i, at)
				fmt.Fprintf(&store, "st.global.%s [%%out+%d], %s%d;\n", c.typ, at, c.name, i)
			default:
				fmt.Fprintf(&load, "ld.global.%s %s%d, [%%in+%d];\n", c.typ, c.name, i, at)
				fmt.Fprintf(&store, "st.global.%s [%%out+%d], %s%d;\n", c.typ, at, c.name, i)
			}
			at += 8
		}
	}
	return fmt.Sprintf(`.version 6.0
.target sm_60
.address_size 64
.visible .entry main(.param .u64 in, .param .u64 out)
{
%s.reg .b32 %%t; .reg .b64 %%tt; .reg .b64 %%in; .reg .b64 %%out; .reg .b64 %%at;
mov.u32 %%t, %%tid.x; mul.wide.u32 %%at, %%t, %d;
ld.param.u64 %%in, [in]; add.s64 %%in, %%in, %%at;
ld.param.u64 %%out, [out]; add.s64 %%out, %%out, %%at;
%s%s%sret;
}`, declare.String(), at, load.String(), body, store.String())
}
