package ptx

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactly is the slow way to round: value, which is finite, in the format of that size. A zero has the sign of value.
func exactly(value *big.Float, size uint8, r rounding) float64 {
	f := map[uint8]struct {
		precision, least int
		largest          float64
	}{2: {11, -14, 65504}, 4: {24, -126, math.MaxFloat32}, 8: {53, -1022, math.MaxFloat64}}[size]
	if value.Sign() == 0 {
		zero, _ := value.Float64()
		return zero
	}
	unit := max(value.MantExp(nil)-1, f.least) - f.precision + 1
	scaled := new(big.Float).SetMantExp(new(big.Float).Abs(value), -unit)
	whole, _ := scaled.Int(nil)
	rest := new(big.Float).Sub(scaled, new(big.Float).SetInt(whole))
	half := rest.Cmp(big.NewFloat(0.5))
	away := false
	switch r {
	case nearest:
		away = half > 0 || half == 0 && whole.Bit(0) == 1
	case up:
		away = rest.Sign() > 0 && value.Sign() > 0
	case down:
		away = rest.Sign() > 0 && value.Sign() < 0
	}
	if away {
		whole.Add(whole, big.NewInt(1))
	}
	result := new(big.Float).SetMantExp(new(big.Float).SetInt(whole), unit)
	if result.Cmp(big.NewFloat(f.largest)) > 0 {
		result.SetFloat64(f.largest)
		if r == nearest || r == up && value.Sign() > 0 || r == down && value.Sign() < 0 {
			result.SetInf(false)
		}
	}
	rounded, _ := result.Float64()
	return math.Copysign(rounded, float64(value.Sign()))
}

func bigOf(v float64) *big.Float { return new(big.Float).SetPrec(4000).SetFloat64(v) }

// rough is where a quotient or root goes: with enough bits that none of float32 is mistaken for a middle.
func rough() *big.Float { return new(big.Float).SetPrec(200) }

// someFloat32 draws a finite number: any, one with few bits, or one at the borders of the format.
func someFloat32(r *rand.Rand) float32 {
	for {
		b := r.Uint32()
		switch r.IntN(4) {
		case 0:
			b &= ^uint32(0) << r.IntN(24)
		case 1:
			b = b&(1<<31|1<<23-1) | uint32(100+r.IntN(54))<<23
		case 2:
			b &= 1<<31 | 1<<r.IntN(24) - 1 // small
		}
		if v := math.Float32frombits(b); v-v == 0 {
			return v
		}
	}
}

func TestFMA32(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	twice := 0
	for i := range 200_000 {
		a, b, c := someFloat32(r), someFloat32(r), someFloat32(r)
		switch i % 4 {
		case 1: // a product in the middle between two float32, or beside it, and little to add
			a = float32(r.IntN(1<<23)+1<<23) * float32(math.Ldexp(1, r.IntN(60)-100))
			b = []float32{3, 5, 7, -3, 1.5}[r.IntN(5)]
			c = float32(math.Ldexp(float64(r.IntN(3)-1), r.IntN(100)-149))
		case 2: // much cancels
			c = -a * b
			if c-c != 0 {
				c = 1
			}
		case 3: // a result below the normal numbers
			a = float32(math.Ldexp(float64(r.IntN(1<<24)), -100+r.IntN(30)))
			b = float32(math.Ldexp(float64(r.IntN(1<<24)), -90+r.IntN(30)))
			c = math.Float32frombits(uint32(r.IntN(1 << 24)))
		}
		got := fma32(a, b, c)
		exact := new(big.Float).Mul(bigOf(float64(a)), bigOf(float64(b)))
		exact.Add(exact, bigOf(float64(c)))
		want := float32(exactly(exact, 4, nearest))
		if exact.Sign() == 0 { // of the signs of zero, IEEE 754 6.3
			want = float32(float64(a)*float64(b)) + c
		}
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
		if float32(math.FMA(float64(a), float64(b), float64(c))) != want {
			twice++
		}
		d, x, y, z := lanes{}, lanes{uint64(math.Float32bits(a))}, lanes{uint64(math.Float32bits(b))},
			lanes{uint64(math.Float32bits(c))}
		if loops["fma.rn.f32"](&d, &x, &y, &z); d[0] != fromF32(want) {
			t.Fatalf("the loop's fma(%x, %x, %x) = %#x, want %x", a, b, c, d[0], want)
		}
	}
	if twice < 100 {
		t.Errorf("only %d of the cases are hard: rounding twice gives the same in the others", twice)
	}
}

// TestFloat32 compares division, square root and reciprocal with exact results.
func TestFloat32(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	f32 := typ{float, 4}
	divide, root, reciprocal := arithmetic("div.rn", f32), unary("sqrt.rn", f32), unary("rcp.rn", f32)
	for i := range 50_000 {
		a, b := someFloat32(r), someFloat32(r)
		if i%2 == 0 { // a quotient close to the middle between two float32
			q := float64(math.Float32frombits(math.Float32bits(b)&(1<<23-1)|127<<23)) + math.Ldexp(1, -24)
			b = float32(r.IntN(1<<23) + 1<<23)
			a = float32(q * float64(b))
		}
		if b == 0 || a == 0 {
			continue
		}
		quotient := rough().Quo(bigOf(float64(a)), bigOf(float64(b)))
		if got, want := toF32(divide(fromF32(a), fromF32(b))), float32(exactly(quotient, 4, nearest)); got != want {
			t.Fatalf("%x / %x = %x, want %x", a, b, got, want)
		}
		one := rough().Quo(bigOf(1), bigOf(float64(a)))
		if got, want := toF32(reciprocal(fromF32(a))), float32(exactly(one, 4, nearest)); got != want {
			t.Fatalf("1 / %x = %x, want %x", a, got, want)
		}
		a = max(a, -a)
		if i%3 == 0 { // a root close to the middle
			m := float64(r.IntN(1<<23)+1<<23) + 0.5
			a = float32(m * m)
		}
		squared := rough().Sqrt(bigOf(float64(a)))
		if got, want := toF32(root(fromF32(a))), float32(exactly(squared, 4, nearest)); got != want {
			t.Fatalf("the square root of %x is %x, want %x", a, got, want)
		}
	}
}

// TestConversions compares every conversion that there is, in every mode, with exact results.
func TestConversions(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	count := 0
	for toName, to := range typeNames {
		for fromName, from := range typeNames {
			for _, mode := range []string{"", "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"} {
				for _, saturate := range []bool{false, true} {
					f := conversion(to, from, mode, saturate)
					if f == nil {
						continue
					}
					count++
					for range 300 {
						x := someBits(r, from)
						got, want := f(x), converted(x, to, from, mode, saturate)
						if got != want {
							t.Fatalf("cvt.%s.%v.%s.%s of %#x is %#x, want %#x", mode, saturate, toName, fromName, x,
								got, want)
						}
					}
				}
			}
		}
	}
	// 8 integer types among themselves; to and from 3 float types in 4 modes; floats narrower in 4 modes, wider in
	// none, the same in none and 4; all with and without .sat
	if want := 2 * (8*8 + 2*8*3*4 + 3*4 + 3 + 3*5); count != want {
		t.Errorf("%d conversions, want %d", count, want)
	}
}

// someBits draws a value of a type.
func someBits(r *rand.Rand, t typ) uint64 {
	x := r.Uint64()
	if t.class != float {
		return x >> r.IntN(64) & t.mask()
	}
	switch r.IntN(4) {
	case 0:
		return narrow(float64(r.IntN(4000)-2000)/8, t.size, nearest)
	case 1:
		return narrow(math.Ldexp(r.Float64()-0.5, r.IntN(140)-70), t.size, nearest)
	case 2:
		return x << r.IntN(64) & t.mask()
	}
	return x & t.mask()
}

// converted is what conversion computes, in the slow way.
func converted(x uint64, to, from typ, mode string, saturate bool) uint64 {
	r := nearest
	if mode != "" {
		r = roundings[mode[:2]]
	}
	var value *big.Float
	if from.class == float {
		v := widen(x, from.size)
		if v != v || math.IsInf(v, 0) {
			switch {
			case to.class == float && saturate:
				return narrow(map[bool]float64{true: 1}[v > 0], to.size, zero)
			case to.class == float:
				return narrow(v, to.size, zero)
			case v != v:
				return 0
			}
			v = math.Copysign(1e300, v)
		}
		value = bigOf(v)
	} else if value = new(big.Float).SetPrec(4000); from.class == signed {
		value.SetInt64(int64(from.extend(x)))
	} else {
		value.SetUint64(x)
	}
	if len(mode) == 3 || to.class != float {
		negative := value.Signbit()
		value = wholly(value, r)
		if value.Sign() == 0 && negative {
			value.Neg(new(big.Float))
		}
	}
	if to.class == float {
		v := exactly(value, to.size, r)
		if saturate {
			v = min(max(v, 0), 1)
			if v == 0 {
				v = 0
			}
		}
		return narrow(v, to.size, zero)
	}
	whole, _ := value.Int(nil)
	least, most := new(big.Int), new(big.Int).SetUint64(to.mask())
	if to.class == signed {
		most.Rsh(most, 1)
		least.Not(most)
	}
	if saturate || from.class == float {
		if whole.Cmp(least) < 0 {
			whole = least
		} else if whole.Cmp(most) > 0 {
			whole = most
		}
	}
	return new(big.Int).And(whole, new(big.Int).SetUint64(to.mask())).Uint64()
}

// wholly rounds to an integer.
func wholly(v *big.Float, r rounding) *big.Float {
	below, _ := v.Int(nil)
	if new(big.Float).SetInt(below).Cmp(v) > 0 {
		below.Sub(below, big.NewInt(1))
	}
	rest := new(big.Float).Sub(v, new(big.Float).SetPrec(4000).SetInt(below))
	half := rest.Cmp(big.NewFloat(0.5))
	above := false
	switch r {
	case nearest:
		above = half > 0 || half == 0 && below.Bit(0) == 1
	case zero:
		above = rest.Sign() > 0 && v.Sign() < 0
	case up:
		above = rest.Sign() > 0
	}
	if above {
		below.Add(below, big.NewInt(1))
	}
	return new(big.Float).SetPrec(4000).SetInt(below)
}

// TestMinMax has what Go's min and max do otherwise.
func TestMinMax(t *testing.T) {
	nan, zero, minus := float32(math.NaN()), float32(0), float32(math.Copysign(0, -1))
	for _, c := range []struct {
		a, b        float32
		least, most uint32
	}{
		{nan, 3, 0x40400000, 0x40400000},
		{3, nan, 0x40400000, 0x40400000},
		{nan, nan, nan32, nan32},
		{zero, minus, 1 << 31, 0},
		{minus, zero, 1 << 31, 0},
		{minus, minus, 1 << 31, 1 << 31},
		{1, 2, 0x3f800000, 0x40000000},
		{2, 1, 0x3f800000, 0x40000000},
	} {
		for _, size := range []uint8{4, 8} {
			f := typ{float, size}
			a, b := narrow(float64(c.a), size, nearest), narrow(float64(c.b), size, nearest)
			least, most := arithmetic("min", f)(a, b), arithmetic("max", f)(a, b)
			if got := narrow(widen(least, size), 4, nearest); got != uint64(c.least) {
				t.Errorf("min of %d bytes (%v, %v) = %#x, want %#x", size, c.a, c.b, got, c.least)
			}
			if got := narrow(widen(most, size), 4, nearest); got != uint64(c.most) {
				t.Errorf("max of %d bytes (%v, %v) = %#x, want %#x", size, c.a, c.b, got, c.most)
			}
		}
	}
}

// TestNaN holds that every result that is no number is the one of PTX.
func TestNaN(t *testing.T) {
	for _, f := range []typ{{float, 4}, {float, 8}} {
		want := formatOf(f.size).nan
		payload := want ^ 5
		infinity := narrow(math.Inf(1), f.size, nearest)
		for _, op := range []string{"add.rn", "sub.rn", "mul.rn", "div.rn"} {
			if got := arithmetic(op, f)(payload, infinity); got != want {
				t.Errorf("%s of %s gives %#x, want %#x", op, f, got, want)
			}
			if loop := loops[op+f.String()]; loop != nil {
				var d lanes
				if loop(&d, &lanes{payload}, &lanes{infinity}, nil); d[0] != want {
					t.Errorf("the loop of %s%s gives %#x, want %#x", op, f, d[0], want)
				}
			}
		}
		if got := ternary("fma.rn", f)(payload, infinity, infinity); got != want {
			t.Errorf("fma of %s gives %#x, want %#x", f, got, want)
		}
		if got := unary("sqrt.rn", f)(narrow(-1, f.size, nearest)); got != want {
			t.Errorf("sqrt of %s gives %#x, want %#x", f, got, want)
		}
	}
}
