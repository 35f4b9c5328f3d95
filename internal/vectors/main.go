// Command generate writes the assembly of package vector for AVX2, from the definitions in its Go code.
//
//	go run . -out ../vector_amd64.s -stubs ../stubs_amd64.go -pkg vector
package main

import (
	"fmt"
	"math"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The coefficients are those of exp.go, where their errors stand.
var (
	expQ = []float64{0.5, 0.16666666718997508523, 0.041666666718980846436, 0.0083332984837548860262,
		0.0013888854049614818824, 0.00019899273958649360158, 0.000024859578222625294832}
	tailH = []float64{0.47855319136298055608, -0.097712569195946029576, 0.0007868309197606767581,
		0.038047616590977148648, -0.03025599064792238638, 0.010380203780488425104, 0.00026265412822530705877,
		-0.0014240497897517639353, 0.0001480342598104429546, 0.00021039771037127980994,
		-0.000025839411500126768338, -0.00003453935540915917543, 2.259593998822881455e-6, 4.0805467584630222229e-6}
	erfP = []float64{1.1283791670946767327, -0.37612638889635306771, 0.11283791308604581452,
		-0.026866133235095591563, 0.005223783477189248115, -0.00085426379970872296266, 0.0001195656256820732956,
		-0.000013909340021874598594, 1.0589380641075019183e-6}
)

const magic = 3 << 51 // added to a small number it leaves the nearest integer in the low bits

// known are the constants that were written, by their bits.
var known = map[uint64]Mem{}

// bits is a constant of four equal words of 64 bits.
func bits(b uint64) Mem {
	if m, ok := known[b]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("c%016x", b), 8|16) // RODATA and NOPTR
	for i := range 4 {
		DATA(8*i, U64(b))
	}
	known[b] = m
	return m
}

// wide is a constant of four equal doubles.
func wide(v float64) Mem { return bits(math.Float64bits(v)) }

// narrow is a constant of eight equal floats.
func narrow(v float32) Mem { b := uint64(math.Float32bits(v)); return bits(b<<32 | b) }

// load is a constant in a register.
func load(m Mem) VecVirtual { y := YMM(); VMOVUPD(m, y); return y }

// atMost bounds x from above. The second operand of the instruction, x, stays where it is NaN.
func atMost(x VecVirtual, most float64) { VMINPD(x, load(wide(most)), x) }

func atLeast(x VecVirtual, least float64) { VMAXPD(x, load(wide(least)), x) }

// polynomial is that of x with these coefficients, the lowest power first.
func polynomial(x VecVirtual, c []float64) VecVirtual {
	p := load(wide(c[len(c)-1]))
	for i := len(c) - 2; i >= 0; i-- {
		VMULPD(x, p, p)
		VADDPD(wide(c[i]), p, p)
	}
	return p
}

// exponential splits the exponential of x, which is overwritten: it is s·p + s.
func exponential(x VecVirtual) (s, p VecVirtual) {
	atLeast(x, -700)
	atMost(x, 700)
	s = YMM()
	VMULPD(wide(math.Log2E), x, s)
	VADDPD(wide(magic), s, s)
	k := YMM()
	VSUBPD(wide(magic), s, k)
	VMULPD(wide(math.Ln2), k, k)
	VSUBPD(k, x, x)
	q := polynomial(x, expQ)
	p = YMM()
	VMULPD(x, x, p)
	VMULPD(q, p, p)
	VADDPD(x, p, p)
	VPSLLQ(Imm(52), s, s)
	VPADDQ(bits(math.Float64bits(1)), s, s)
	return s, p
}

// exp is the exponential of x, which is overwritten.
func exp(x VecVirtual) VecVirtual {
	s, p := exponential(x)
	VMULPD(s, p, p)
	VADDPD(s, p, p)
	return p
}

// tail is the upper tail of the normal distribution at w ≥ 0, which is overwritten, and exp(-w²/2).
func tail(w VecVirtual) (q, e VecVirtual) {
	atMost(w, 37)
	t, below := YMM(), YMM()
	VSUBPD(load(wide(3.5)), w, t)
	VADDPD(wide(3.5), w, below)
	VDIVPD(below, t, t)
	q = polynomial(t, tailH)
	VADDPD(wide(1), w, below)
	VDIVPD(below, q, q)
	VMULPD(w, w, w)
	VMULPD(wide(-0.5), w, w)
	e = exp(w)
	VMULPD(e, q, q)
	return q, e
}

// normal is the distribution function of the normal distribution at x, and exp(-x²/2).
func normal(x VecVirtual) (y, e VecVirtual) {
	w := YMM()
	VANDPD(bits(1<<63-1), x, w)
	q, e := tail(w)
	y = load(wide(1))
	VSUBPD(q, y, y)
	VBLENDVPD(x, q, y, y)
	return y, e
}

func main() {
	ConstraintExpr("amd64")

	unary("exp", "the exponentials of n floats, a multiple of 8.", exp)
	unary("sigmoid", "the sigmoids of n floats, a multiple of 8.", func(x VecVirtual) VecVirtual {
		VXORPD(bits(1<<63), x, x)
		e := exp(x)
		VADDPD(wide(1), e, e)
		y := load(wide(1))
		VDIVPD(e, y, y)
		return y
	})
	unary("tanh", "the hyperbolic tangents of n floats, a multiple of 8.", func(x VecVirtual) VecVirtual {
		VADDPD(x, x, x)
		s, p := exponential(x)
		VMULPD(s, p, p)
		VSUBPD(wide(1), s, s)
		VADDPD(s, p, p)
		VADDPD(wide(2), p, s)
		VDIVPD(s, p, p)
		return p
	})
	unary("erf", "the error functions of n floats, a multiple of 8.", func(x VecVirtual) VecVirtual {
		near, w, small := YMM(), YMM(), YMM()
		VMULPD(x, x, near)
		near = polynomial(near, erfP)
		VMULPD(x, near, near)
		VANDPD(bits(1<<63-1), x, w)
		VCMPPD(Imm(1), load(wide(1)), w, small) // less than
		VMULPD(wide(math.Sqrt2), w, w)
		q, _ := tail(w)
		VADDPD(q, q, q)
		far := load(wide(1))
		VSUBPD(q, far, far)
		VANDPD(bits(1<<63), x, x)
		VORPD(x, far, far)
		VBLENDVPD(small, near, far, far)
		return far
	})
	unary("gelu", "x·Φ(x) of n floats, a multiple of 8.", func(x VecVirtual) VecVirtual {
		y, _ := normal(x)
		VMULPD(x, y, y)
		return y
	})
	geluGrad()
	expSum()
	divide()
	largest()
	sums()
	narrowKernels()
	Generate()
}

// loop runs body for every step floats of n, with their offset in bytes in i.
func loop(name string, n Register, step int, body func(i Register)) {
	i, end := GP64(), n
	XORQ(i, i)
	SHLQ(Imm(2), end.(GPVirtual))
	Label("next")
	CMPQ(i, end.(GPVirtual))
	JGE(LabelRef("end"))
	body(i)
	ADDQ(Imm(uint64(4*step)), i)
	JMP(LabelRef("next"))
	Label("end")
}

// end ends a function.
func end() { VZEROUPPER(); RET() }

func address(base, i Register, offset int) Mem {
	return Mem{Base: base, Index: i, Scale: 1, Disp: offset}
}

func text(name, signature, doc string) {
	TEXT(name, 4|1<<9, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
}

func param(name string) Register { return Load(Param(name), GP64()) }

// unary writes a function of one operand, in doubles.
func unary(name, doc string, of func(x VecVirtual) VecVirtual) {
	text(name+"AVX2", "func(y, x *float32, n int)", "writes to y "+doc)
	y, x, n := param("y"), param("x"), param("n")
	loop(name, n, 8, func(i Register) {
		for half := range 2 {
			v, to := YMM(), XMM()
			VCVTPS2PD(address(x, i, 16*half), v)
			VCVTPD2PSY(of(v), to)
			VMOVUPS(to, address(y, i, 16*half))
		}
	})
	end()
}

func geluGrad() {
	text("geluGradAVX2", "func(dx, x, dy *float32, n int)",
		"writes to dx dy·(Φ(x) + x·φ(x)) of n floats, a multiple of 8.")
	dx, x, dy, n := param("dx"), param("x"), param("dy"), param("n")
	loop("geluGrad", n, 8, func(i Register) {
		for half := range 2 {
			v, d, to := YMM(), YMM(), XMM()
			VCVTPS2PD(address(x, i, 16*half), v)
			y, e := normal(v)
			VMULPD(wide(1/math.Sqrt(2*math.Pi)), e, e)
			VMULPD(v, e, e)
			VADDPD(e, y, y)
			VCVTPS2PD(address(dy, i, 16*half), d)
			VMULPD(y, d, d)
			VCVTPD2PSY(d, to)
			VMOVUPS(to, address(dx, i, 16*half))
		}
	})
	end()
}

// strands loads and stores the 16 sums that s points to.
func strands(s Register, store bool, sums []VecVirtual) {
	for i, y := range sums {
		if m := (Mem{Base: s, Disp: 32 * i}); store {
			VMOVUPD(y, m)
		} else {
			VMOVUPD(m, y)
		}
	}
}

func ymms(n int) (all []VecVirtual) {
	for range n {
		all = append(all, YMM())
	}
	return all
}

func expSum() {
	text("expSumAVX2", "func(y, x *float32, n int, factor, top float64, s *[16]float64)",
		"writes to y exp(factor·(x - top)) of n floats, a multiple of 16, and adds them to the strands s.")
	y, x, n, s := param("y"), param("x"), param("n"), param("s")
	factor, top := YMM(), YMM()
	f, err := Param("factor").Resolve()
	if err != nil {
		panic(err)
	}
	t, err := Param("top").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(f.Addr, factor)
	VBROADCASTSD(t.Addr, top)
	loop("expSum", n, 16, func(i Register) {
		for part := range 4 {
			v, to := YMM(), XMM()
			VCVTPS2PD(address(x, i, 16*part), v)
			VSUBPD(top, v, v)
			VMULPD(factor, v, v)
			e := exp(v)
			VCVTPD2PSY(e, to)
			VMOVUPS(to, address(y, i, 16*part))
			sum := Mem{Base: s, Disp: 32 * part}
			VADDPD(sum, e, e)
			VMOVUPD(e, sum)
		}
	})
	end()
}

func divide() {
	text("divideAVX2", "func(y *float32, n int, by float64)", "divides n floats, a multiple of 8, in doubles.")
	y, n := param("y"), param("n")
	by := YMM()
	b, err := Param("by").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(b.Addr, by)
	loop("divide", n, 8, func(i Register) {
		for half := range 2 {
			v, to := YMM(), XMM()
			VCVTPS2PD(address(y, i, 16*half), v)
			VDIVPD(by, v, v)
			VCVTPD2PSY(v, to)
			VMOVUPS(to, address(y, i, 16*half))
		}
	})
	end()
}

func largest() {
	text("largestAVX2", "func(x *float32, n int, most *[8]float32)",
		"raises the strands most to the largest of n floats, a multiple of 8, that are not NaN.")
	x, n, most := param("x"), param("n"), param("most")
	m := YMM()
	VMOVUPS(Mem{Base: most}, m)
	loop("largest", n, 8, func(i Register) {
		v := YMM()
		VMOVUPS(address(x, i, 0), v)
		VMAXPS(m, v, m) // the second operand if one is NaN
	})
	VMOVUPS(m, Mem{Base: most})
	end()
}

func sums() {
	text("sumAVX2", "func(x *float32, n int, s *[16]float64)", "adds n floats, a multiple of 16, to the strands s.")
	x, n, s := param("x"), param("n"), param("s")
	acc := ymms(4)
	strands(s, false, acc)
	loop("sum", n, 16, func(i Register) {
		for part, a := range acc {
			v := YMM()
			VCVTPS2PD(address(x, i, 16*part), v)
			VADDPD(v, a, a)
		}
	})
	strands(s, true, acc)
	end()

	text("sumSquaresAVX2", "func(x *float32, n int, centre float64, s *[16]float64)",
		"adds (x - centre)² of n floats, a multiple of 16, to the strands s.")
	x, n, s = param("x"), param("n"), param("s")
	centre := broadcast("centre")
	acc = ymms(4)
	strands(s, false, acc)
	loop("sumSquares", n, 16, func(i Register) {
		for part, a := range acc {
			v := YMM()
			VCVTPS2PD(address(x, i, 16*part), v)
			VSUBPD(centre, v, v)
			VMULPD(v, v, v)
			VADDPD(v, a, a)
		}
	})
	strands(s, true, acc)
	end()

	text("sumProductsAVX2", "func(x, y *float32, n int, centre float64, s, p *[16]float64)",
		"adds y and (x - centre)·y of n floats, a multiple of 16, to the strands s and p.")
	x, y, n, s := param("x"), param("y"), param("n"), param("s")
	p := param("p")
	centre = broadcast("centre")
	acc, products := ymms(4), ymms(4)
	strands(s, false, acc)
	strands(p, false, products)
	loop("sumProducts", n, 16, func(i Register) {
		for part, a := range acc {
			v, d := YMM(), YMM()
			VCVTPS2PD(address(y, i, 16*part), v)
			VADDPD(v, a, a)
			VCVTPS2PD(address(x, i, 16*part), d)
			VSUBPD(centre, d, d)
			VMULPD(v, d, d)
			VADDPD(d, products[part], products[part])
		}
	})
	strands(s, true, acc)
	strands(p, true, products)
	end()
}

// broadcast is a parameter, a double, in four lanes.
func broadcast(name string) VecVirtual {
	y := YMM()
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(p.Addr, y)
	return y
}

// broadcastNarrow is a parameter, a float, in eight lanes.
func broadcastNarrow(name string) VecVirtual {
	y := YMM()
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(p.Addr, y)
	return y
}

// narrowKernels are those that compute in floats.
func narrowKernels() {
	float := func(name, signature, doc string, constants []string, in []string, out []string,
		of func(c, v []VecVirtual) []VecVirtual) {
		text(name+"AVX2", signature, doc)
		pointers := map[string]Register{}
		for _, p := range append(append([]string{}, in...), out...) {
			if pointers[p] == nil {
				pointers[p] = param(p)
			}
		}
		if slices.Contains(constants, "c") {
			pointers["c"] = param("c")
		}
		n := param("n")
		var c []VecVirtual
		for i, name := range constants {
			if name == "c" {
				y := YMM()
				VBROADCASTSS(Mem{Base: pointers[name], Disp: 4 * i}, y)
				c = append(c, y)
				continue
			}
			c = append(c, broadcastNarrow(name))
		}
		loop(name, n, 8, func(i Register) {
			v := ymms(len(in))
			for k, p := range in {
				VMOVUPS(address(pointers[p], i, 0), v[k])
			}
			for k, y := range of(c, v) {
				VMOVUPS(y, address(pointers[out[k]], i, 0))
			}
		})
		end()
	}
	float("add", "func(y, a, b *float32, n int)", "writes to y a + b of n floats, a multiple of 8.", nil,
		[]string{"a", "b"}, []string{"y"}, func(_, v []VecVirtual) []VecVirtual {
			VADDPS(v[1], v[0], v[0])
			return v[:1]
		})
	float("multiply", "func(y, a, b *float32, n int)", "writes to y a·b of n floats, a multiple of 8.", nil,
		[]string{"a", "b"}, []string{"y"}, func(_, v []VecVirtual) []VecVirtual {
			VMULPS(v[1], v[0], v[0])
			return v[:1]
		})
	float("scale", "func(y, x *float32, n int, factor float32)", "writes to y x·factor of n floats, a multiple of 8.",
		[]string{"factor"}, []string{"x"}, []string{"y"}, func(c, v []VecVirtual) []VecVirtual {
			VMULPS(c[0], v[0], v[0])
			return v[:1]
		})
	float("relu", "func(y, x *float32, n int)", "writes to y max(x, 0) of n floats, a multiple of 8; NaN stays.", nil,
		[]string{"x"}, []string{"y"}, func(_, v []VecVirtual) []VecVirtual {
			zero, mask := YMM(), YMM()
			VXORPS(zero, zero, zero)
			VCMPPS(Imm(0x16), zero, v[0], mask) // not less or equal, quiet
			VANDPS(mask, v[0], v[0])
			return v[:1]
		})
	float("keepPositive", "func(dx, y, dy *float32, n int)",
		"writes to dx dy where y is positive, and 0 elsewhere, of n floats, a multiple of 8.", nil,
		[]string{"y", "dy"}, []string{"dx"}, func(_, v []VecVirtual) []VecVirtual {
			zero, mask := YMM(), YMM()
			VXORPS(zero, zero, zero)
			VCMPPS(Imm(0x1e), zero, v[0], mask) // greater than, quiet
			VANDPS(mask, v[1], v[1])
			return v[1:2]
		})
	float("normalise", "func(y, x *float32, n int, centre, factor, shift float32)",
		"writes to y (x - centre)·factor + shift of n floats, a multiple of 8.",
		[]string{"centre", "factor", "shift"}, []string{"x"}, []string{"y"}, func(c, v []VecVirtual) []VecVirtual {
			VSUBPS(c[0], v[0], v[0])
			VMULPS(c[1], v[0], v[0])
			VADDPS(c[2], v[0], v[0])
			return v[:1]
		})
	float("normaliseGrad", "func(dx, x, dy *float32, n int, c *[4]float32)",
		"writes factor·(dy - shift - (x-centre)·slope) to dx; c is centre, slope, shift, factor.",
		slices.Repeat([]string{"c"}, 4), []string{"x", "dy"}, []string{"dx"},
		func(c, v []VecVirtual) []VecVirtual {
			VSUBPS(c[0], v[0], v[0])
			VMULPS(c[1], v[0], v[0])
			VSUBPS(c[2], v[1], v[1])
			VSUBPS(v[0], v[1], v[1])
			VMULPS(v[1], c[3], v[1])
			return v[1:2]
		})
	float("descend", "func(w, dw *float32, n int, rate float32)",
		"takes rate·dw from w of n floats, a multiple of 8.", []string{"rate"}, []string{"w", "dw"}, []string{"w"},
		func(c, v []VecVirtual) []VecVirtual {
			VMULPS(v[1], c[0], v[1])
			VSUBPS(v[1], v[0], v[0])
			return v[:1]
		})
	float("momentum", "func(w, dw, m *float32, n int, rate, momentum float32)",
		"is SGD with momentum on n floats, a multiple of 8.", []string{"rate", "momentum"}, []string{"w", "dw", "m"},
		[]string{"m", "w"}, func(c, v []VecVirtual) []VecVirtual {
			VMULPS(v[2], c[1], v[2])
			VADDPS(v[1], v[2], v[2])
			VMULPS(v[2], c[0], v[1])
			VSUBPS(v[1], v[0], v[0])
			return []VecVirtual{v[2], v[0]}
		})
	float("adam", "func(w, dw, m, v *float32, n int, c *[7]float32)",
		"is a step of Adam on n floats, a multiple of 8; c is AdamStep.",
		slices.Repeat([]string{"c"}, 7), []string{"w", "dw", "m", "v"},
		[]string{"m", "v", "w"}, func(c, x []VecVirtual) []VecVirtual {
			w, g, m, v := x[0], x[1], x[2], x[3]
			VMULPS(m, c[3], m)
			t := YMM()
			VMULPS(g, c[4], t)
			VADDPS(t, m, m)
			VMULPS(v, c[5], v)
			VMULPS(g, c[6], t)
			VMULPS(g, t, t)
			VADDPS(t, v, v)
			VSQRTPS(v, t)
			VMULPS(c[1], t, t)
			VADDPS(c[2], t, t)
			VMULPS(m, c[0], g)
			VDIVPS(t, g, g)
			VSUBPS(g, w, w)
			return []VecVirtual{m, v, w}
		})
}
