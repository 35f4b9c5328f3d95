package weights

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
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
		if c.Whole() {
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
