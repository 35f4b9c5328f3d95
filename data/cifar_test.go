package data

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// cifarBatch makes a batch of n records: record i of batch b has label i%10 and red, green and blue planes of the
// values b, i and b+i.
func cifarBatch(b, n int) []byte {
	var file []byte
	for i := range n {
		file = append(file, byte(i%cifarClasses))
		for _, value := range []int{b, i, b + i} {
			file = append(file, bytes.Repeat([]byte{byte(value)}, cifarPixels/3)...)
		}
	}
	return file
}

func writeFile(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func writeCIFAR(t testing.TB, dir string, records int) {
	t.Helper()
	for b, name := range cifarBatches {
		writeFile(t, filepath.Join(dir, name), cifarBatch(b+1, records))
	}
}

func TestLoadCIFAR(t *testing.T) {
	dir := t.TempDir()
	writeCIFAR(t, dir, 12)
	d, err := loadCIFAR(nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	if c, h, w := d.Shape(); c != 3 || h != 32 || w != 32 || d.Examples() != 60 || d.Classes() != 10 ||
		d.Name() != "CIFAR-10" {
		t.Fatalf("got %d examples of %dx%dx%d, %d classes, %q", d.Examples(), c, h, w, d.Classes(), d.Name())
	}
	s := d.contents.(*stored)
	image := make([]float32, cifarPixels)
	for index := range 60 {
		b, i := index/12+1, index%12
		if class, _ := s.example(index, image); class != i%10 {
			t.Errorf("example %d has class %d, want %d", index, class, i%10)
		}
		for c, value := range []int{b, i, b + i} {
			for _, at := range []int{c * 1024, c*1024 + 1023} {
				if want := s.scale[c][value]; image[at] != want {
					t.Errorf("example %d, pixel %d is %v, want %v", index, at, image[at], want)
				}
			}
		}
	}
}

// What is accepted has whole records and classes in range, and nothing is lost.
func FuzzCIFAR(f *testing.F) {
	f.Add([]byte{})
	f.Add(cifarBatch(1, 2))
	f.Add(cifarBatch(1, 2)[:cifarRecord+5])
	f.Add(bytes.Repeat([]byte{10}, cifarRecord))
	f.Fuzz(func(t *testing.T, file []byte) {
		pixels, labels, err := appendCIFAR(nil, nil, file)
		if err != nil {
			return
		}
		var back []byte
		for i, label := range labels {
			if label >= cifarClasses {
				t.Fatalf("record %d was accepted with label %d", i, label)
			}
			back = append(append(back, label), pixels[i*cifarPixels:(i+1)*cifarPixels]...)
		}
		if !bytes.Equal(back, file) {
			t.Fatalf("%d bytes were accepted, %d came back or others", len(file), len(back))
		}
	})
}
