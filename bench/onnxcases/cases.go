package onnxcases

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tensile/controller/local"
	"tensile/data/weights"
	"tensile/device"
	"tensile/graph"
	"tensile/models/onnx"
)

// Outcome is how a case ended.
type Outcome string

// The outcomes.
const (
	Passed      Outcome = "passed"
	Failed      Outcome = "failed"
	Unsupported Outcome = "unsupported"
)

// Result is a case with its outcome, and why it did not pass.
type Result struct {
	Name    string  `json:"name"`
	Op      string  `json:"op"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
}

// Tally counts the cases of an operator.
type Tally struct {
	Op          string `json:"op"`
	Passed      int    `json:"passed"`
	Failed      int    `json:"failed"`
	Unsupported int    `json:"unsupported"`
}

// Run runs every case in a folder, or the folder itself if it is one, in the order of their names. Errors are those of
// the file system and of a device that cannot be used; what is wrong with a case is its result.
func Run(ctx context.Context, d device.Device, dir string) ([]Result, error) {
	var results []Result
	folders := []string{dir}
	if _, err := os.Stat(filepath.Join(dir, "model.onnx")); err != nil {
		found, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
		if err != nil {
			return nil, err
		}
		folders = nil
		for _, path := range found {
			folders = append(folders, filepath.Dir(path))
		}
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("%s holds no case: name a folder of folders with model.onnx and test_data_set_0", dir)
	}
	for _, folder := range folders {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		r := Result{Name: filepath.Base(folder), Op: "?", Outcome: Passed}
		if err := runCase(ctx, d, folder, &r.Op); err != nil {
			r.Outcome, r.Reason = Failed, err.Error()
			if errors.As(err, new(*unsupported)) {
				r.Outcome = Unsupported
			}
		}
		results = append(results, r)
	}
	return results, nil
}

// Count sums results up by operator.
func Count(results []Result) []Tally {
	all := []Tally{}
	for _, r := range results {
		i := slices.IndexFunc(all, func(t Tally) bool { return t.Op == r.Op })
		if i < 0 {
			i = len(all)
			all = append(all, Tally{Op: r.Op})
		}
		switch r.Outcome {
		case Passed:
			all[i].Passed++
		case Failed:
			all[i].Failed++
		default:
			all[i].Unsupported++
		}
	}
	slices.SortFunc(all, func(a, b Tally) int { return strings.Compare(a.Op, b.Op) })
	return all
}

// unsupported is why a case is not tried.
type unsupported struct{ error }

// runCase runs the model of a folder on each of its data sets.
func runCase(ctx context.Context, d device.Device, folder string, op *string) error {
	m, err := onnx.Read(nil, filepath.Join(folder, "model.onnx"))
	if err != nil {
		return err
	}
	*op = ""
	for i := range m.Graph.Nodes {
		if name := m.Graph.Nodes[i].Op; *op == "" || name != "Constant" {
			*op = name
		}
	}
	sets, err := filepath.Glob(filepath.Join(folder, "test_data_set_*"))
	if err != nil {
		return err
	}
	if len(sets) == 0 {
		return errors.New("it has no test_data_set_0")
	}
	for _, set := range sets {
		inputs, err := tensors(set, "input", m.Graph.Inputs)
		if err != nil {
			return err
		}
		want, err := tensors(set, "output", m.Graph.Outputs)
		if err != nil {
			return err
		}
		net, err := onnx.Import(m, filepath.Base(folder), onnx.Options{Known: inputs})
		if err != nil {
			return &unsupported{err}
		}
		got, err := evaluate(ctx, d, net, inputs)
		if err != nil {
			return err
		}
		for i, out := range net.Outputs {
			if t := want[out.Name]; t != nil {
				if err := compare(out, got[i], t); err != nil {
					return fmt.Errorf("%s: %w", filepath.Base(set), err)
				}
			}
		}
	}
	return nil
}

// tensors reads the files of a data set, each of which has the value of its number.
func tensors(set, what string, values []onnx.Value) (map[string]*onnx.Tensor, error) {
	all := make(map[string]*onnx.Tensor)
	for i, v := range values {
		path := filepath.Join(set, fmt.Sprintf("%s_%d.pb", what, i))
		t, err := onnx.ReadTensor(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // an optional one
		}
		if err != nil {
			return nil, err
		}
		all[v.Name] = t
	}
	return all, nil
}

// evaluate runs a network once and returns its outputs.
func evaluate(ctx context.Context, d device.Device, net *onnx.Network, inputs map[string]*onnx.Tensor) (
	[][]float32, error) {
	b := net.Builder
	outputs := make([][]float32, len(net.Outputs))
	read := make(map[graph.StorageID][]float32)
	for i, out := range net.Outputs {
		if v, known := out.Constant(); known {
			outputs[i] = v
		} else if s := b.Peek().Storages[b.Peek().Tensors[out.Tensor].Storage]; s.Role == graph.Input {
			v, err := inputs[s.Name].Floats()
			if err != nil {
				return nil, &unsupported{err}
			}
			read[s.ID] = v
		} else {
			b.Output(out.Tensor)
		}
	}
	g, err := b.Graph()
	if err != nil {
		return nil, err
	}
	if len(g.Ops) > 0 {
		if err := g.Validate(); err != nil {
			return nil, err
		}
		if err := local.Execute(ctx, d, execution(g, net, inputs, read)); err != nil {
			return nil, err
		}
	}
	for i, out := range net.Outputs {
		if outputs[i] == nil {
			t := g.Tensors[out.Tensor]
			outputs[i] = read[t.Storage][t.Offset/4:][:t.Shape.Elements()]
		}
	}
	return outputs, nil
}

// execution runs a graph once on inputs, and reads its outputs.
func execution(g *graph.Graph, net *onnx.Network, inputs map[string]*onnx.Tensor,
	read map[graph.StorageID][]float32) local.Execution {
	types := g.DTypes()
	return local.Execution{Graph: g, Iterations: 1,
		Init: func(s graph.Storage, to []float32) {
			if content, ok := net.Contents[s.Name]; ok {
				copy(to, content)
				return
			}
			weights.Initialise(s, 1, to)
		},
		Input: func(_ int, s graph.StorageID, to device.Memory) {
			t := inputs[g.Storages[s].Name]
			if t == nil {
				return
			}
			if types[s] == graph.Int64 {
				ids, _ := t.Ints() // an input of whole numbers holds such: its type was checked
				copy(to.Int64(), ids)
				return
			}
			values, err := t.Floats()
			if ids, whole := t.Ints(); err != nil && whole == nil {
				for _, id := range ids {
					values = append(values, float32(id))
				}
			}
			copy(to.Float32(), values)
		},
		Output: func(_ int, s graph.StorageID, from []float32) { read[s] = slices.Clone(from) }}
}

// compare returns an error unless an output is what is stored, within the tolerance of the ONNX project: 1e-3 of the
// value, and 1e-7.
func compare(out onnx.Output, got []float32, want *onnx.Tensor) error {
	values, err := want.Floats()
	if err != nil {
		ids, err := want.Ints()
		if err != nil {
			return err
		}
		for _, v := range ids {
			values = append(values, float32(v))
		}
	}
	var shape graph.Shape
	for _, d := range want.Dims {
		shape = append(shape, int(d))
	}
	if !slices.Equal(out.Shape, shape) {
		return fmt.Errorf("output %s has shape %v, want %v", out.Name, out.Shape, shape)
	}
	for i, w := range values {
		g, v := float64(got[i]), float64(w)
		if !(math.Abs(g-v) <= 1e-7+1e-3*math.Abs(v)) && !(math.IsNaN(g) && math.IsNaN(v)) && g != v {
			return fmt.Errorf("output %s: element %d is %v, want %v", out.Name, i, got[i], w)
		}
	}
	return nil
}
