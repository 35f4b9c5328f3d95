package data

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"tensile/data/rooted"
)

// format is a kind of dataset that Open knows: where its files lie and what they are called.
type format struct {
	folders []string // below the folder that was named
	files   []string // any of these gives the format away
	load    func(in *rooted.Files, dir string) (*Dataset, error)
}

var formats = []format{
	{[]string{".", "cifar-10-batches-bin"}, cifarBatches, loadCIFAR},
	{[]string{".", "raw", "MNIST/raw", "FashionMNIST/raw"}, slices.Concat(mnistImages, mnistLabels), loadMNIST},
}

// Open reads the training set that lies in a folder, in the layout in which people have it: CIFAR-10's binary batches,
// there or in cifar-10-batches-bin, or MNIST's IDX files (or those of a set with the same names, like Fashion-MNIST),
// plain or compressed, there or in raw or MNIST/raw as torchvision puts them. The seed decides the order of examples.
//
// Such a set is held in memory as bytes: 154 MB for CIFAR-10. Without such files, a folder of images for
// each class, there or in train, is a set of AnySize, of which an image is read when it is asked for. Every error is
// one line that names the file and the remedy. All files lie within folders.
func Open(in *rooted.Files, dir string, seed uint64) (*Dataset, error) {
	if info, err := in.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist: name a folder of images or data files, or a .npz or .safetensors "+
			"file", dir)
	} else if err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: unpack it if it is an archive, and name the folder that holds the "+
			"data files, or a .npz or .safetensors file", dir)
	}
	var places []string
	var load func(*rooted.Files, string) (*Dataset, error)
	for _, f := range formats {
		for _, folder := range f.folders {
			if place := filepath.Join(dir, folder); firstOf(in, place, f.files) != "" {
				places = append(places, place)
				load = f.load
			}
		}
	}
	if len(places) == 0 {
		places, load = []string{dir}, openImages
	}
	if len(places) > 1 {
		return nil, fmt.Errorf("%s holds more than one dataset (in %s): name a folder that holds one",
			dir, strings.Join(places, " and "))
	}
	d, err := load(in, places[0])
	if err != nil {
		return nil, err
	} else if d == nil {
		return nil, nothingIn(in, dir)
	}
	d.order = derive(seed, tagOrder)
	return d, nil
}

// firstOf returns the path of the first of the files that is in the folder, or "". A file that may not be looked at
// counts as being there: reading it gives the better error.
func firstOf(in *rooted.Files, dir string, names []string) string {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := in.Stat(path); err == nil || errors.Is(err, fs.ErrPermission) {
			return path
		}
	}
	return ""
}

// nothingIn is the error for a folder without known files.
func nothingIn(in *rooted.Files, dir string) error {
	for _, folder := range []string{".", "cifar-10-batches-py"} {
		if path := firstOf(in, filepath.Join(dir, folder), []string{"data_batch_1"}); path != "" {
			return fmt.Errorf("%s is CIFAR-10's Python version: download the binary version (cifar-10-binary.tar.gz)",
				path)
		}
	}
	return fmt.Errorf("%s holds no known dataset: looked for %s to %s (CIFAR-10, binary version) there and in %s, "+
		"for %s and %s, plain or .gz (MNIST), there and in %s, and for folders of images, one for each "+
		"class, there and in train: name the folder that holds such files",
		dir, cifarBatches[0], cifarBatches[4], strings.Join(formats[0].folders[1:], ", "),
		mnistImages[0], mnistLabels[0], strings.Join(formats[1].folders[1:], ", "))
}
