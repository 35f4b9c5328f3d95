package models

import (
	"errors"
	"fmt"

	"tensile/graph/autodiff"
)

// Config sets a network's sizes. The zero value is the network's default.
type Config struct {
	Image    int // height and width in pixels; 0 means the size that the network was made for
	Channels int // Channels of the input; 0 means 1 for mlp and lenet, 3 for others.
	Classes  int // 0 means 10; for networks made for 224 pixels or more, at 224 and above, 1000
	Batch    int // images or sequences per iteration; 0 means DefaultBatch

	// Networks that read sequences have these two instead of the first three, and a setting that is not a network's is
	// an error.
	// steps of a sequence; 0 means 128 for bert, 1024 for gpt2, 50 for gnmt, 35 for rhn, 100 for tacotron2
	Sequence   int
	Vocabulary int // tokens there are; 0 means the published number

	// Thin divides the channels of every layer, and the units of hidden ones, rounded up to a multiple of four: the
	// same ops in the same order in little memory and time. 0 means 1, the network as published.
	Thin int

	// Optimizer trains the network. nil means Adam. A learning rate of 0 means the optimizer's own, or a tenth of it
	// for alexnet and vgg, which have no normalisation to absorb large steps.
	Optimizer autodiff.Optimizer
}

// DefaultBatch is the batch of a Config that names none.
const DefaultBatch = 16

// The largest settings. They keep every product of extents within 64 bits.
const (
	MaxImage    = 1 << 14
	MaxChannels = 1 << 10
	MaxClasses  = 1 << 20
	MaxBatch    = 1 << 16
	mostThin    = 1 << 10
)

// fill returns c with defaults in place of zeros, or every problem it has with this network.
func (c Config) fill(m model) (Config, error) {
	if c.Optimizer == nil {
		c.Optimizer = autodiff.Adam{}
	}
	c.Optimizer = c.Optimizer.Recommended(m.rate)
	if m.sequence != nil {
		return c.fillSequence(m)
	}
	if c.Sequence != 0 {
		return c, errors.New("it reads images, not sequences: leave --sequence out")
	}
	if c.Vocabulary != 0 {
		return c, errors.New("it reads images, not sequences: leave --vocabulary out")
	}
	c.Image = valueOr(c.Image, m.image)
	c.Channels = valueOr(c.Channels, m.channels)
	c.Batch = valueOr(c.Batch, DefaultBatch)
	c.Thin = valueOr(c.Thin, 1)
	if c.Image >= imageNet && m.image >= imageNet {
		c.Classes = valueOr(c.Classes, 1000)
	}
	c.Classes = valueOr(c.Classes, 10)

	err := errors.Join(
		checkRange("channels", c.Channels, 1, MaxChannels),
		checkRange("classes", c.Classes, 2, MaxClasses),
		checkRange("batch", c.Batch, 1, MaxBatch),
		checkRange("thin", c.Thin, 1, mostThin))
	if err != nil {
		return c, err
	}
	if minimum := m.smallest(c.Batch); c.Image < minimum {
		return c, fmt.Errorf("image size %d is too small at batch %d: the smallest that works is %d", c.Image, c.Batch,
			minimum)
	}
	return c, checkRange("image size", c.Image, 1, MaxImage)
}

func checkRange(what string, v, minimum, maximum int) error {
	if v < minimum || v > maximum {
		return fmt.Errorf("%s %d must be %d to %d", what, v, minimum, maximum)
	}
	return nil
}

func valueOr(value, recommended int) int {
	if value == 0 {
		return recommended
	}
	return value
}
