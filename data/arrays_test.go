package data

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/data/weights"
	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
)

// npyFile is an .npy file of a version with this header and content.
func npyFile(version byte, header string, content []byte) []byte {
	head := append([]byte(npyMagic), version, 0)
	if version == 1 {
		head = binary.LittleEndian.AppendUint16(head, uint16(len(header)))
	} else {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(header)))
	}
	return slices.Concat(head, []byte(header), content)
}

func dict(descr, order, shape string) string {
	return fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s, }  \n", descr, order, shape)
}

// npz is an archive of the files of arrays.
func npz(t testing.TB, method uint16, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, content := range files {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		if err == nil {
			_, err = f.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestNPYHeaders(t *testing.T) {
	content := []byte{1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0}
	for _, c := range []struct {
		file  []byte
		want  string // of an error; "": there is none
		kind  weights.Type
		shape graph.Shape
	}{
		{npyFile(1, dict("'<i2'", "False", "(3, 2)"), content), "", "I16", graph.Shape{3, 2}},
		{npyFile(2, dict(`"=u4"`, "False", "(3L,)"), content), "", "U32", graph.Shape{3}},
		{npyFile(3, "{'shape':( 12 , ),'descr':'|b1','fortran_order':True}", content), "", "BOOL", graph.Shape{12}},
		{npyFile(1, dict("'>i1'", "False", "(0, 5)"), nil), "", "I8", graph.Shape{0, 5}},
		{npyFile(1, dict("'<f8'", "False", "()"), content[:8]), "", "F64", graph.Shape{}},
		{npyFile(1, dict("'>i2'", "False", "(6,)"), content), "big-endian order (>i2): convert it by astype", "", nil},
		{npyFile(1, dict("'<i2'", "True", "(3, 2)"), content), "Fortran order: save numpy.ascontiguousarray", "", nil},
		{npyFile(1, dict("'|O'", "False", "(3,)"), content), "Python objects", "", nil},
		{npyFile(1, dict("'<U3'", "False", "(1,)"), content), `elements of type "<U3", want floats`, "", nil},
		{npyFile(1, dict("'<c8'", "False", "(1,)"), content[:8]), `elements of type "<c8"`, "", nil},
		{npyFile(1, dict("''", "False", "(1,)"), content[:8]), `elements of type ""`, "", nil},
		{npyFile(1, dict("[('a', '<i2')]", "False", "(6,)"), content), "several fields", "", nil},
		{npyFile(1, dict("'<i2'", "False", "(3, 3)"), content), "has 12 bytes of elements, want 18", "", nil},
		{npyFile(1, dict("'<i2'", "False", "(5,)"), content), "has 12 bytes of elements, want 10", "", nil},
		{npyFile(1, dict("'<i2'", "False", "(4000000000, 4000000000)"), content), "truncated", "", nil},
		{npyFile(1, dict("'<i2'", "False", "(9999999999999999999999,)"), content), "header is damaged", "", nil},
		{npyFile(1, dict("'<i2'", "False", "(6)"), content), "header is damaged", "", nil},
		{npyFile(1, dict("'<i2'", "False", "(-6,)"), content), "header is damaged", "", nil},
		{npyFile(1, dict("'<i2'", "False", "("+strings.Repeat("1,", 33)+")"), content), "header is damaged", "", nil},
		{npyFile(1, dict("'<i2'", "0", "(6,)"), content), `header is damaged before "0, 'shape'`, "", nil},
		{npyFile(1, "{'descr': '<i2', 'shape': (6,)}", content), "header is damaged", "", nil},
		{npyFile(1, dict("'<i2'", "False", "(6,)")+"x", content), "header is damaged", "", nil},
		{npyFile(1, "", content), "header is damaged", "", nil},
		{npyFile(4, dict("'<i2'", "False", "(6,)"), content), "version 4", "", nil},
		{npyFile(2, strings.Repeat(" ", npyHeader+1), content), "claims a header of 65537 bytes", "", nil},
		{npyFile(1, dict("'<i2'", "False", "(6,)"), nil)[:40], "claims a header of", "", nil},
		{content, "is no .npy array", "", nil},
		{nil, "is no .npy array", "", nil},
	} {
		kind, shape, begin, err := readNPY(bytes.NewReader(c.file), int64(len(c.file)))
		switch {
		case c.want == "" && (err != nil || kind != c.kind || !slices.Equal(shape, c.shape) ||
			begin != int64(len(c.file)-shape.Elements()*int(kind.Bytes()))):
			t.Errorf("%q: %s of %v from byte %d, %v", c.file, kind, shape, begin, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v, want an error with %q", c.file, err, c.want)
		}
	}
}

// What is accepted has a known type, and as many bytes as its shape says.
func FuzzNPY(f *testing.F) {
	f.Add(npyFile(1, dict("'<i2'", "False", "(3, 2)"), make([]byte, 12)))
	f.Add(npyFile(2, dict(`"=u4"`, "True", "(3L,)"), make([]byte, 12)))
	f.Add(npyFile(3, dict("'|O'", "False", "()"), nil))
	f.Add(npyFile(1, dict("[('a', '<i2')]", "False", "(4294967296, 4294967296, 0)"), nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		kind, shape, begin, err := readNPY(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: the error has several lines: %v", file, err)
			}
			return
		}
		want := kind.Bytes()
		for _, extent := range shape {
			want *= int64(extent)
		}
		if kind.Bytes() == 0 || want != int64(len(file))-begin {
			t.Fatalf("%q was accepted as %s of %v from byte %d", file, kind, shape, begin)
		}
	})
}

// What is accepted lies within the file, and can be read.
func FuzzNPZ(f *testing.F) {
	f.Add(npz(f, zip.Store, map[string][]byte{"x": npyFile(1, dict("'<i2'", "False", "(3, 2)"), make([]byte, 12))}))
	f.Add(npz(f, zip.Deflate, map[string][]byte{"x": npyFile(1, dict("'<f4'", "False", "(0,)"), nil)}))
	f.Add([]byte("PK\x05\x06"))
	f.Fuzz(func(t *testing.T, file []byte) {
		all, err := indexNPZ(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		a := &Arrays{file: bytes.NewReader(file), arrays: all}
		for _, x := range all {
			if x.Type.IsInteger() && x.Examples()*x.Size() > 0 {
				_, _, err = a.Range(x)
			} else if x.Examples() > 0 {
				err = a.Fill(x, 0, 1, make([]byte, x.bytes()))
			}
			if err != nil {
				t.Fatalf("%q: %+v was accepted: %v", file, x, err)
			}
		}
	})
}

// threes is a file of arrays of seven examples: each of x shows its number three times, each of y once.
func threes(t *testing.T, path string) *Arrays {
	t.Helper()
	var x weights.Tensor
	var y []byte
	x.Name, x.Shape = "x", graph.Shape{7, 3}
	for i := range 7 {
		for range 3 {
			x.Data = append(x.Data, float32(i))
		}
		y = append(y, byte(i))
	}
	file := weights.File{Tensors: []weights.Tensor{x}}
	if isNPZ(path) {
		var floats bytes.Buffer
		binary.Write(&floats, binary.LittleEndian, x.Data)
		writeFile(t, path, npz(t, zip.Store, map[string][]byte{
			"x": npyFile(1, dict("'<f4'", "False", "(7, 3)"), floats.Bytes()),
			"y": npyFile(1, dict("'|u1'", "False", "(7,)"), y)}))
	} else if err := weights.Write(nil, path, file); err != nil {
		t.Fatal(err)
	}
	a, err := OpenArrays(nil, path, 5)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Each example comes once an epoch, in an order that the seed decides and that all arrays have, and which does not
// depend on the batch.
func TestArraysAreDrawnInOneOrder(t *testing.T) {
	dir := t.TempDir()
	one, other := threes(t, filepath.Join(dir, "a.npz")), threes(t, filepath.Join(dir, "a.SafeTensors"))
	x, _ := one.Find("x")
	y, _ := one.Find("y")
	var numbers []int
	for i := range 14 {
		raw, label := make([]byte, 12), make([]byte, 1)
		if err := one.Fill(x, i, 1, raw); err != nil {
			t.Fatal(err)
		}
		if err := one.Fill(y, i, 1, label); err != nil {
			t.Fatal(err)
		}
		values := make([]float32, 3)
		x.Type.Floats(values, raw)
		if want := float32(label[0]); !slices.Equal(values, []float32{want, want, want}) {
			t.Errorf("example %d has label %d and values %v", i, label[0], values)
		}
		numbers = append(numbers, int(label[0]))
	}
	if slices.Equal(numbers[:7], numbers[7:]) {
		t.Errorf("two epochs have one order, %v", numbers[:7])
	}
	for _, epoch := range [][]int{slices.Clone(numbers[:7]), slices.Clone(numbers[7:])} {
		slices.Sort(epoch)
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 6}, epoch); diff != "" {
			t.Errorf("an epoch (-want +got):\n%s", diff)
		}
	}
	x, _ = other.Find("x")
	raw, values := make([]byte, 5*12), make([]float32, 5*3)
	for i := 1; i >= 0; i-- { // iterations have no order
		if err := other.Fill(x, i, 5, raw); err != nil {
			t.Fatal(err)
		}
		x.Type.Floats(values, raw)
		for k := range 5 {
			if got, want := int(values[3*k]), numbers[5*i+k]; got != want {
				t.Errorf("iteration %d of batch 5: example %d is number %d, want %d", i, k, got, want)
			}
		}
	}
}

func TestArraysErrors(t *testing.T) {
	dir := t.TempDir()
	good := npyFile(1, dict("'<i2'", "False", "(3, 2)"), make([]byte, 12))
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"z.npz", npz(t, zip.Deflate, map[string][]byte{"x": good}), `array "x": is compressed, .*savez_compressed`},
		{"t.npz", npz(t, zip.Store, map[string][]byte{"x": good})[:60], "no .npz file, or damaged"},
		{"o.npz", npz(t, zip.Store, map[string][]byte{"x": []byte("text")}), `array "x": is no .npy array`},
		{"s.safetensors", []byte("PK"), "has 2 bytes, too few for a safetensors file"},
	} {
		path := filepath.Join(dir, c.name)
		writeFile(t, path, c.content)
		if _, err := OpenArrays(nil, path, 1); !errorLike(err, regexp.QuoteMeta(path)+".*"+c.want) {
			t.Errorf("%s: %v, want an error with %s", c.name, err, c.want)
		}
	}
	if _, err := OpenArrays(nil, filepath.Join(dir, "none.npz"), 1); !errorLike(err,
		"none.npz does not exist: name a") {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "f.npz"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenArrays(nil, filepath.Join(dir, "f.npz"), 1); !errorLike(err, "f.npz: is no regular file") {
		t.Errorf("a folder: %v", err)
	}

	// A file that has become shorter is an error, not a batch of zeros.
	a := threes(t, filepath.Join(dir, "cut.npz"))
	if err := os.Truncate(filepath.Join(dir, "cut.npz"), 10); err != nil {
		t.Fatal(err)
	}
	x, _ := a.Find("x")
	if err := a.Fill(x, 0, 7, make([]byte, 7*12)); !errorLike(err, `cut.npz: array "x" ends .* start again`) {
		t.Errorf("a file that was cut: %v", err)
	}
	y, _ := a.Find("y")
	if _, _, err := a.Range(y); !errorLike(err, `array "y" ends`) {
		t.Errorf("a file that was cut: %v", err)
	}
}

// errorLike reports whether there is an error of one line that matches an expression.
func errorLike(err error, expression string) bool {
	return err != nil && !strings.Contains(err.Error(), "\n") && regexp.MustCompile(expression).MatchString(err.Error())
}
