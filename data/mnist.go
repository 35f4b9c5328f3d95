package data

import (
	"fmt"
	"slices"
)

const mnistClasses = 10

// The names under which people have the files: as published, as some tools unpack them, and compressed.
var (
	mnistImages = []string{
		"train-images-idx3-ubyte", "train-images.idx3-ubyte", "train-images-idx3-ubyte.gz", "train-images.idx3-ubyte.gz"}
	mnistLabels = []string{
		"train-labels-idx1-ubyte", "train-labels.idx1-ubyte", "train-labels-idx1-ubyte.gz", "train-labels.idx1-ubyte.gz"}
)

// loadMNIST reads the training images and labels from a folder.
func loadMNIST(dir string) (*Dataset, error) {
	var paths [2]string
	for i, names := range [][]string{mnistImages, mnistLabels} {
		paths[i] = firstOf(dir, names)
		if paths[i] == "" {
			return nil, fmt.Errorf("%s has no %s (nor .gz): put images and labels into one folder", dir, names[0])
		}
	}
	extents, pixels, err := readIDXFile(paths[0], 3)
	if err != nil {
		return nil, err
	}
	_, labels, err := readIDXFile(paths[1], 1)
	if err != nil {
		return nil, err
	}
	if extents[0] != len(labels) {
		return nil, fmt.Errorf("%s has %d images, but %s has %d labels: take both from the same set",
			paths[0], extents[0], paths[1], len(labels))
	}
	if i := slices.IndexFunc(labels, func(l byte) bool { return l >= mnistClasses }); i >= 0 {
		return nil, fmt.Errorf("%s: label %d is %d, want 0 to %d: use a set of ten classes",
			paths[1], i, labels[i], mnistClasses-1)
	}
	return &Dataset{name: "MNIST-format", channels: 1, height: extents[1], width: extents[2], classes: mnistClasses,
		examples: len(labels), contents: newStored(pixels, labels, 1)}, nil
}
