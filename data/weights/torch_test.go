package weights

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
)

// ramp returns the numbers that make.py makes of as many.
func ramp(of ...int) []float32 {
	data := make([]float32, len(of))
	for i, n := range of {
		data[i] = float32(n)/8 - 1
	}
	return data
}

// small is what small.pt holds.
func small() []Tensor {
	inf, zero := float32(math.Inf(1)), float32(math.Copysign(0, -1))
	return []Tensor{
		{"brain", graph.Shape{3}, []float32{1.5, -3, -inf}},
		{"columns", graph.Shape{4, 2}, ramp(1, 2, 4, 5, 7, 8, 10, 11)},
		{"double", graph.Shape{3}, ramp(0, 1, 2)},
		{"half", graph.Shape{5}, []float32{1.5, -1.0 / (1 << 24), 65504, inf, zero}},
		{"none", graph.Shape{0, 2}, []float32{}},
		{"parameter", graph.Shape{3}, ramp(0, 1, 2)},
		{"repeated", graph.Shape{2, 3}, ramp(0, 1, 2, 0, 1, 2)},
		{"rows", graph.Shape{2, 3}, ramp(3, 4, 5, 6, 7, 8)},
		{"scalar", graph.Shape{}, ramp(0)},
		{"tied", graph.Shape{2, 3}, ramp(0, 1, 2, 3, 4, 5)},
		{"transposed", graph.Shape{3, 2}, ramp(0, 3, 1, 4, 2, 5)},
		{"whole", graph.Shape{2, 3}, ramp(0, 1, 2, 3, 4, 5)},
	}
}

func TestLoadKept(t *testing.T) {
	checkSmall(t, filepath.Join("testdata", "small.pt"))
	_, err := Load(nil, filepath.Join("testdata", "old.pt"))
	checkError(t, err, "old.pt: is of the form before torch 1.6: convert it with torch.save(torch.load(OLD), NEW)")
}

// What stands beside a state_dict is passed over, whatever it is: here a scalar of NumPy, which a global makes that is
// not known.
func TestLoadBeside(t *testing.T) {
	f, err := Load(nil, filepath.Join("testdata", "beside.pt"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range f.Tensors {
		got = append(got, fmt.Sprint(x.Name, x.Shape))
	}
	if diff := cmp.Diff([]string{"W[5 4]", "b[4]"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A dict that holds itself ends.
func TestDictOfItself(t *testing.T) {
	pickle := "\x80\x02}q\x00("
	for i := range 100 {
		pickle += fmt.Sprintf("X\x01\x00\x00\x00%ch\x00", 'A'+i%26)
	}
	file := archived(t, zip.Store, map[string]string{"data.pkl": pickle + "u."})
	_, err := decodeTorch(bytes.NewReader(file), int64(len(file)))
	checkError(t, err, "holds no dict of tensors of floats")
}

func checkSmall(t *testing.T, path string) {
	t.Helper()
	f, err := Load(nil, path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(File{Tensors: small()}, f, bits); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// What torch saves here and now is read, or refused by name.
func TestTorch(t *testing.T) {
	long.Only(t)
	python := needs.Torch(t)
	dir := t.TempDir()
	c := exec.Command(python, filepath.Join("testdata", "make.py"), dir)
	c.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkSmall(t, filepath.Join(dir, "small.pt"))
	for _, name := range []string{"checkpoint.pt", "imagenet.pt", "nested.pt", "other.pt"} {
		checkSmall(t, filepath.Join(dir, name))
	}
	f, err := Load(nil, filepath.Join(dir, "batchnorm.pt"))
	if err != nil || len(f.Tensors) != 4 { // not num_batches_tracked
		t.Errorf("batchnorm.pt: %v %v", f, err)
	}
	for name, want := range map[string]string{
		"old.pt":      "is of the form before torch 1.6",
		"two.pt":      `holds 2 dicts of tensors, at ["generator"], ["discriminator"]: save the one that is meant`,
		"whole.pt":    `"torch.nn.modules.linear.Linear" is none of what a dict of tensors needs`,
		"complex.pt":  `tensor "c" is of "torch.ComplexFloatStorage", which is not read`,
		"module.pt":   `"torch.nn.modules.linear.Linear" is none of what a dict of tensors needs`,
		"number.pt":   "holds no dict of tensors of floats: save model.state_dict()",
		"expanded.pt": "a tensor of shape [1000] reaches beyond its storage of 1 elements: save a contiguous",
	} {
		_, err := Load(nil, filepath.Join(dir, name))
		checkError(t, err, name, want)
	}
}

// archived makes an archive of entries in a folder x.
func archived(t testing.TB, method uint16, entries map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range entries {
		w, err := z.CreateHeader(&zip.FileHeader{Name: "x/" + name, Method: method})
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Each byte of a pickle can make many: what a file makes is bounded by its size.
func TestHostilePicklesAllocateLittle(t *testing.T) {
	const size = 4 << 20
	var memo strings.Builder
	for i := range uint32(size / 6) {
		memo.Write(binary.LittleEndian.AppendUint32([]byte("Nr"), i))
	}
	var names strings.Builder
	for i := range uint32(size / 14) {
		fmt.Fprintf(&names, "X\x08\x00\x00\x00%08xh\x00", i)
	}
	repeated := func(op string) string { return strings.Repeat(op, size/len(op)) }
	for name, pickle := range map[string]string{
		"nothing": repeated("N"), "marks": repeated("("), "dicts": repeated("}"), "tuples": repeated(")\x85"),
		"nested": ")" + repeated("\x85"), "numbers": repeated("M\xff\xff"), "texts": repeated("X\x00\x00\x00\x00"),
		"memo": memo.String(), "remembered": "}q\x00" + repeated("h\x00"), "bytes": repeated("C\x00"),
		"globals": repeated("ca\nb\n"), "ordered": repeated("ccollections\nOrderedDict\n)R"),
		"items":    "}(" + repeated("K\x01K\x02") + "u",
		"named":    "}q\x00(" + names.String() + "u",
		"again":    "}" + repeated("(K\x01K\x02u"),
		"discards": "]" + repeated("(K\x01K\x02e"), "unnamed": repeated("cx\ny\n)R"),
	} {
		file := archived(t, zip.Store, map[string]string{"data.pkl": "\x80\x02" + pickle + "."})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeTorch(bytes.NewReader(file), int64(len(file)))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		// what grows is allocated several times
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(3*(16<<20+4*size)); got > limit {
			t.Errorf("%s: %d bytes allocated for a file of %d bytes, want at most %d", name, got, len(file), limit)
		} else {
			t.Logf("%s: %.1f times the file: %v", name, float64(got)/size, err)
		}
	}
}

// pickled is a state_dict of one float tensor a: the elements of its storage, its offset, its one extent, its stride.
func pickled(elements, offset, extent, stride int64) string {
	n := func(v int64) string {
		b := []byte{0x8a, 8}
		for i := range 8 {
			b = append(b, byte(v>>(8*i)))
		}
		return string(b)
	}
	text := func(s string) string { return fmt.Sprintf("X%c\x00\x00\x00%s", len(s), s) }
	return "\x80\x02}" + text("a") + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
		"ctorch\nFloatStorage\n" + text("0") + text("cpu") + n(elements) + "tQ" + n(offset) + n(extent) + "\x85" +
		n(stride) + "\x85\x89NtRs."
}

func TestDecodeTorchRefuses(t *testing.T) {
	good := pickled(2, 0, 2, 1)
	for name, c := range map[string]struct {
		pickle, want string
	}{
		"empty":     {"", "the pickle ends too early"},
		"cut":       {good[:len(good)-1], "the pickle ends too early"},
		"os.system": {"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", `"os.system" is none of what`},
		"builtins":  {"\x80\x02c__builtin__\neval\n.", `"__builtin__.eval" is none of what`},
		"opcode":    {"\x80\x02i", "opcode 0x69 is none of a dict of tensors"},
		"operand":   {"\x80\x02R", "an operand is missing"},
		"mark":      {"\x80\x02t", "a mark is missing"},
		"memo":      {"\x80\x02h\x05", "it names a value that is not there"},
		"call":      {"\x80\x02K\x01)R", "a call of what is no function"},
		"list item": {"\x80\x02)K\x01a.", "elements of what is no list"},
		"dict item": {"\x80\x02]K\x01K\x01s.", "items of what is no dict"},
		"build":     {"\x80\x02)}b.", "attributes of what has none"},
		"storage":   {"\x80\x02)Q.", "no description of a storage"},
		"offset":    {pickled(2, 1, 2, 1), "reaches beyond its storage of 2 elements"},
		"stride":    {pickled(2, 0, 2, 2), "reaches beyond its storage of 2 elements"},
		"overflow":  {pickled(2, 0, 2, math.MaxInt64), "reaches beyond its storage of 2 elements"},
		"large":     {pickled(1<<40, 0, 1<<40, 1), "its storage has 8 bytes, want 1099511627776 elements of 4"},
		"negative":  {pickled(2, 0, -2, 1), "no description of a tensor"},
		"uncounted": {pickled(2, 0, math.MaxInt64, 1), "more bytes than can be counted"},
	} {
		t.Run(name, func(t *testing.T) {
			file := archived(t, zip.Store, map[string]string{"data.pkl": c.pickle, "data/0": "01234567"})
			_, err := decodeTorch(bytes.NewReader(file), int64(len(file)))
			checkError(t, err, c.want)
		})
	}
	for want, file := range map[string][]byte{
		"is a zip file without data.pkl":      archived(t, zip.Store, map[string]string{"a": good}),
		`its part "data.pkl" is compressed`:   archived(t, zip.Deflate, map[string]string{"data.pkl": good}),
		`tensor "a": lacks its part "data/0"`: archived(t, zip.Store, map[string]string{"data.pkl": good}),
		`in the order "big"`: archived(t, zip.Store,
			map[string]string{"data.pkl": good, "byteorder": "big"}),
		"not a valid zip file": []byte("PK\x03\x04 and no more"),
	} {
		_, err := decodeTorch(bytes.NewReader(file), int64(len(file)))
		checkError(t, err, want)
	}
}

// Small archives whose tensors share memory do not become large.
func TestSharedStorageAllocatesLittle(t *testing.T) {
	one := pickled(2000, 0, 2000, 1)
	body := strings.TrimSuffix(strings.TrimPrefix(one, "\x80\x02}"), ".")
	var all strings.Builder
	all.WriteString("\x80\x02}")
	for i := range 500 {
		all.WriteString(strings.Replace(body, "X\x01\x00\x00\x00a", fmt.Sprintf("X\x04\x00\x00\x00a%03d", i), 1))
	}
	file := archived(t, zip.Store, map[string]string{"data.pkl": all.String() + ".",
		"data/0": strings.Repeat("\x00", 8000)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := decodeTorch(bytes.NewReader(file), int64(len(file)))
	runtime.ReadMemStats(&after)
	checkError(t, err, "more than twice as many bytes as the file")
	if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(30*len(file)); got > limit {
		t.Errorf("%d bytes allocated for a file of %d, want at most %d", got, len(file), limit)
	}
}

// What is accepted is sound: every tensor has all of its elements and no more than the file can hold.
func FuzzDecodeTorch(f *testing.F) {
	kept, err := os.ReadFile(filepath.Join("testdata", "small.pt"))
	if err != nil {
		f.Fatal(err)
	}
	a, err := newArchive(bytes.NewReader(kept), int64(len(kept)))
	if err != nil {
		f.Fatal(err)
	}
	pickle, err := a.read("data.pkl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pickle)
	f.Add([]byte(pickled(2, 0, 2, 1)))
	f.Add([]byte(pickled(2, 1, 1, math.MaxInt64)))
	f.Fuzz(func(t *testing.T, pickle []byte) {
		file := archived(t, zip.Store, map[string]string{"data.pkl": string(pickle), "data/0": "01234567",
			"data/1": ""})
		got, err := decodeTorch(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		var total int
		for _, x := range got.Tensors {
			if x.Shape.Elements() != len(x.Data) {
				t.Fatalf("%q: %d elements of shape %v", x.Name, len(x.Data), x.Shape)
			}
			total += len(x.Data)
		}
		if total > 2*len(file) {
			t.Fatalf("%d elements in a file of %d bytes", total, len(file))
		}
	})
}

// Load reads safetensors too, even where a header's length has the bytes with which a zip file begins.
func TestLoadSafetensors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w")
	want := File{Tensors: []Tensor{{"a", graph.Shape{2}, []float32{1, 2}}}}
	writeRaw(t, path, written(t, want))
	f, err := Load(nil, path)
	if diff := cmp.Diff(want, f, bits); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	writeRaw(t, path, append(binary.LittleEndian.AppendUint64(nil, 0x04034b50), "{}"...))
	_, err = Load(nil, path)
	checkError(t, err, "truncated: has 10 bytes")
}
