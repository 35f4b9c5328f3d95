package ptx

import (
	"math"
	"math/bits"
)

// The results of PTX that are no number: its documents give that of .f32; that of .f64 is what GPUs and x86 make.
const (
	nan32 = 0x7fffffff
	nan64 = 0xfff8 << 48
)

func toF32(x uint64) float32 { return math.Float32frombits(uint32(x)) }
func toF64(x uint64) float64 { return math.Float64frombits(x) }

func fromF32(f float32) uint64 {
	if f != f {
		return nan32
	}
	return uint64(math.Float32bits(f))
}

func fromF64(f float64) uint64 {
	if f != f {
		return nan64
	}
	return math.Float64bits(f)
}

// fma32 is a*b+c, rounded once. The product is exact in float64. Rounding the sum to float64 first does harm only where
// that gives the middle between two float32, or a result so small that float32 has fewer bits for it: then the sum is
// rounded to odd, so that its last bit tells on which side of the middle it was.
func fma32(a, b, c float32) float32 {
	product := float64(a) * float64(b)
	sum := product + float64(c)
	s := math.Float64bits(sum)
	if s&(1<<29-1) != 1<<28 && s<<1 >= (1023-126)<<53 || s<<1 == 0 {
		return float32(sum)
	}
	if s&1 == 0 && s<<1 < 0x7ff<<53 {
		back := sum - product
		rest := (product - (sum - back)) + (float64(c) - back)
		switch {
		case rest == 0:
		case rest > 0 == (sum > 0):
			s++
		default:
			s--
		}
	}
	return float32(math.Float64frombits(s))
}

// lesser is min of PTX: the other operand where one is no number, and -0 is below +0.
func lesser[F float32 | float64](a, b F) F {
	switch {
	case a != a:
		return b
	case b != b || a < b:
		return a
	case a == b && a == 0 && math.Signbit(float64(a)):
		return a
	}
	return b
}

func greater[F float32 | float64](a, b F) F { return -lesser(-a, -b) }

// rounding says which of the two nearest values a result becomes.
type rounding uint8

const (
	nearest rounding = iota // to even where both are as near
	zero
	down
	up
)

var roundings = map[string]rounding{"rn": nearest, "rz": zero, "rm": down, "rp": up}

// format is a binary floating-point format.
type format struct {
	precision int // bits of the significand, the hidden one included
	least     int // exponent of the smallest normal number
	most      int // exponent of the largest
	nan       uint64
}

func formatOf(size uint8) format {
	switch size {
	case 2:
		return format{11, -14, 15, 0x7fff}
	case 4:
		return format{24, -126, 127, nan32}
	}
	return format{53, -1022, 1023, nan64}
}

// round returns significand * 2^exponent, negated if negative, in the format.
func (f format) round(negative bool, significand uint64, exponent int, r rounding) uint64 {
	sign := uint64(0)
	width := f.precision + bits.Len(uint(f.most)) + 1
	if negative {
		sign = 1 << (width - 1)
	}
	if significand == 0 {
		return sign
	}
	shift := bits.LeadingZeros64(significand)
	significand <<= shift
	exponent += 63 - shift // of the first bit
	drop := 64 - f.precision
	if exponent < f.least {
		drop += f.least - exponent
	}
	kept, half, below := uint64(0), false, true
	if drop <= 64 {
		if drop < 64 {
			kept = significand >> drop
		}
		half = significand>>(drop-1)&1 != 0
		below = significand&(1<<(drop-1)-1) != 0
	}
	switch {
	case r == nearest && half && (below || kept&1 != 0),
		(r == up && !negative || r == down && negative) && (half || below):
		kept++
	}
	if exponent >= f.least {
		kept += uint64(exponent-f.least) << (f.precision - 1) // the hidden bit adds one more
	}
	if infinity := uint64(2*f.most+1) << (f.precision - 1); kept >= infinity {
		kept = infinity
		if r == zero || r == up && negative || r == down && !negative {
			kept-- // the largest number
		}
	}
	return sign | kept
}

// widen returns the value of a float of that size as a float64, which holds each exactly.
func widen(x uint64, size uint8) float64 {
	switch size {
	case 4:
		return float64(toF32(x))
	case 8:
		return toF64(x)
	}
	significand, exponent := x&0x3ff, int(x>>10&0x1f)
	value := math.Inf(1)
	switch {
	case exponent == 31 && significand != 0:
		value = math.NaN()
	case exponent == 0:
		value = math.Ldexp(float64(significand), -24)
	case exponent != 31:
		value = math.Ldexp(float64(significand|0x400), exponent-25)
	}
	if x>>15&1 != 0 {
		value = -value
	}
	return value
}

// narrow returns a float64 as a float of that size.
func narrow(v float64, size uint8, r rounding) uint64 {
	f := formatOf(size)
	switch {
	case v != v:
		return f.nan
	case size == 8:
		return math.Float64bits(v)
	case size == 4 && r == nearest:
		return fromF32(float32(v))
	}
	b := math.Float64bits(v)
	significand, exponent := b&(1<<52-1), int(b>>52&0x7ff)
	if exponent == 0x7ff {
		return b>>63<<(8*size-1) | uint64(2*f.most+1)<<(f.precision-1)
	}
	if exponent == 0 {
		exponent++
	} else {
		significand |= 1 << 52
	}
	return f.round(b>>63 != 0, significand, exponent-1075, r)
}

// integral rounds to an integer.
func integral(v float64, r rounding) float64 {
	switch r {
	case nearest:
		return math.RoundToEven(v)
	case zero:
		return math.Trunc(v)
	case down:
		return math.Floor(v)
	}
	return math.Ceil(v)
}

// toInteger returns an integral float64 as an integer of type t: the nearest that it has, 0 for what is no number.
func toInteger(v float64, t typ) uint64 {
	width := 8 * int(t.size)
	if t.class == signed {
		limit := math.Ldexp(1, width-1)
		switch {
		case v != v:
			return 0
		case v >= limit:
			return t.mask() >> 1
		case v < -limit:
			return 1 << (width - 1)
		}
		return uint64(int64(v)) & t.mask()
	}
	switch {
	case !(v > 0):
		return 0
	case v >= math.Ldexp(1, width):
		return t.mask()
	}
	return uint64(v)
}

// conversion returns what cvt does: from and to are types, mode a modifier such as rn or rzi, "" if there is none. It
// is nil if there is no such conversion.
func conversion(to, from typ, mode string, saturate bool) func(uint64) uint64 {
	integerMode := len(mode) == 3 && mode[2] == 'i'
	if integerMode {
		mode = mode[:2]
	}
	r, known := roundings[mode]
	if mode != "" && !known {
		return nil
	}
	switch {
	case to.integer() && from.integer():
		if mode != "" {
			return nil
		}
		if !saturate {
			return func(x uint64) uint64 { return from.extend(x) & to.mask() }
		}
		return func(x uint64) uint64 { return clamp(from.extend(x), from, to) }
	case to.integer() && from.class == float:
		if !integerMode {
			return nil
		}
		return func(x uint64) uint64 { return toInteger(integral(widen(x, from.size), r), to) }
	case to.class == float && from.integer():
		if mode == "" || integerMode {
			return nil
		}
		f := formatOf(to.size)
		return saturating(to, saturate, func(x uint64) uint64 {
			x = from.extend(x)
			if from.class == signed && int64(x) < 0 {
				return f.round(true, -x, 0, r)
			}
			return f.round(false, x, 0, r)
		})
	case to.class == float && from.class == float:
		switch {
		case integerMode && to.size == from.size:
			return saturating(to, saturate, func(x uint64) uint64 {
				return narrow(integral(widen(x, from.size), r), to.size, zero)
			})
		case integerMode || (mode != "") != (to.size < from.size):
			return nil
		}
		return saturating(to, saturate, func(x uint64) uint64 { return narrow(widen(x, from.size), to.size, r) })
	}
	return nil
}

// saturating returns f with results brought to between 0 and 1, if that is wanted.
func saturating(t typ, wanted bool, f func(uint64) uint64) func(uint64) uint64 {
	if !wanted {
		return f
	}
	return func(x uint64) uint64 {
		v := widen(f(x), t.size)
		if !(v > 0) {
			v = 0
		}
		return narrow(min(v, 1), t.size, zero)
	}
}

// clamp returns the integer of type to that is nearest to x, of type from.
func clamp(x uint64, from, to typ) uint64 {
	negative := from.class == signed && int64(x) < 0
	switch {
	case to.class == unsigned && negative:
		return 0
	case to.class == unsigned:
		return min(x, to.mask())
	case negative:
		return uint64(max(int64(x), -1<<(8*int(to.size)-1))) & to.mask()
	}
	return min(x, to.mask()>>1)
}
