package ptx

// class is what the bits of a type mean.
type class uint8

const (
	untyped class = iota
	unsigned
	signed
	float
	predicate
)

// typ is a type of PTX, such as .u32; the zero value is none.
type typ struct {
	class class
	size  uint8 // bytes; of a predicate 1
}

var typeNames = map[string]typ{
	"b8": {untyped, 1}, "b16": {untyped, 2}, "b32": {untyped, 4}, "b64": {untyped, 8},
	"u8": {unsigned, 1}, "u16": {unsigned, 2}, "u32": {unsigned, 4}, "u64": {unsigned, 8},
	"s8": {signed, 1}, "s16": {signed, 2}, "s32": {signed, 4}, "s64": {signed, 8},
	"f16": {float, 2}, "f32": {float, 4}, "f64": {float, 8},
	"pred": {predicate, 1},
}

func (t typ) String() string {
	for name, other := range typeNames {
		if other == t {
			return "." + name
		}
	}
	return "no type"
}

func (t typ) integer() bool { return t.class == unsigned || t.class == signed }

// mask has the bits of the type's size set.
func (t typ) mask() uint64 { return ^uint64(0) >> (64 - 8*uint(t.size)) }

// extend returns the value in the low bits of x, sign-extended if the type is signed, else zero-extended.
func (t typ) extend(x uint64) uint64 {
	shift := 64 - 8*uint(t.size)
	if t.class == signed {
		return uint64(int64(x<<shift) >> shift)
	}
	return x << shift >> shift
}

// takes tells whether an instruction of type t may use a register of type r without a conversion.
func (t typ) takes(r typ) bool {
	if t.class == predicate || r.class == predicate {
		return t.class == r.class
	}
	return t.size == r.size && (t.class == untyped || r.class == untyped || (t.class == float) == (r.class == float))
}
