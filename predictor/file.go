package predictor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"

	"tensile/data/weights"
	"tensile/graph"
)

// A model file is a safetensors file. Its metadata have the version of the form under the key "tensile-predictor", and
// under "model" the [Model] as JSON, without weights. Its tensors are the layers: "group.0.net.1.layer.2.weight" of
// shape [inputs, outputs] and "group.0.net.1.layer.2.bias" of shape [outputs].
const (
	magic   = "tensile-predictor"
	version = 2
)

// errVersion is returned for a model file of another version.
var errVersion = errors.New("model file of another version")

// errNoModel is returned for other files.
var errNoModel = errors.New("no model of a predictor: make one with tensile predictor train or " +
	"tensile device calibrate")

// Save writes the model to a file, which has its old content or all of the new one, whatever happens, as
// [weights.Write] says.
func (m *Model) Save(path string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write model %s: %w", path, err)
	}
	f := weights.File{Metadata: map[string]string{magic: strconv.Itoa(version), "model": string(text)}}
	_ = m.eachLayer(func(name string, l *layer) error {
		f.Tensors = append(f.Tensors,
			weights.Tensor{Name: name + ".weight", Shape: graph.Shape{l.In, l.Out}, Data: l.W},
			weights.Tensor{Name: name + ".bias", Shape: graph.Shape{l.Out}, Data: l.B})
		return nil
	})
	return weights.Write(nil, path, f)
}

// eachLayer calls a function for each layer and its name, up to the first error.
func (m *Model) eachLayer(each func(name string, l *layer) error) error {
	for g := range m.Groups {
		for n, layers := range m.Groups[g].Nets {
			for l := range layers {
				if err := each(fmt.Sprintf("group.%d.net.%d.layer.%d", g, n, l), &layers[l]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Load reads a model file and checks it.
func Load(path string) (*Model, error) {
	m, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func read(path string) (*Model, error) {
	f, err := weights.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w (%w)", errNoModel, err)
	}
	switch v, ok := f.Metadata[magic]; {
	case !ok:
		return nil, errNoModel
	case v != strconv.Itoa(version):
		return nil, fmt.Errorf("%w: %.20q, this program reads %d: tensile predictor train or tensile device calibrate "+
			"makes one", errVersion, v, version)
	}
	m, err := parse([]byte(f.Metadata["model"]))
	if err == nil {
		err = m.fill(f.Tensors)
	}
	if err != nil {
		return nil, fmt.Errorf("damaged model: %w", err)
	}
	return m, nil
}

// parse reads a model without weights and checks it.
func parse(text []byte) (*Model, error) {
	var m Model
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	return &m, m.check()
}

// fill takes the weights from tensors.
func (m *Model) fill(tensors []weights.Tensor) error {
	named := make(map[string]weights.Tensor, len(tensors))
	for _, t := range tensors {
		named[t.Name] = t
	}
	take := func(name string, elements int) ([]float32, error) {
		t := named[name]
		delete(named, name)
		if len(t.Data) != elements {
			return nil, fmt.Errorf("tensor %s has %d elements, want %d", name, len(t.Data), elements)
		}
		return t.Data, checkFinite(t.Data)
	}
	err := m.eachLayer(func(name string, l *layer) (err error) {
		if l.W, err = take(name+".weight", l.In*l.Out); err == nil {
			l.B, err = take(name+".bias", l.Out)
		}
		return err
	})
	if err == nil && len(named) > 0 {
		return fmt.Errorf("%d tensors are of no layer", len(named))
	}
	return err
}

func checkFinite(x []float32) error {
	for _, v := range x {
		if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("a weight is no finite number")
		}
	}
	return nil
}

// check finds what does not fit together.
func (m *Model) check() error {
	for i := range m.Devices {
		if err := m.Devices[i].Validate(); err != nil {
			return err
		}
	}
	for i := range m.Groups {
		if err := m.Groups[i].check(); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
	}
	return nil
}

func (g *Group) check() error {
	const widest = 4096
	if g.Form >= forms {
		return fmt.Errorf("unknown form %d", g.Form)
	}
	n := len(featureNames(g.Form))
	if len(g.Mean) != n || len(g.Scale) != n || len(g.Low) != n || len(g.High) != n {
		return fmt.Errorf("it has %d features, this program %d", len(g.Mean), n)
	}
	if len(g.Reach) != len(g.Families)+1 || len(g.Like) != len(g.Families) || len(g.Nets) == 0 {
		return errors.New("parts are missing")
	}
	for i := range n {
		if !(g.Scale[i] > 0) || !(g.Low[i] <= g.High[i]) {
			return fmt.Errorf("feature %d has no range", i)
		}
	}
	for _, r := range g.Reach {
		if !(r[0] > 0 && r[1] > 0) {
			return errors.New("a reach is not positive")
		}
	}
	if !(g.Seen >= 0 && g.Seen < widest) || !(g.Unseen >= 0 && g.Unseen < widest) {
		return errors.New("a band is no positive number")
	}
	width := n + len(g.Kinds) + len(g.Families)
	for _, layers := range g.Nets {
		in := width
		for _, l := range layers {
			if l.In != in || l.Out < 1 || l.Out > widest {
				return fmt.Errorf("a layer of %d x %d follows %d values", l.In, l.Out, in)
			}
			in = l.Out
		}
		if in != outputs {
			return fmt.Errorf("a net has %d outputs", in)
		}
	}
	return nil
}

// featureNames are the names of the features of a form, in their order.
func featureNames(f Form) []string {
	d := Device{FLOPs: 1e12, Bandwidth: 1e12, Units: 1, Clock: 1e9, Cache: 1e6, Launch: 1e3}
	r := row{named: true}
	r.features(&d, &Call{Form: f, Dims: Dims{B: 1, M: 1, N: 1, K: 1, C: 1, H: 1, W: 1, P: 1, Q: 1, R: 1, S: 1,
		Stride: 1, Read: 1, Write: 1, Ops: 1}})
	return r.names
}
