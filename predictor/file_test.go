package predictor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/data/weights"
)

func save(t *testing.T, m *Model) (path string) {
	t.Helper()
	path = write(t, "m.model", "old")
	if err := m.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFile(t *testing.T) {
	m := model(t)
	path := save(t, m)
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got, cmp.AllowUnexported(layer{})); diff != "" {
		t.Errorf("the model is another one:\n%s", diff)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, content, want string }{
		{"other file", "hello world\n", "no model of a predictor: make one with tensile predictor train"},
		{"empty", "", "no model of a predictor: make one with tensile predictor train"},
		{"half", string(whole[:len(whole)/2]), "truncated"},
		{"head", string(whole[:25]), "truncated"},
	} {
		if _, err := Load(write(t, "x", test.content)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A safetensors file that is no model, or not a whole one, is refused.
func TestFileRefuses(t *testing.T) {
	path := save(t, model(t))
	for _, test := range []struct {
		name   string
		change func(*weights.File)
		want   string
	}{
		{"no metadata", func(f *weights.File) { f.Metadata = nil }, "no model of a predictor: make one with tensile " +
			"predictor train"},
		{"version", func(f *weights.File) { f.Metadata[magic] = "99" },
			`"99", this program reads 2: tensile predictor train`},
		{"no JSON", func(f *weights.File) { f.Metadata["model"] = "" }, "damaged model"},
		{"no form", func(f *weights.File) { f.Metadata["model"] = `{"Groups":[{}]}` }, "damaged model: group 0"},
		{"a tensor too few", func(f *weights.File) { f.Tensors = f.Tensors[1:] }, "has 0 elements"},
		{"a tensor too many", func(f *weights.File) { f.Tensors = append(f.Tensors, weights.Tensor{Name: "x"}) },
			"1 elements"},
		{"another tensor", func(f *weights.File) {
			f.Tensors = append(f.Tensors, weights.Tensor{Name: "x", Shape: []int{0}})
		}, "1 tensors are of no layer"},
		{"another size", func(f *weights.File) {
			f.Tensors[0].Shape, f.Tensors[0].Data = []int{1}, f.Tensors[0].Data[:1]
		}, "has 1 elements"},
		{"NaN", func(f *weights.File) { f.Tensors[0].Data[0] = float32(math.NaN()) }, "no finite number"},
	} {
		f, err := weights.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		test.change(&f)
		bad := filepath.Join(t.TempDir(), "bad")
		err = weights.Write(nil, bad, f)
		if err == nil {
			_, err = Load(bad)
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		} else if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error has several lines: %v", test.name, err)
		}
	}
}

// A model in a file of testdata predicts what the program that trained it predicted, to the bit.
func TestPredictionsOfFile(t *testing.T) {
	const want = "54aa977f00b2cb85506187a26b6542284dfad972e82899a66b28945970b1ece3"
	m, err := Load("testdata/small.model")
	if err != nil {
		t.Fatal(err)
	}
	if got := digestOf(m); got != want {
		t.Errorf("the predictions have the digest %s, want %s", got, want)
	}
}

// digestOf returns a digest of what a model predicts for some calls on its devices.
func digestOf(m *Model) string {
	h := sha256.New()
	for i := range m.Devices {
		var calls []Call
		for _, s := range measured(200, 9, boards()) {
			calls = append(calls, s.Call)
		}
		for _, p := range m.Predict(&m.Devices[i], calls) {
			fmt.Fprintf(h, "%d %d %b %t %t\n", p.P50, p.P95, p.Outside, p.Equivalent, p.Roofline)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
