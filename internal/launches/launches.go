// Command launches prints the launches of kernels of one training iteration of MODEL, an op a line as JSON, for
// scripts/gpu/card.py: the same op of the same shapes once, with the number of times that the iteration has it. An
// argument that is an address is a text: i0 for the op's first input, o0 for its first output, s for its scratch, t for
// the iteration's number; another is a number.
//
//	launches MODEL BATCH [IMAGE [SEQUENCE]]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"

	"tensile/device/cuda/kernels"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models/task"
)

// Addresses of operands as Launches gets them, far from any size or count.
const (
	inputs   = 1 << 60
	outputs  = 1<<60 + 1<<56
	scratch  = 1<<60 + 2*(1<<56)
	clock    = 1<<60 + 3*(1<<56)
	distance = 1 << 44
)

type launch struct {
	Module string    `json:"module"`
	Kernel string    `json:"kernel"`
	Grid   [3]uint32 `json:"grid"`
	Block  [3]uint32 `json:"block"`
	Args   []any     `json:"args"`
}

type op struct {
	Kind     graph.Kind    `json:"kind"`
	Name     string        `json:"name"` // of the first of its kind
	Count    int           `json:"count"`
	Attrs    graph.Attrs   `json:"attrs"`
	In       []graph.Shape `json:"in"`
	Out      []graph.Shape `json:"out"`
	InTypes  []string      `json:"in_types"`
	OutTypes []string      `json:"out_types"`
	Scratch  graph.Bytes   `json:"scratch"`
	Launches []launch      `json:"launches"`
}

func main() {
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "launches:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("name a MODEL and a BATCH")
	}
	var numbers [3]int
	for i, w := range words[1:min(len(words), 4)] {
		var err error
		if numbers[i], err = strconv.Atoi(w); err != nil {
			return err
		}
	}
	s := task.Settings{Seed: 1, Batch: numbers[0], Image: numbers[1], Sequence: numbers[2]}
	var err error
	if s.Optimizer, err = autodiff.ParseOptimizer("adam", nil); err != nil {
		return err
	}
	jobs, err := task.Load(words[:1], s)
	if err != nil {
		return err
	}
	g := jobs[0].Graph
	modules := make(map[string]string)
	for _, t := range kernels.Texts() {
		for _, k := range t.Kernels {
			modules[k] = t.Name
		}
	}
	var ops []*op
	seen := make(map[string]*op)
	for _, o := range g.Ops {
		in, out := g.Shapes(o.Inputs), g.Shapes(o.Outputs)
		row := &op{Kind: o.Kind, Count: 1, Attrs: o.Attrs, In: in, Out: out}
		row.Scratch = kernels.Scratch(o.Kind, o.Attrs, in, out)
		for _, x := range o.Inputs {
			row.InTypes = append(row.InTypes, fmt.Sprint(g.Tensors[x].DType))
		}
		for _, x := range o.Outputs {
			row.OutTypes = append(row.OutTypes, fmt.Sprint(g.Tensors[x].DType))
		}
		c := kernels.Call{Kind: o.Kind, Attrs: o.Attrs, InShapes: in, OutShapes: out, In: places(inputs, len(in)),
			Out: places(outputs, len(out)), Scratch: scratch, Iteration: clock}
		for _, l := range kernels.Launches(&c) {
			row.Launches = append(row.Launches, launch{modules[l.Kernel], l.Kernel, l.Grid, l.Block, named(l.Args)})
		}
		key, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if first := seen[string(key)]; first != nil {
			first.Count++
			continue
		}
		seen[string(key)] = row
		row.Name = o.Name
		ops = append(ops, row)
	}
	out := json.NewEncoder(os.Stdout)
	for _, o := range ops {
		if err := out.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

func places(first uint64, n int) []uint64 {
	p := make([]uint64, n)
	for i := range p {
		p[i] = first + uint64(i)*distance
	}
	return p
}

// named replaces addresses by their names; one inside of an operand has its distance in bytes: i0+4096.
func named(args []uint64) []any {
	var all []any
	for _, a := range args {
		if a < inputs || a >= inputs+4*(1<<56) {
			all = append(all, a)
			continue
		}
		region, rest := (a-inputs)>>56, a&(1<<56-1)
		name := []string{"i", "o", "s", "t"}[region]
		if region < 2 {
			name += strconv.FormatUint(rest/distance, 10)
			rest %= distance
		}
		if rest > 0 {
			name += "+" + strconv.FormatUint(rest, 10)
		}
		all = append(all, name)
	}
	return all
}
