package weights

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
)

// A folder of transformers stands for its weights, of which an index may list several files; one of
// torch.distributed.checkpoint is read by its metadata.
func TestLoadFolders(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, tensors ...Tensor) {
		t.Helper()
		if err := Write(nil, filepath.Join(dir, name), File{Tensors: tensors}); err != nil {
			t.Fatal(err)
		}
	}
	text := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, b := Tensor{"a", graph.Shape{2}, []float32{1, 2}}, Tensor{"b", graph.Shape{1}, []float32{3}}
	write("model-00001-of-00002.safetensors", b, Tensor{"other", graph.Shape{1}, []float32{9}})
	write("model-00002-of-00002.safetensors", a)
	text("model.safetensors.index.json", `{"metadata": {"total_size": 12}, "weight_map": {`+
		`"a": "model-00002-of-00002.safetensors", "b": "model-00001-of-00002.safetensors"}}`)
	for _, path := range []string{dir, filepath.Join(dir, "model.safetensors.index.json")} {
		f, err := Load(nil, path)
		if err != nil || len(f.Tensors) != 2 || !slices.Equal(f.Tensors[0].Data, a.Data) ||
			!slices.Equal(f.Tensors[1].Data, b.Data) {
			t.Errorf("%s: %+v, %v", path, f, err)
		}
	}
	for content, want := range map[string]string{
		`{"weight_map": {"a": "../a.safetensors"}}`:         `which is not in the folder of the index`,
		`{"weight_map": {"a": "none.safetensors"}}`:         `it lists "none.safetensors", which is not there: copy it`,
		`{"weight_map": {"a": "b.safetensors.index.json"}}`: `it lists another index`,
		`{"weight_map": {"a": "."}}`:                        `it lists another index or a folder, "."`,
		`{"weight_map": {}}`:                                `has no weight_map`,
		`[`:                                                 `is no index of a model in several files`,
	} {
		text("bad.index.json", content)
		_, err := Load(nil, filepath.Join(dir, "bad.index.json"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", content, err, want)
		}
	}
	if _, err := Load(nil, t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "is a folder without any of model") {
		t.Errorf("an empty folder: %v", err)
	}
	f, err := Load(nil, filepath.Join("testdata", "dcp"))
	if err != nil || len(f.Tensors) != 1 || f.Tensors[0].Name != "model.a" ||
		!slices.Equal(f.Tensors[0].Data,
			[]float32{-1, -0.875, -0.75, -0.625, -0.5, -0.375}) {
		t.Errorf("a distributed checkpoint: %+v, %v", f, err)
	}
}

// Pieces of a tensor are put where they belong.
func TestPutPiece(t *testing.T) {
	to := Tensor{"a", graph.Shape{2, 2, 3}, make([]float32, 12)}
	putPiece(&to, Tensor{"a", graph.Shape{2, 1, 2}, []float32{1, 2, 3, 4}}, []int64{0, 1, 1})
	if want := []float32{0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4}; !slices.Equal(to.Data, want) {
		t.Errorf("got %v, want %v", to.Data, want)
	}
}

// Of weights and their average in one file the first are taken, and a line names the others. Types that are not read
// are named; sums that torch left out are not missed, and data that it left out is.
func TestLoadKinds(t *testing.T) {
	f, err := Load(nil, filepath.Join("testdata", "averaged.pt"))
	if err != nil || len(f.Tensors) != 2 || !strings.Contains(f.Note, `at ["model"] and at ["ema"]["module"]`) {
		t.Errorf("averaged.pt: %+v, %v", f, err)
	}
	f, err = Load(nil, filepath.Join("testdata", "unchecked.pt"))
	if err != nil || len(f.Tensors) != 2 || !slices.Equal(f.Tensors[0].Data, []float32{-1, -0.875}) || f.Note != "" {
		t.Errorf("unchecked.pt: %+v, %v", f, err)
	}
	for name, want := range map[string]string{"float8.pt": `tensor "a" is of "torch.float8_e4m3fn", which is not read`,
		"skipped.pt": "its tensors hold nothing but zeros"} {
		_, err := Load(nil, filepath.Join("testdata", name))
		checkError(t, err, name, want)
	}
}
