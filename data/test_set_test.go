package data

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A test set is normalised by the training set's pixels, and comes in the order of its file.
func TestTestSet(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("train-images-idx3-ubyte", idx([]byte{0, 255, 0, 255}, 2, 1, 2))
	write("train-labels-idx1-ubyte", idx([]byte{3, 4}, 2))
	d, err := Open(nil, dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	if test, err := d.Test(); test != nil || err != nil {
		t.Errorf("without its files: %v, %v", test, err)
	}

	write("t10k-images.idx3-ubyte.gz", zipped(t, idx([]byte{255, 255, 0, 255, 0, 0}, 3, 1, 2)))
	write("t10k-labels-idx1-ubyte", idx([]byte{9, 0, 7}, 3))
	test, err := d.Test()
	if err != nil || test.Examples() != 3 || test.Classes() != 10 {
		t.Fatalf("%v, %v", test, err)
	}
	image := make([]float32, 2)
	for i, want := range []struct {
		class int
		image []float32
	}{{9, []float32{1, 1}}, {0, []float32{-1, 1}}, {7, []float32{-1, -1}}} {
		if class, _ := test.Example(i, image); class != want.class || !slices.Equal(image, want.image) {
			t.Errorf("image %d is %v of class %d, want %v of class %d", i, image, class, want.image, want.class)
		}
	}
	if again, err := test.Test(); again != nil || err != nil {
		t.Errorf("a test set has a test set: %v, %v", again, err)
	}

	for name, bad := range map[string]struct {
		file    string
		content []byte
		want    string
	}{
		"other size": {"t10k-images.idx3-ubyte.gz", idx([]byte{1, 2, 3}, 3, 1, 1),
			"t10k-images.idx3-ubyte.gz has images of 1x1, those to train with are 1x2: take both from the same set"},
		"too few":   {"t10k-labels-idx1-ubyte", idx([]byte{9, 0}, 2), "has 3 images, but "},
		"class":     {"t10k-labels-idx1-ubyte", idx([]byte{9, 0, 10}, 3), "label 2 is 10, want 0 to 9"},
		"truncated": {"t10k-labels-idx1-ubyte", idx([]byte{9, 0}, 3), "t10k-labels-idx1-ubyte: truncated: "},
	} {
		good, err := os.ReadFile(filepath.Join(dir, bad.file))
		if err != nil {
			t.Fatal(err)
		}
		write(bad.file, bad.content)
		if _, err := d.Test(); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: error %v, want it to contain %q", name, err, bad.want)
		}
		write(bad.file, good)
	}
	if err := os.Remove(filepath.Join(dir, "t10k-labels-idx1-ubyte")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Test(); err == nil || !strings.Contains(err.Error(), "has no t10k-labels-idx1-ubyte (nor .gz)") {
		t.Errorf("images without labels: error %v", err)
	}
}

func TestCIFARTestSet(t *testing.T) {
	dir := t.TempDir()
	record := func(label, value byte) []byte {
		return append([]byte{label}, slices.Repeat([]byte{value}, cifarPixels)...)
	}
	for i, name := range cifarBatches {
		if err := os.WriteFile(filepath.Join(dir, name), record(byte(i), byte(255*(i%2))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open(nil, dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	if test, err := d.Test(); test != nil || err != nil {
		t.Errorf("without its file: %v, %v", test, err)
	}
	path := filepath.Join(dir, "test_batch.bin")
	if err := os.WriteFile(path, slices.Concat(record(8, 0), record(1, 255)), 0o600); err != nil {
		t.Fatal(err)
	}
	test, err := d.Test()
	if err != nil || test.Examples() != 2 {
		t.Fatalf("%v, %v", test, err)
	}
	want, got := make([]float32, cifarPixels), make([]float32, cifarPixels)
	d.Example(0, want)
	if class, _ := test.Example(0, got); class != 8 || !slices.Equal(got, want) {
		t.Errorf("an image of the training set's pixels is %v of class %d in the test set, want %v of class 8", got[0],
			class, want[0])
	}
	if err := os.WriteFile(path, record(8, 0)[:9], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Test(); err == nil || !strings.Contains(err.Error(), "test_batch.bin: truncated: ") {
		t.Errorf("a truncated batch: error %v", err)
	}
}
