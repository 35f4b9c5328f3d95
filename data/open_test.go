package data

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mnistFiles(images int) (pixels, labels []byte) {
	p, l := make([]byte, images*28*28), make([]byte, images)
	for i := range l {
		l[i] = byte(i % 10)
		copy(p[i*784:], bytes.Repeat([]byte{byte(i)}, 784))
	}
	return idx(p, images, 28, 28), idx(l, images)
}

func TestOpenFindsTheUsualLayouts(t *testing.T) {
	images, labels := mnistFiles(20)
	type files map[string][]byte
	for name, f := range map[string]files{
		"plain": {"train-images-idx3-ubyte": images, "train-labels-idx1-ubyte": labels},
		"dots":  {"train-images.idx3-ubyte": images, "train-labels.idx1-ubyte": labels},
		"gz": {"train-images-idx3-ubyte.gz": zipped(t, images), "train-labels-idx1-ubyte.gz": zipped(t,
			labels)},
		"mixed":        {"train-images.idx3-ubyte.gz": zipped(t, images), "train-labels-idx1-ubyte": labels},
		"unpacked .gz": {"train-images-idx3-ubyte.gz": images, "train-labels-idx1-ubyte.gz": labels},
		"plain beside .gz": {"train-images-idx3-ubyte.gz": nil, "train-images-idx3-ubyte": images,
			"train-labels-idx1-ubyte": labels},
		"torchvision root": {"MNIST/raw/train-images-idx3-ubyte": images, "MNIST/raw/train-labels-idx1-ubyte": labels},
		"fashion": {"FashionMNIST/raw/train-images-idx3-ubyte": images,
			"FashionMNIST/raw/train-labels-idx1-ubyte": labels},
		"torchvision set": {"raw/train-images-idx3-ubyte": images, "raw/train-labels-idx1-ubyte": labels},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range f {
				writeFile(t, filepath.Join(dir, file), content)
			}
			d, err := Open(nil, dir, 1)
			if err != nil {
				t.Fatal(err)
			}
			if c, h, w := d.Shape(); c != 1 || h != 28 || w != 28 || d.Examples() != 20 || d.Classes() != 10 {
				t.Errorf("got %d examples of %dx%dx%d in %d classes", d.Examples(), c, h, w, d.Classes())
			}
			checkBrightness(t, d)
		})
	}
	for _, folder := range []string{"", "cifar-10-batches-bin"} {
		dir := t.TempDir()
		writeCIFAR(t, filepath.Join(dir, folder), 2)
		if d, err := Open(nil, dir, 1); err != nil || d.Examples() != 10 {
			t.Errorf("CIFAR-10 in %q: %v", folder, err)
		}
	}
}

// checkBrightness checks that images and labels came through together: image i of mnistFiles has brightness i and
// label i%10.
func checkBrightness(t *testing.T, d *Dataset) {
	t.Helper()
	values := d.contents.(*stored).scale[0]
	images, labels := make([]float32, 20*784), make([]float32, 20)
	d.Fill(0, images, labels)
	for k, label := range labels {
		i := 0
		for values[i] != images[k*784] {
			i++
		}
		if int(label) != i%10 || images[k*784+783] != images[k*784] {
			t.Errorf("the image of brightness %d has label %v", i, label)
		}
	}
}

func TestOpenSeed(t *testing.T) {
	dir := t.TempDir()
	writeCIFAR(t, dir, 8)
	var first [3][]float32
	for i, seed := range []uint64{5, 5, 6} {
		d, err := Open(nil, dir, seed)
		if err != nil {
			t.Fatal(err)
		}
		first[i] = make([]float32, 40)
		d.Fill(0, make([]float32, 40*cifarPixels), first[i])
	}
	same := func(a, b []float32) bool {
		for i := range a {
			if a[i] != b[i] {
				return false
			}
		}
		return true
	}
	if !same(first[0], first[1]) || same(first[0], first[2]) {
		t.Errorf("labels for seeds 5, 5, 6: %v", first)
	}
}

func TestOpenErrors(t *testing.T) {
	images, labels := mnistFiles(20)
	_, fewer := mnistFiles(19)
	high := bytes.Clone(labels)
	high[8+3] = 10
	const i, l = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
	badCIFAR := cifarBatch(1, 3)
	badCIFAR[cifarRecord] = 10
	for name, c := range map[string]struct {
		files map[string][]byte
		want  []string
	}{
		"nothing": {nil, []string{"holds no known dataset", "data_batch_1.bin to data_batch_5.bin",
			"cifar-10-batches-bin", i, l, "MNIST/raw", "name the folder"}},
		"python version": {map[string][]byte{"cifar-10-batches-py/data_batch_1": {1}},
			[]string{"data_batch_1 is CIFAR-10's Python version", "cifar-10-binary.tar.gz"}},
		"a file as raw": {map[string][]byte{"raw": {1}, "MNIST": {1}}, []string{"holds no known dataset"}},
		"two sets": {map[string][]byte{i: images, l: labels, "cifar-10-batches-bin/data_batch_1.bin": {1}},
			[]string{"holds more than one dataset", "cifar-10-batches-bin", "name a folder"}},
		"no labels": {map[string][]byte{i: images}, []string{"has no " + l, "one folder"}},
		"no images": {map[string][]byte{l: labels}, []string{"has no " + i, "one folder"}},
		"counts": {map[string][]byte{i: images, l: fewer}, []string{i + " has 20 images", l + " has 19 labels",
			"same set"}},
		"label range": {map[string][]byte{i: images, l: high}, []string{l + ": label 3 is 10, want 0 to 9"}},
		"swapped": {map[string][]byte{i: labels, l: images}, []string{i + ": starts with 0x00000801, want " +
			"0x00000803"}},
		"short images": {map[string][]byte{i: images[:5000], l: labels},
			[]string{i + ": truncated: ends after 5000 of 15696 bytes", "download"}},
		"short labels": {map[string][]byte{i: images, l: labels[:9]},
			[]string{l + ": truncated: ends after 9 of 28 bytes", "download"}},
		"a folder": {map[string][]byte{i + "/x": nil, l: labels}, []string{i, "is a directory"}},
		"one batch": {map[string][]byte{"data_batch_1.bin": cifarBatch(1, 1)},
			[]string{"data_batch_2.bin is missing", "all five"}},
		"short batch": {map[string][]byte{"data_batch_1.bin": badCIFAR[:4000]},
			[]string{"data_batch_1.bin: truncated: ends 927 bytes into record 1 of 3073", "download"}},
		"empty batch": {map[string][]byte{"data_batch_1.bin": {}}, []string{"data_batch_1.bin: is empty",
			"download"}},
		"batch label": {map[string][]byte{"data_batch_1.bin": badCIFAR},
			[]string{"data_batch_1.bin: record 1 has label 10, want 0 to 9", "download"}},
		"batch a folder": {map[string][]byte{"data_batch_1.bin/x": nil}, []string{"data_batch_1.bin",
			"is a directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range c.files {
				writeFile(t, filepath.Join(dir, file), content)
			}
			_, err := Open(nil, dir, 1)
			checkError(t, err, append(c.want, dir)...)
		})
	}
}

func TestOpenOfNoFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "nowhere")
	_, err := Open(nil, missing, 1)
	checkError(t, err, missing, "does not exist", "name a folder")

	file := filepath.Join(t.TempDir(), "cifar-10-binary.tar.gz")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Open(nil, file, 1)
	checkError(t, err, file, "is a file", "unpack")
}

// checkError wants one line with all the parts.
func checkError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is more than a line", err)
	}
}
