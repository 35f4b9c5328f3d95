package workload

import (
	"cmp"
	"fmt"

	"tensile/data"
	"tensile/graph"
	"tensile/models"
	"tensile/models/task"
)

// source is what tasks learn from: a set of images, arrays of a file, or, without either, what is made up for each.
type source struct {
	set    *data.Dataset
	arrays *data.Arrays
}

// open opens what --data names, if anything, and sets the sizes that follow from a folder.
func (s *Settings) open() (source, error) {
	if s.Data == "" {
		return source{}, nil
	}
	if data.IsArrays(s.Data) {
		a, err := data.OpenArrays(nil, s.Data, s.Seed)
		return source{arrays: a}, err
	}
	set, err := data.Open(nil, s.Data, s.Seed)
	if err != nil {
		return source{}, err
	}
	channels, height, width := set.Shape()
	if set.AnySize() {
		channels, height, width = s.Channels, s.Image, s.Image
	}
	switch {
	case s.Image != 0 && (s.Image != height || s.Image != width):
		return source{}, set.CheckImage(s.Image, s.Image)
	case s.Channels != 0 && s.Channels != channels:
		return source{}, fmt.Errorf("%s images have %d channels, not %d: leave --channels out", set.Name(), channels,
			s.Channels)
	case s.Classes != 0 && s.Classes < set.Classes():
		return source{}, fmt.Errorf("%s has %d classes: leave --classes out or set it to %d or more", set.Name(),
			set.Classes(), set.Classes())
	}
	s.Image, s.Channels, s.Classes = height, channels, cmp.Or(s.Classes, set.Classes())
	return source{set: set}, nil
}

// sized returns the settings of a network with the sizes that follow from arrays in place of those that are not given:
// from the images and the largest label, or, of one that reads sequences, from the tokens.
func (d source) sized(s Settings, reads bool) (Settings, error) {
	if d.arrays == nil {
		return s, nil
	}
	if reads {
		for _, name := range []string{"tokens", "source"} {
			if x, _ := d.arrays.Find(name); len(x.Shape) == 2 {
				s.Sequence = cmp.Or(s.Sequence, x.Shape[1])
			}
		}
		return s, nil
	}
	x, _ := d.arrays.Find("input")
	if len(x.Shape) == 3 && x.Shape[1] == x.Shape[2] { // of one channel, which the shape leaves out
		s.Channels, s.Image = cmp.Or(s.Channels, 1), cmp.Or(s.Image, x.Shape[1])
	}
	if len(x.Shape) == 4 {
		const colors = 4
		square, asLast := x.Shape[2] == x.Shape[3], x.Shape[1] == x.Shape[2] // networks take squares
		asLast = asLast || x.Shape[3] <= colors && min(x.Shape[1], x.Shape[2]) > colors
		if (s.Channels == 0 || s.Image == 0) && !square && asLast {
			return s, task.ChannelsLast(d.arrays, x)
		}
		s.Channels, s.Image = cmp.Or(s.Channels, x.Shape[1]), cmp.Or(s.Image, x.Shape[2])
	}
	if x, found := d.arrays.Find("labels"); found && x.Type.IsInteger() && x.Examples() > 0 && s.Classes == 0 {
		_, largest, err := d.arrays.Range(x)
		if err != nil {
			return s, err
		}
		s.Classes = int(min(max(largest+1, 2), models.MaxClasses+1))
	}
	return s, nil
}

// fit returns what a graph learns from, with images of its size, or the error why it cannot.
func (d source) fit(g *graph.Graph) (source, error) {
	var err error
	switch {
	case d.arrays != nil:
		err = task.FitArrays(g, d.arrays)
	case d.set != nil:
		d.set, err = task.Fit(g, d.set)
	}
	return d, err
}
