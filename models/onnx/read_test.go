package onnx

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tensile/internal/needs"
)

// What is written has all that was read, fields that nobody knows among it.
func TestWriteKeepsAll(t *testing.T) {
	text := perceptron().Encode()
	m, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if again := m.Encode(); !bytes.Equal(again, text) {
		t.Errorf("written again: %d bytes, want the same %d", len(again), len(text))
	}
	if len(m.rest) == 0 || len(m.Graph.rest) == 0 {
		t.Error("unknown fields are lost")
	}
	if err := m.check(); err != nil {
		t.Error(err)
	}
}

// Elements in typed fields are those in raw bytes.
func TestTypedElements(t *testing.T) {
	for _, c := range []struct {
		name string
		text []byte
		want Tensor
	}{
		{"floats", putBytes(putInt(putInts(nil, 1, []int64{2}), 2, int64(Float32)), 4,
			[]byte{0, 0, 128, 63, 0, 0, 0, 64}), floats("", []float32{1, 2}, 2)},
		{"int64", putInts(putInt(putInts(nil, 1, []int64{2}), 2, int64(Int64)), 7, []int64{-1, 5}), whole("", -1, 5)},
		{"int8", putInts(putInt(putInts(nil, 1, []int64{2}), 2, int64(Int8)), 5, []int64{-1, 5}),
			Tensor{Type: Int8, Dims: []int64{2}, Raw: []byte{255, 5}}},
	} {
		var got Tensor
		if err := got.decode(c.text); err != nil || !bytes.Equal(got.Raw, c.want.Raw) {
			t.Errorf("%s: %v %v, want %v", c.name, got.Raw, err, c.want.Raw)
		}
	}
	small := Tensor{Type: Int8, Dims: []int64{2}, Raw: []byte{255, 5}}
	if v, err := small.Ints(); err != nil || v[0] != -1 || v[1] != 5 {
		t.Errorf("int8: %v %v", v, err)
	}
	halves := Tensor{Type: Float16, Dims: []int64{3}, Raw: []byte{0, 0x3c, 0, 0xc0, 1, 0}}
	if v, err := halves.Floats(); err != nil || v[0] != 1 || v[1] != -2 || v[2] != 1.0/(1<<24) {
		t.Errorf("float16: %v %v", v, err)
	}
}

// What breaks a rule is one line that names the place.
func TestHostile(t *testing.T) {
	change := func(of func(m *Model)) []byte {
		m := perceptron()
		of(m)
		return m.Encode()
	}
	whole := perceptron().Encode()
	for _, c := range []struct {
		what string
		text []byte
		want string
	}{
		{"nothing", nil, "it has no graph"},
		{"text", []byte("not a model"), "no ONNX model"},
		{"half", whole[:len(whole)/2], "no ONNX model, or a damaged one"},
		{"cycle", change(func(m *Model) { m.Graph.Nodes[0].Inputs[0] = "r" }), "waits for itself"},
		{"missing", change(func(m *Model) { m.Graph.Initializers = m.Graph.Initializers[1:] }),
			`node "Gemm_h" (Gemm) reads "fc1.weight", which nothing makes`},
		{"twice", change(func(m *Model) { m.Graph.Nodes[1].Outputs[0] = "h" }), "which something else makes too"},
		{"no output", change(func(m *Model) { m.Graph.Outputs = nil }), "no output"},
		{"strange output", change(func(m *Model) { m.Graph.Outputs[0].kept = putText(nil, 1, "z") }),
			`output "z" is made by nothing`},
		{"huge", change(func(m *Model) { m.Graph.Initializers[0].Dims = []int64{1 << 39, 1 << 39} }),
			"more than 1099511627776 elements"},
		{"negative", change(func(m *Model) { m.Graph.Initializers[0].Dims = []int64{-5, -6} }), "negative extent"},
		{"short", change(func(m *Model) { m.Graph.Initializers[0].Raw = m.Graph.Initializers[0].Raw[1:] }),
			`tensor "fc1.weight": float of shape [5 6] takes 120 bytes, and the file has 119`},
		{"old", change(func(m *Model) { m.Opsets[0].Version = 6 }), "operator set 6"},
		{"new", change(func(m *Model) { m.Opsets[0].Version = 29 }), "operator set 29"},
		{"type", change(func(m *Model) { m.Graph.Initializers[0].Type = 17 }), "type 17, which is not read"},
	} {
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := os.WriteFile(path, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(nil, path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path+": ") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one with %q", c.what, err, c.want)
		}
	}
}

// External data is read from the folder of the model, and from nowhere else.
func TestExternalData(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "model")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	data := perceptron().Graph.Initializers[0].Raw
	for path, content := range map[string][]byte{
		filepath.Join(inside, "weights.bin"): append([]byte("head"), data...),
		filepath.Join(inside, "whole.bin"):   data,
		filepath.Join(dir, "secret.bin"):     data,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.bin", filepath.Join(inside, "link.bin")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ location, offset, want string }{
		{"weights.bin", "4", ""},
		{"whole.bin", "0", ""},
		{"weights.bin", "5", "truncated: 120 bytes from 5 on, and the file has 124"},
		{"weights.bin", "-1", "is no number of bytes"},
		{"weights.bin", "9223372036854775807", "truncated"},
		{"../secret.bin", "0", "is not in the folder of the model"},
		{filepath.Join(dir, "secret.bin"), "0", "is not in the folder of the model"},
		{"link.bin", "0", "cannot be opened in the folder of the model"},
		{"none.bin", "0", "cannot be opened in the folder of the model"},
		{".", "0", "no regular file"},
	} {
		m := perceptron()
		w := &m.Graph.Initializers[0]
		w.Raw = nil
		for _, entry := range [][2]string{{"location", c.location}, {"offset", c.offset}} {
			w.rest = putBytes(w.rest, 13, putText(putText(nil, 1, entry[0]), 2, entry[1]))
		}
		w.rest = putInt(w.rest, 14, 1)
		path := filepath.Join(inside, "model.onnx")
		if err := os.WriteFile(path, m.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(nil, path)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c, err)
		case c.want == "" && !bytes.Equal(got.Graph.Initializers[0].Raw, data):
			t.Errorf("%v: other bytes", c)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: error %v", c, err)
		}
	}
}

// What many tensors take of other files together is bounded before any of it is read: a model of a few kilobytes that
// asks for 100 GB, by one file that each of them names or by one that is all hole, is an error and takes no memory.
func TestExternalDataOfMany(t *testing.T) {
	const large = 2 << 30
	dir := t.TempDir()
	for name, size := range map[string]int64{"once.bin": large, "hole.bin": 50 * large} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, name), size); err != nil {
			t.Skipf("needs sparse files: test on a file system that has them: %d bytes: %v", size, err)
		}
	}
	if err := os.Link(filepath.Join(dir, "once.bin"), filepath.Join(dir, "twice.bin")); err != nil {
		t.Skipf("needs hard links: test on a file system that has them: %v", err)
	}
	for _, c := range []struct {
		what string
		at   func(i int) (location string, offset int64)
		want string
	}{
		{"one file for all", func(int) (string, int64) { return "once.bin", 0 },
			`tensor "large1": external data "once.bin": with it tensors take 4294967296 bytes or more of the file's`},
		{"one file by two names", func(i int) (string, int64) { return []string{"once.bin", "twice.bin"}[i%2], 0 },
			`tensor "large1": external data "twice.bin": with it tensors take 4294967296 bytes or more of the file's`},
		{"one file by two paths", func(i int) (string, int64) { return []string{"once.bin", "./once.bin"}[i%2], 0 },
			"with it tensors take 4294967296 bytes or more of the file's"},
		{"holes", func(i int) (string, int64) { return "hole.bin", int64(i) * large },
			`tensor "large16": external data "hole.bin": with it tensors take 36507222016 bytes of other files`},
	} {
		m := perceptron()
		for i := range 50 {
			w := Tensor{Name: fmt.Sprintf("large%d", i), Type: Float32, Dims: []int64{large / 4}}
			location, offset := c.at(i)
			for _, entry := range [][2]string{{"location", location}, {"offset", fmt.Sprint(offset)}} {
				w.rest = putBytes(w.rest, 13, putText(putText(nil, 1, entry[0]), 2, entry[1]))
			}
			w.rest = putInt(w.rest, 14, 1)
			m.Graph.Initializers = append(m.Graph.Initializers, w)
		}
		path := filepath.Join(dir, "model.onnx")
		if err := os.WriteFile(path, m.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(nil, path)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %s", c.what, err, c.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: %d bytes were allocated before it was refused", c.what, n)
		}
	}
}

// A file in any order is ordered; one in order stays as it is.
func TestSorted(t *testing.T) {
	m := perceptron()
	n := m.Graph.Nodes
	n[0], n[2] = n[2], n[0]
	order, err := m.Graph.sorted()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"h", "r", "y"} {
		if got := order[i].Outputs[0]; got != want {
			t.Errorf("node %d makes %s, want %s", i, got, want)
		}
	}
}

// Whole networks of the ONNX project are read and written with the same content.
func TestReadLight(t *testing.T) {
	for _, path := range lightFiles(t) {
		m, err := Read(nil, path)
		if err != nil {
			t.Error(err)
			continue
		}
		again, err := Decode(m.Encode())
		if err != nil || !bytes.Equal(again.Encode(), m.Encode()) {
			t.Errorf("%s: another one when it is written and read: %v", path, err)
		}
	}
}

// A model whose initializers have more bytes than may be is written with those of them that are large in a file beside
// it, and reads to the same.
func TestFiles(t *testing.T) {
	m := perceptron()
	m.Graph.Initializers[0] = floats("fc1.weight", sequence(5*600), 5, 600)
	m.Graph.Initializers[2] = floats("fc2.weight", sequence(3*500), 3, 500)
	if _, beside := m.Files("m.data", 1<<20); beside != nil {
		t.Errorf("a small model has %d parts beside it", len(beside))
	}
	dir := t.TempDir()
	text, beside := m.Files("m.data", 1<<10)
	for name, content := range map[string][]byte{"m.onnx": text, "m.data": bytes.Join(beside, nil)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(text) > 3000 {
		t.Errorf("the model without its tensors has %d bytes", len(text))
	}
	again, err := Read(nil, filepath.Join(dir, "m.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range m.Graph.Initializers {
		if got := again.Graph.Initializers[i]; got.Name != w.Name || !bytes.Equal(got.Raw, w.Raw) {
			t.Errorf("initializer %d is %s of %d bytes, want %s of %d", i, got.Name, len(got.Raw), w.Name, len(w.Raw))
		}
	}
}

func lightFiles(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(needs.Data(t, "onnx/light"), "*.onnx"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no networks: %v", err)
	}
	return paths
}

// Any bytes are refused, or are a model that is written and read to the same bytes; no import of it panics.
func FuzzRead(f *testing.F) {
	f.Add(perceptron().Encode())
	for _, name := range exported {
		text, err := os.ReadFile(filepath.Join("testdata", name+".onnx"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Decode(text)
		if err != nil {
			return
		}
		once := m.Encode()
		again, err := Decode(once)
		if err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
		if !bytes.Equal(again.Encode(), once) {
			t.Error("written twice it differs")
		}
		if m.check() != nil {
			return
		}
		m.separate()
		_, _, _ = Job(m, "fuzz", Training{Batch: 2})
	})
}
