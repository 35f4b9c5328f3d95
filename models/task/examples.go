package task

import (
	"cmp"
	"fmt"

	"tensile/data"
	"tensile/data/rooted"
	"tensile/graph"
	"tensile/models"
)

// examples are what tasks learn from: a set of images, arrays of a file, or, without either, what is made up for each.
type examples struct {
	set    *data.Dataset
	arrays *data.Arrays
}

// openExamples opens what --data names, if anything. All its files lie within folders.
func openExamples(in *rooted.Files, path string, seed uint64) (d examples, err error) {
	switch {
	case path == "":
	case data.IsArrays(path):
		d.arrays, err = data.OpenArrays(in, path, seed)
	default:
		d.set, err = data.Open(in, path, seed)
	}
	return d, err
}

// sizedBySet returns settings with the sizes that follow from a set of images.
func (d examples) sizedBySet(s Settings) (Settings, error) {
	set := d.set
	if set == nil {
		return s, nil
	}
	channels, height, width := set.Shape()
	if set.AnySize() {
		channels, height, width = s.Channels, s.Image, s.Image
	}
	switch {
	case s.Image != 0 && (s.Image != height || s.Image != width):
		return s, set.CheckImage(s.Image, s.Image)
	case s.Channels != 0 && s.Channels != channels:
		return s, fmt.Errorf("%s images have %d channels, not %d: leave --channels out", set.Name(), channels,
			s.Channels)
	case s.Classes != 0 && s.Classes < set.Classes():
		return s, fmt.Errorf("%s has %d classes: leave --classes out or set it to %d or more", set.Name(),
			set.Classes(), set.Classes())
	}
	s.Image, s.Channels, s.Classes = height, channels, cmp.Or(s.Classes, set.Classes())
	return s, nil
}

// sizedByArrays returns the settings of a network with the sizes that follow from arrays in place of those that are not
// given: from the images and the largest label, or, of one that reads sequences, from the tokens.
func (d examples) sizedByArrays(s Settings, reads bool) (Settings, error) {
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
			return s, ChannelsLast(d.arrays, x)
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

// feed has a task learn from the examples, with images of its graph's size, or returns the error why it cannot.
func (d examples) feed(t *Task, g *graph.Graph) (err error) {
	switch {
	case d.arrays != nil:
		t.Arrays, err = d.arrays, FitArrays(g, d.arrays)
	case d.set != nil:
		if line := d.set.Note(); line != "" {
			t.Notes = append(t.Notes, line)
		}
		t.Data, err = Fit(g, d.set)
	}
	return err
}
