package weights

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
)

// typed has the numbers 1, -2 and the largest or least of each type: the bytes of an element after the other.
var typed = []struct {
	Type
	bytes  string
	floats []float32
	ints   []int64
}{
	{"F32", "\x00\x00\x80\x3f\x00\x00\x00\xc0\xff\xff\x7f\x7f", []float32{1, -2, math.MaxFloat32}, nil},
	{"F64", "\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\xc0\x9a\x99\x99\x99\x99\x99\xb9\x3f",
		[]float32{1, -2, 0.1}, nil},
	{"F16", "\x00\x3c\x00\xc0\xff\x7b\x01\x00", []float32{1, -2, 65504, 1.0 / (1 << 24)}, nil},
	{"BF16", "\x80\x3f\x00\xc0\x20\x41", []float32{1, -2, 10}, nil},
	{"I64", "\x01\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x80", nil,
		[]int64{1, -2, math.MinInt64}},
	{"I32", "\x01\x00\x00\x00\xfe\xff\xff\xff\x00\x00\x00\x80", nil, []int64{1, -2, math.MinInt32}},
	{"I16", "\x01\x00\xfe\xff\x00\x80", nil, []int64{1, -2, math.MinInt16}},
	{"I8", "\x01\xfe\x80", nil, []int64{1, -2, math.MinInt8}},
	{"U64", "\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff", nil, []int64{1, math.MaxInt64}},
	{"U32", "\x01\x00\x00\x00\xff\xff\xff\xff", nil, []int64{1, math.MaxUint32}},
	{"U16", "\x01\x00\xff\xff", nil, []int64{1, math.MaxUint16}},
	{"U8", "\x01\xff", nil, []int64{1, math.MaxUint8}},
	{"BOOL", "\x01\x00", nil, []int64{1, 0}},
}

func TestTypes(t *testing.T) {
	if len(typed) != len(types) {
		t.Errorf("%d types are tried, there are %d", len(typed), len(types))
	}
	for _, c := range typed {
		floats, ints := make([]float32, len(c.floats)), make([]int64, len(c.ints))
		if c.IsInteger() {
			c.Ints(ints, []byte(c.bytes))
		} else {
			c.Floats(floats, []byte(c.bytes))
		}
		if diff := cmp.Diff(append([]float32{}, c.floats...), floats); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Type, diff)
		}
		if diff := cmp.Diff(append([]int64{}, c.ints...), ints); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Type, diff)
		}
		if n := len(c.floats) + len(c.ints); int64(len(c.bytes)) != int64(n)*c.Bytes() {
			t.Errorf("%s has %d bytes an element, %d in %d bytes", c.Type, c.Bytes(), n, len(c.bytes))
		}
	}
}

// Read takes the floats of a file, and Index says where all tensors lie.
func TestReadOfOtherTypes(t *testing.T) {
	file := raw(`{"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},`+
		`"num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[4,12]},`+
		`"b":{"dtype":"BF16","shape":[1,1],"data_offsets":[12,14]}}`, 0)
	start := int64(len(file))
	file = append(file, "\x00\x3c\x00\xc0\x07\x00\x00\x00\x00\x00\x00\x00\x80\x3f"...)
	got, err := Decode(bytes.NewReader(file), int64(len(file)))
	want := []Tensor{{"b", graph.Shape{1, 1}, []float32{1}}, {"h", graph.Shape{2}, []float32{1, -2}}}
	if diff := cmp.Diff(want, got.Tensors); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	places, err := Index(bytes.NewReader(file), int64(len(file)))
	all := []Place{{"b", "BF16", graph.Shape{1, 1}, start + 12}, {"h", "F16", graph.Shape{2}, start},
		{"num_batches_tracked", "I64", graph.Shape{}, start + 4}}
	if diff := cmp.Diff(all, places); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// What is written of each type is read as the same numbers.
func TestAppend(t *testing.T) {
	for _, c := range typed {
		if c.IsInteger() {
			continue
		}
		raw := c.Append(nil, c.floats)
		got := make([]float32, len(c.floats))
		if c.Floats(got, raw); !cmp.Equal(got, c.floats) || int64(len(raw)) != int64(len(got))*c.Bytes() {
			t.Errorf("%s: %v, want %v", c.Type, got, c.floats)
		}
	}
}

// Each pair of neighbours of 16 bits: they are what they are rounded to, what is nearer to one of them becomes that
// one, and the number half way the one whose last bit is zero. Beyond the largest, half is as much as
// between the last two.
func TestRounding(t *testing.T) {
	for _, c := range []struct {
		Type
		infinite uint16
		step     float64 // from the largest number to what would follow
	}{{"F16", 31 << 10, 32}, {"BF16", 255 << 7, math.Ldexp(1, 120)}} {
		wide := func(b uint16) float32 {
			var v [1]float32
			c.Floats(v[:], order.AppendUint16(nil, b))
			return v[0]
		}
		narrow := func(v float32) uint16 { return order.Uint16(c.Append(nil, []float32{v})) }
		for b := uint16(0); b < c.infinite; b++ {
			low := wide(b)
			next := float64(wide(b + 1))
			if b+1 == c.infinite {
				next = float64(low) + c.step
			}
			half := float32((float64(low) + next) / 2) // exact: it has one bit more
			even := b + b&1
			for v, want := range map[float32]uint16{low: b, math.Nextafter32(half, 0): b, half: even,
				math.Nextafter32(half, math.MaxFloat32): b + 1} {
				if b == 0 && v == low {
					continue // not signed below
				}
				if got, negative := narrow(v), narrow(-v); got != want || negative != want|1<<15 {
					t.Fatalf("%s: %v and %v become %#x and %#x, want %#x and its negative", c.Type, v, -v, got,
						negative, want)
				}
			}
		}
		nan := float32(math.NaN())
		hidden := math.Float32frombits(255<<23 | 1) // one whose upper bits are those of an infinite number
		for _, v := range []float32{nan, hidden} {
			if got := wide(narrow(v)); got == got {
				t.Errorf("%s: what is no number becomes %v", c.Type, got)
			}
		}
		if got := narrow(0); got != 0 || narrow(float32(math.Copysign(0, -1))) != 1<<15 {
			t.Errorf("%s: zero becomes %#x", c.Type, got)
		}
		up, down := narrow(float32(math.Inf(1))), narrow(float32(math.Inf(-1)))
		if up != c.infinite || down != c.infinite|1<<15 {
			t.Errorf("%s: infinities become %#x and %#x", c.Type, up, down)
		}
	}
}
