package predictor

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// A model file is one line of text, magic and version, and then, compressed, a line of JSON with everything but weights,
// and the weights as little-endian float32: per group and net, per layer, W row by row and B.
const (
	magic   = "tensile-predictor"
	version = 1
	most    = 64 << 20 // bytes of a model, uncompressed
)

// ErrVersion is returned for a model file of another version.
var ErrVersion = errors.New("model file of another version")

// Write writes the model.
func (m *Model) Write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s %d\n", magic, version); err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	if err := json.NewEncoder(z).Encode(m); err != nil {
		return err
	}
	for i := range m.Groups {
		for _, layers := range m.Groups[i].Nets {
			for _, l := range layers {
				if err := binary.Write(z, binary.LittleEndian, l.W); err != nil {
					return err
				}
				if err := binary.Write(z, binary.LittleEndian, l.B); err != nil {
					return err
				}
			}
		}
	}
	return z.Close()
}

// Read reads a model that Write has written, and checks it.
func Read(r io.Reader) (*Model, error) {
	b := bufio.NewReader(r)
	var name string
	var v int
	if n, err := fmt.Fscanf(b, "%s %d\n", &name, &v); n != 2 || err != nil || name != magic {
		return nil, errors.New("no model of a predictor: make one with tensile predictor train or tensile calibrate")
	}
	if v != version {
		return nil, fmt.Errorf("%w: %d, this program reads %d; train or calibrate again", ErrVersion, v, version)
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("damaged model: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(z, most))
	if err != nil {
		return nil, fmt.Errorf("damaged model: %w", err)
	}
	head, weights, _ := bytes.Cut(content, []byte("\n"))
	var m Model
	if err := json.Unmarshal(head, &m); err != nil {
		return nil, fmt.Errorf("damaged model: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("damaged model: %w", err)
	}
	if err := m.fill(weights); err != nil {
		return nil, fmt.Errorf("damaged model: %w", err)
	}
	return &m, nil
}

// fill takes the weights from their bytes.
func (m *Model) fill(weights []byte) error {
	take := func(n int) ([]float32, error) {
		if len(weights) < 4*n {
			return nil, errors.New("weights are missing")
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(weights[4*i:]))
			if v := float64(x[i]); math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, errors.New("a weight is no number")
			}
		}
		weights = weights[4*n:]
		return x, nil
	}
	for i := range m.Groups {
		for _, layers := range m.Groups[i].Nets {
			for l := range layers {
				var err error
				if layers[l].W, err = take(layers[l].In * layers[l].Out); err != nil {
					return err
				}
				if layers[l].B, err = take(layers[l].Out); err != nil {
					return err
				}
			}
		}
	}
	if len(weights) != 0 {
		return fmt.Errorf("%d bytes follow the weights", len(weights))
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
	r.features(&d, &Call{Form: f, Dims: Dims{B: 1, M: 1, N: 1, K: 1, C: 1, H: 1, W: 1, P: 1, Q: 1, R: 1, S: 1, Stride: 1, Read: 1, Write: 1, Ops: 1}})
	return r.names
}

// Save writes the model to a file, which has its old content or all of the new one, whatever happens.
func (m *Model) Save(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".model-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := m.Write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Load reads a model file.
func Load(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
