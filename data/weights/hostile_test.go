package weights

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
)

// Small files that claim much make no large allocations.
func TestHostileHeadersAllocateLittle(t *testing.T) {
	const terabyte = 1 << 40
	for name, file := range map[string][]byte{
		"header": append(binary.LittleEndian.AppendUint64(nil, maxHeader), make([]byte, 100)...),
		"tensor": raw(fmt.Sprintf(`{"a":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, terabyte/4, terabyte),
			100),
		"shape": raw(`{"a":{"dtype":"F32","shape":[`+strings.Repeat("1,", 1000)+`1],"data_offsets":[0,4]}}`, 4),
		"depth": raw(`{"a":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`, 0),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(bytes.NewReader(file), int64(len(file)))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(1<<20); got > limit {
			t.Errorf("%s: %d bytes allocated for a file of %d bytes, want at most %d", name, got, len(file), limit)
		}
	}
}

// A reader whose file shrinks while it is read gives an error, not half of a tensor.
func TestReadOfAShrinkingFile(t *testing.T) {
	file := written(t, File{Tensors: []Tensor{{"a", graph.Shape{2}, []float32{1, 2}}}})
	for cut := range file {
		if f, err := Decode(bytes.NewReader(file[:cut]), int64(len(file))); err == nil {
			t.Errorf("%d of %d bytes were read as %v", cut, len(file), f)
		}
	}
}

// What is accepted is sound: it can be written again, and reads back the same.
func FuzzRead(f *testing.F) {
	for _, file := range []File{
		{},
		{Metadata: map[string]string{"a": "b"}},
		{Tensors: []Tensor{{"a", graph.Shape{2, 1}, []float32{1, 2}}, {"b", nil, []float32{3}},
			{"c", graph.Shape{0}, nil}}},
	} {
		f.Add(written(f, file))
	}
	f.Add(raw(`{"b":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"},`+
		`"a":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}`, 8))
	f.Add(raw(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0))
	f.Add(raw(`{"\ud800":{"dtype":"F32","shape":[0,-0],"data_offsets":[0,1e1]}}`, 8))
	f.Fuzz(func(t *testing.T, file []byte) {
		first, err := Decode(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		if len(first.Metadata) == 0 {
			first.Metadata = nil // an empty map is not written
		}
		again := written(t, first)
		second, err := Decode(bytes.NewReader(again), int64(len(again)))
		if err != nil {
			t.Fatalf("%q was accepted, but not written again as %q: %v", file, again, err)
		}
		if diff := cmp.Diff(first, second, bits); diff != "" {
			t.Fatalf("%q read twice (-first +second):\n%s", file, diff)
		}
	})
}
