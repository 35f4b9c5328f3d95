package weights

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
)

// bits makes files comparable: NaNs are equal when their bits are.
var bits = cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })

func TestRoundTripKeepsEveryBit(t *testing.T) {
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)),
		math.SmallestNonzeroFloat32, math.MaxFloat32}
	// quiet and signalling NaNs
	for _, pattern := range []uint32{0x7fc00000, 0x7fc00001, 0xffc12345, 0x7f800001, 0xff800001, 0x7fbfffff,
		0xffffffff} {
		special = append(special, math.Float32frombits(pattern))
	}
	random := rand.New(rand.NewPCG(1, 1))
	large := make([]float32, 3*chunkBytes/4+5) // several chunks and a rest
	for i := range large {
		large[i] = math.Float32frombits(random.Uint32())
	}
	for name, f := range map[string]File{
		"nothing":  {},
		"metadata": {Metadata: map[string]string{"": "", "a \"b\"\n": "€ \u2028 </x>"}},
		"all kinds": {Tensors: []Tensor{
			{"", graph.Shape{1}, []float32{1}},
			{"a/ü \x00 \"q\" <>&", graph.Shape{}, []float32{3}},
			{"empty", graph.Shape{3, 0, 2}, []float32{}},
			{"large", graph.Shape{len(large)}, large},
			{"special", graph.Shape{1, len(special), 1}, special},
			{"zzz", graph.Shape{0}, []float32{}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "w.safetensors")
			if err := Write(nil, path, f); err != nil {
				t.Fatal(err)
			}
			got, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(f, got, bits); diff != "" {
				t.Errorf("(-written +read):\n%s", diff)
			}
		})
	}
}

// Files of other writers: data not in the order of names, spaces and newlines, fields in another order, integers only.
func TestReadOfOtherWriters(t *testing.T) {
	file := raw("{ \"b\" : {\"data_offsets\": [0, 8], \"shape\": [2], \"dtype\": "+
		"\"F32\"},\n\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]}, "+
		"\"__metadata__\":{\"format\":\"pt\"}}", 0)
	for _, v := range []float32{1, 2, 3} {
		file = binary.LittleEndian.AppendUint32(file, math.Float32bits(v))
	}
	got, err := Decode(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	want := File{
		Tensors:  []Tensor{{"a", graph.Shape{}, []float32{3}}, {"b", graph.Shape{2}, []float32{1, 2}}},
		Metadata: map[string]string{"format": "pt"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Tensors that share memory are in a file once, and the metadata says under which name; all of their names are there.
func TestLoadAliases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	file := File{Tensors: []Tensor{{"head", graph.Shape{2}, []float32{1, 2}}, {"own", graph.Shape{1}, []float32{3}}},
		Metadata: map[string]string{"format": "pt", "embedding": "head", "own": "head"}}
	if err := Write(nil, path, file); err != nil {
		t.Fatal(err)
	}
	got, err := Load(nil, path)
	if err != nil {
		t.Fatal(err)
	}
	want := []Tensor{{"embedding", graph.Shape{2}, []float32{1, 2}}, file.Tensors[0], file.Tensors[1]}
	if diff := cmp.Diff(want, got.Tensors); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
