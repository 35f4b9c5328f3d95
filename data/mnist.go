package data

import (
	"fmt"
	"slices"

	"tensile/data/rooted"
)

const mnistClasses = 10

// The names under which people have the files: as published, as some tools unpack them, and compressed.
var (
	mnistImages = []string{
		"train-images-idx3-ubyte", "train-images.idx3-ubyte", "train-images-idx3-ubyte.gz",
		"train-images.idx3-ubyte.gz"}
	mnistLabels = []string{
		"train-labels-idx1-ubyte", "train-labels.idx1-ubyte", "train-labels-idx1-ubyte.gz",
		"train-labels.idx1-ubyte.gz"}
)

// The same of the test set.
var (
	mnistTestImages = []string{
		"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte", "t10k-images-idx3-ubyte.gz", "t10k-images.idx3-ubyte.gz"}
	mnistTestLabels = []string{
		"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte", "t10k-labels-idx1-ubyte.gz", "t10k-labels.idx1-ubyte.gz"}
)

// loadMNIST reads the training images and labels from a folder.
func loadMNIST(in *rooted.Files, dir string) (*Dataset, error) {
	extents, pixels, labels, err := readMNIST(in, dir, mnistImages, mnistLabels)
	if err != nil {
		return nil, err
	}
	s := newStored(pixels, labels, 1)
	d := &Dataset{name: "MNIST-format", channels: 1, height: extents[1], width: extents[2], classes: mnistClasses,
		examples: len(labels), contents: s}
	d.test = func() (*Dataset, error) {
		images := firstOf(in, dir, mnistTestImages)
		if images == "" && firstOf(in, dir, mnistTestLabels) == "" {
			return nil, nil
		}
		extents, pixels, labels, err := readMNIST(in, dir, mnistTestImages, mnistTestLabels)
		if err != nil {
			return nil, err
		}
		if extents[1] != d.height || extents[2] != d.width {
			return nil, fmt.Errorf("%s has images of %dx%d, those to train with are %dx%d: take both from the same set",
				images, extents[1], extents[2], d.height, d.width)
		}
		return d.tested(s.newNormalized(pixels, labels)), nil
	}
	return d, nil
}

// readMNIST reads images and labels, each from the first file that is there.
func readMNIST(in *rooted.Files, dir string, imageNames, labelNames []string) (extents []int, pixels, labels []byte,
	err error) {
	var paths [2]string
	for i, names := range [][]string{imageNames, labelNames} {
		paths[i] = firstOf(in, dir, names)
		if paths[i] == "" {
			return nil, nil, nil, fmt.Errorf("%s has no %s (nor .gz): put images and labels into one folder", dir,
				names[0])
		}
	}
	extents, pixels, err = readIDXFile(in, paths[0], 3)
	if err != nil {
		return nil, nil, nil, err
	}
	_, labels, err = readIDXFile(in, paths[1], 1)
	if err != nil {
		return nil, nil, nil, err
	}
	if extents[0] != len(labels) {
		return nil, nil, nil, fmt.Errorf("%s has %d images, but %s has %d labels: take both from the same set",
			paths[0], extents[0], paths[1], len(labels))
	}
	if i := slices.IndexFunc(labels, func(l byte) bool { return l >= mnistClasses }); i >= 0 {
		return nil, nil, nil, fmt.Errorf("%s: label %d is %d, want 0 to %d: use a set of ten classes",
			paths[1], i, labels[i], mnistClasses-1)
	}
	return extents, pixels, labels, nil
}
