package task

import (
	"fmt"
	"slices"
	"strings"

	"tensile/data"
	"tensile/device"
	"tensile/graph"
)

// arrayFeed is a graph that is fed from a file of arrays.
type arrayFeed struct {
	arrays *data.Arrays
	batch  int
	inputs map[graph.StorageID]arrayInput
}

// arrayInput is an input and the array of its name.
type arrayInput struct {
	data.Array
	dtype   graph.DType
	labels  bool // Labels of a loss, which ignores negative ones.
	classes int  // Number of classes or table rows: values are 0 to classes-1; 0: any value.
}

// isInteger reports whether an input wants whole numbers.
func (in *arrayInput) isInteger() bool { return in.dtype == graph.Int64 || in.labels }

// bind finds the arrays of a graph's inputs, and returns an error unless they fit.
func bind(g *graph.Graph, a *data.Arrays) (*arrayFeed, error) {
	f := &arrayFeed{arrays: a, inputs: make(map[graph.StorageID]arrayInput)}
	shapes, types, labels, classes := inputShapes(g), g.DTypes(), labelsOf(g), classesOf(g)
	var missing []string
	var first arrayInput
	for _, s := range g.Storages {
		if s.Role != graph.Input {
			continue
		}
		x, found := a.Find(s.Name)
		if !found {
			missing = append(missing, s.Name)
			continue
		}
		in := arrayInput{Array: x, dtype: types[s.ID]}
		if _, in.labels = labels[s.ID]; in.labels || in.dtype == graph.Int64 {
			in.classes = classes[s.ID]
		}
		if err := f.fits(g, s, shapes[s.ID], &in, &first); err != nil {
			return nil, err
		}
		f.inputs[s.ID] = in
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s has no array %s, which model %s reads; it has %s: save the arrays under the "+
			"names of the model's inputs", a.Name(), listed(missing), g.Name, listed(a.Names()))
	}
	if len(f.inputs) == 0 {
		return nil, fmt.Errorf("model %s has no inputs, and cannot learn from %s: leave --data out", g.Name, a.Name())
	}
	return f, nil
}

// fits returns an error unless an array is such as an input wants it, and has as many examples as the first one and as
// many for an iteration.
func (f *arrayFeed) fits(g *graph.Graph, s graph.Storage, shape graph.Shape, in, first *arrayInput) error {
	fail := func(text string, of ...any) error {
		return fmt.Errorf("%s: array %s %s", f.arrays.Name(), in.Name, fmt.Sprintf(text, of...))
	}
	switch {
	case in.Examples() < 1:
		return fail("has shape %v: its first dimension counts examples, of which there must be some", in.Shape)
	case in.isInteger() && !in.Type.IsInteger():
		return fail("holds floats (%s), and model %s wants whole numbers there: convert them, by astype('int64') in "+
			"NumPy%s", in.Type, g.Name, in.ofRows(shape))
	case !in.isInteger() && in.Type.IsInteger() && in.Type != "BOOL" && s.Holds != graph.Counts:
		return fail("holds whole numbers (%s), and model %s wants floats there: scale and convert them, by "+
			"astype('float32') in NumPy", in.Type, g.Name)
	case first.Shape != nil && first.Examples() != in.Examples():
		return fail("has %d examples, and %s has %d: give each array as many", in.Examples(), first.Name,
			first.Examples())
	}
	elements := shape.Elements()
	batch := 0
	if n := in.Size(); n > 0 && elements%n == 0 {
		batch = elements / n
	}
	if batch == 0 || !shows(shape, batch, in.Shape[1:]) || f.batch != 0 && batch != f.batch {
		if len(shape) == 4 && len(in.Shape) == 4 &&
			slices.Equal(in.Shape[1:], graph.Shape{shape[2], shape[3], shape[1]}) {
			return ChannelsLast(f.arrays, in.Array)
		}
		return fail("has examples of shape %v, and model %s takes %v at once: give it examples of that shape%s",
			in.Shape[1:], g.Name, shape, in.ofRows(shape))
	}
	f.batch = batch
	if first.Shape == nil {
		*first = *in
	}
	return nil
}

// ofRows is what to do as well where labels have a dimension more than a model wants, as rows of a one for the class
// have it.
func (in *arrayInput) ofRows(want graph.Shape) string {
	if !in.labels || len(in.Shape) <= len(want) {
		return ""
	}
	return fmt.Sprintf(", and rows with a one for the class by %s.argmax(-1)", in.Name)
}

// ChannelsLast is the error for an array of images that has the channels in its last dimension.
func ChannelsLast(a *data.Arrays, x data.Array) error {
	return fmt.Errorf("%s: array %s is [examples, height, width, channels] = %v, and networks read [examples, "+
		"channels, height, width]: save %[2]s.transpose(0, 3, 1, 2)", a.Name(), x.Name, x.Shape)
}

// shows reports whether a tensor has the shape of n examples, its leading dimensions being one or several, such
// as a row for each step of each example. Extents of 1 do not matter.
func shows(shape graph.Shape, batch int, example graph.Shape) bool {
	ones := func(n int) bool { return n == 1 }
	shape = slices.DeleteFunc(slices.Clone(shape), ones)
	all := slices.DeleteFunc(append(graph.Shape{batch}, example...), ones)
	for len(all) > len(shape) && len(shape) > 0 {
		all = append(graph.Shape{all[0] * all[1]}, all[2:]...)
	}
	return slices.Equal(shape, all)
}

// listed names the first of several things.
func listed(names []string) string {
	const most = 8
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// check reads all whole numbers and returns an error unless they are classes and rows that there are, and some label
// counts if there are labels.
func (f *arrayFeed) check(g *graph.Graph) error {
	counted, uncounted := false, []string(nil)
	for _, s := range g.Storages {
		in, found := f.inputs[s.ID]
		if !found || in.classes == 0 {
			continue
		}
		least, largest, err := f.arrays.Range(in.Array)
		if err != nil {
			return err
		}
		if in.labels && largest < 0 {
			uncounted = append(uncounted, in.Name)
		}
		counted = counted || in.labels && largest >= 0
		if largest >= int64(in.classes) || least < 0 && !in.labels {
			return fmt.Errorf("%s: array %s holds numbers from %d to %d, and model %s has %d classes or tokens there, "+
				"counted from 0: use a model with as many", f.arrays.Name(), in.Name, least, largest, g.Name,
				in.classes)
		}
	}
	if !counted && len(uncounted) > 0 {
		return fmt.Errorf("%s: all numbers in %s are negative, which no loss counts: nothing would be learned; "+
			"classes are counted from 0", f.arrays.Name(), listed(uncounted))
	}
	return nil
}

// FitArrays returns an error unless a graph can learn from the arrays of a file: for each of its inputs there is one of
// its name, of the right type and shape, and labels and tokens are those that there are. It reads the latter.
func FitArrays(g *graph.Graph, a *data.Arrays) error {
	f, err := bind(g, a)
	if err != nil {
		return err
	}
	return f.check(g)
}

// OneClass returns a line for a person if all labels of a file of arrays, which fits the graph, are of one class: ""
// if not.
func OneClass(g *graph.Graph, a *data.Arrays) (string, error) {
	f, err := bind(g, a)
	if err != nil {
		return "", err
	}
	for _, s := range g.Storages {
		in, found := f.inputs[s.ID]
		if !found || !in.labels {
			continue
		}
		least, largest, err := a.Range(in.Array)
		if err != nil {
			return "", err
		}
		if least == largest {
			return fmt.Sprintf("%s: all numbers in %s are %d: with one class there is nothing to tell apart", a.Name(),
				in.Name, least), nil
		}
	}
	return "", nil
}

// feeder returns the loader.
func (f *arrayFeed) feeder(fail func(error)) func(iteration int, s graph.StorageID, to device.Memory) {
	var raw []byte
	var numbers []int64
	return func(iteration int, s graph.StorageID, to device.Memory) {
		in := f.inputs[s]
		n := f.batch * in.Size()
		raw = slices.Grow(raw[:0], n*int(in.Type.Bytes()))[:n*int(in.Type.Bytes())]
		if err := f.arrays.Fill(in.Array, iteration, f.batch, raw); err != nil {
			clear(to)
			fail(err)
			return
		}
		if !in.Type.IsInteger() {
			in.Type.Floats(to.Float32(), raw)
			return
		}
		numbers = slices.Grow(numbers[:0], n)[:n]
		in.Type.Ints(numbers, raw)
		for i, v := range numbers {
			if in.labels && v < 0 {
				numbers[i] = -1
			} else if in.classes > 0 && (v < 0 || v >= int64(in.classes)) {
				clear(to)
				fail(fmt.Errorf("%s: array %s has %d among numbers that must be below %d: the file was changed, start "+
					"again", f.arrays.Name(), in.Name, v, in.classes))
				return
			}
		}
		if in.dtype == graph.Int64 {
			copy(to.Int64(), numbers)
			return
		}
		floats := to.Float32()
		for i, v := range numbers {
			floats[i] = float32(v)
		}
	}
}
