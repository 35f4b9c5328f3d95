package data

import (
	"fmt"
	"os"
	"path/filepath"

	"tensile/data/rooted"
)

// A record of CIFAR-10's binary version is a label and three planes, red, green, blue, of 32x32 bytes.
const (
	cifarSide    = 32
	cifarPixels  = 3 * cifarSide * cifarSide
	cifarRecord  = 1 + cifarPixels
	cifarClasses = 10
)

var cifarBatches = []string{
	"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
}

const cifarTest = "test_batch.bin"

// loadCIFAR reads the five training batches from a folder.
func loadCIFAR(in *rooted.Files, dir string) (*Dataset, error) {
	var pixels, labels []byte
	for _, batch := range cifarBatches {
		path := filepath.Join(dir, batch)
		file, err := in.ReadFile(path)
		if os.IsNotExist(err) {
			return nil, fmt.Errorf("%s is missing: put all five batches of CIFAR-10 into one folder", path)
		} else if err != nil {
			return nil, err
		}
		if pixels, labels, err = appendCIFAR(pixels, labels, file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return newCIFAR(in, dir, newStored(pixels, labels, 3)), nil
}

// newCIFAR is the training set of a folder.
func newCIFAR(in *rooted.Files, dir string, s *stored) *Dataset {
	d := &Dataset{name: "CIFAR-10", channels: 3, height: cifarSide, width: cifarSide, classes: cifarClasses,
		examples: len(s.labels), contents: s}
	d.test = func() (*Dataset, error) {
		path := filepath.Join(dir, cifarTest)
		file, err := in.ReadFile(path)
		if os.IsNotExist(err) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		pixels, labels, err := appendCIFAR(nil, nil, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return d.tested(s.newNormalized(pixels, labels)), nil
	}
	return d
}

// tested is a test set of the same form.
func (d *Dataset) tested(s *stored) *Dataset {
	t := *d
	t.examples, t.contents, t.test = len(s.labels), s, nil
	return &t
}

// appendCIFAR takes the records of one batch apart.
func appendCIFAR(pixels, labels, file []byte) (allPixels, allLabels []byte, err error) {
	if len(file) == 0 {
		return nil, nil, fmt.Errorf("is empty: download it again")
	}
	if rest := len(file) % cifarRecord; rest != 0 {
		return nil, nil, fmt.Errorf("truncated: ends %d bytes into record %d of %d bytes: download it again",
			rest, len(file)/cifarRecord, cifarRecord)
	}
	for i := 0; i < len(file); i += cifarRecord {
		label := file[i]
		if label >= cifarClasses {
			return nil, nil,
				fmt.Errorf("record %d has label %d, want 0 to %d: download CIFAR-10's binary version again",
					i/cifarRecord, label, cifarClasses-1)
		}
		labels = append(labels, label)
		pixels = append(pixels, file[i+1:i+cifarRecord]...)
	}
	return pixels, labels, nil
}
