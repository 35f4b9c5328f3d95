package data

import (
	"cmp"
	"errors"
	"fmt"
)

// Dataset is a set of labelled images of one shape, and an order to draw them in. It is immutable and safe for
// concurrent use.
type Dataset struct {
	name                    string
	channels, height, width int
	classes, examples       int
	classNames              []string // nil: they are not known
	order                   uint64   // key of the Order
	note                    string   // a line on what is passed over; "": nothing is
	contents                contents
	test                    func() (*Dataset, error) // nil: there is no test set
}

// contents holds the examples. example writes image number index, normalised, and returns its class, and must be a pure
// function. Sets that are held in memory give no errors and allocate nothing.
type contents interface {
	example(index int, image []float32) (class int, err error)
}

// Name is what people call the set, for messages and reports.
func (d *Dataset) Name() string { return d.name }

// Shape is the extent of every image.
func (d *Dataset) Shape() (channels, height, width int) { return d.channels, d.height, d.width }

// Classes is the number of classes; labels are 0 to Classes-1.
func (d *Dataset) Classes() int { return d.classes }

// ClassNames are the names of the classes, in the order of their labels; nil: the set has none.
func (d *Dataset) ClassNames() []string { return d.classNames }

// Note is a line on the files of a folder that are passed over; "": none is.
func (d *Dataset) Note() string { return d.note }

// Examples is the number of images, the length of an epoch.
func (d *Dataset) Examples() int { return d.examples }

// CheckImage returns an error, meant for the person at the command line, unless the images have this height and width.
func (d *Dataset) CheckImage(height, width int) error {
	if height == d.height && width == d.width {
		return nil
	}
	remedy := "leave --image out"
	if d.height == d.width {
		remedy += fmt.Sprintf(" or set --image %d", d.height)
	}
	return fmt.Errorf("%s images are %dx%d, not %dx%d, and are not resized: %s",
		d.name, d.height, d.width, height, width, remedy)
}

// Test returns the test set that goes with a training set, normalised as that is, or nil where there is none. Errors
// are like those of Open.
func (d *Dataset) Test() (*Dataset, error) {
	if d.test == nil {
		return nil, nil
	}
	return d.test()
}

// Example writes image number index, normalised, C*H*W elements in row-major order, and returns its class.
// Errors are those of Fill.
func (d *Dataset) Example(index int, image []float32) (class int, err error) {
	return d.contents.example(index, image)
}

// Fill writes the batch of an iteration, counted from 0. labels has one element per example of the batch, its class;
// images holds the examples one after another, N*C*H*W elements in row-major order. Errors: a file of a folder of
// images cannot be read; or, as PassedOverErrors alone, some were passed over, and the batch is whole. It panics when
// the lengths do not fit together or the iteration is negative.
func (d *Dataset) Fill(iteration int, images, labels []float32) error {
	size := d.channels * d.height * d.width
	if iteration < 0 || len(images) != len(labels)*size {
		panic(fmt.Sprintf("data: Fill of iteration %d with %d pixels for %d images of %dx%dx%d",
			iteration, len(images), len(labels), d.channels, d.height, d.width))
	}
	o := order{d.examples, d.order}
	var passed error
	err := o.forEach(iteration, len(labels), func(i, example int) error {
		class, err := d.contents.example(example, images[i*size:(i+1)*size])
		labels[i] = float32(class)
		if over, ok := errors.AsType[*PassedOverError](err); ok {
			passed, err = errors.Join(passed, over), nil
		}
		return err
	})
	return cmp.Or(err, passed)
}
