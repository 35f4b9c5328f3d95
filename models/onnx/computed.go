package onnx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What PyTorch's default exporter has computed of parameters, and what is trained in its place.

// compute finds what the exporter computed of parameters that the file does not have: it is trained in their place. It
// returns the readings that are left.
func (s *signer) compute(all []*reading) []*reading {
	lost := s.findLost(all)
	made := s.madeNames(s.forTraining().Graph.Nodes) // folding leaves nodes that nothing reads
	var names []string
	alike := make(map[string]bool) // what was computed and is one number everywhere
	all = slices.DeleteFunc(all, func(r *reading) bool { return s.expandRow(r, made) })
	for _, r := range all {
		if len(lost) > 0 && r.isState(made) {
			s.ownState(r)
		} else if len(lost) == 0 || r.key != "" || r.is != unsaid || !r.init.mayBeTrained() {
			continue
		} else if r.of = r.foldedArgument(made); r.of == "" && r.node.fx != "" {
			continue
		} else if r.init.alike() {
			if alike[r.of] = true; len(alike) > len(lost) {
				continue
			}
		}
		if r.is = parameter; !slices.Contains(names, r.init.Name) {
			names = append(names, r.init.Name)
		}
	}
	for _, name := range names {
		if t := s.inits[name]; t != nil {
			s.contract(t, 0, lost)
		}
	}
	if len(names) > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%s: computed by the exporter of parameters that the file does not "+
			"have (of %s), and trained in their place; export with dynamo=False to train those", listed(names),
			listed(lost)))
	} else if len(lost) > 0 {
		s.notes = append(s.notes, fmt.Sprintf("no node reads the parameters %s: they are tied to others, not "+
			"used, or were left out by the exporter and are not trained: dynamo=False keeps them (docs/onnx.md)",
			listed(lost)))
	}
	return all
}

// findLost finds the parameters that the file does not have, in order.
func (s *signer) findLost(all []*reading) (lost []string) {
	found := make(map[string]bool)
	for _, r := range all {
		found[r.key] = true
	}
	for _, n := range s.forTraining().Graph.Nodes {
		for _, key := range s.arguments(n.fx) {
			found[key] = true
		}
	}
	for key, is := range s.parameters {
		if is && !found[key] && s.inits[key] == nil {
			lost = append(lost, key)
		}
	}
	slices.Sort(lost)
	return lost
}

// isState reports whether a reading is of a state with which an LSTM, GRU or RNN begins, and which the exporter
// computed of something else than zeros of its own.
func (r *reading) isState(made map[string]bool) bool {
	if op := r.node.Op; op != "LSTM" && op != "GRU" && op != "RNN" || r.slot < 5 || r.slot > 6 {
		return false
	}
	_, args, _ := strings.Cut(r.node.fx, "(args = ")
	before, _, _ := strings.Cut(args, ", [%p_") // the weights
	_, states, _ := strings.Cut(before, ", ")   // without the sequence
	return slices.ContainsFunc(argument.FindAllStringSubmatch(states, -1), func(name []string) bool {
		return !made[name[1]] && !slices.Contains(creators, stem(name[1]))
	})
}

// ownState gives a reading a state of its own, of which all examples have the same if they do in the file.
func (s *signer) ownState(r *reading) {
	t := *r.init
	t.Name, t.stands = fmt.Sprintf("%s.%d", r.node.Outputs[0], r.slot), parameter
	r.init, r.node.Inputs[r.slot] = &t, t.Name
	s.made = append(s.made, &t)
	s.contract(&t, 1, nil)
}

// expandRow has a reading read a parameter where the exporter computed rows of it, as of a bias added to zeros.
func (s *signer) expandRow(r *reading, made map[string]bool) bool {
	t := r.init
	if r.key != "" || r.is != unsaid || t.alike() || r.foldedArgument(made) == "" {
		return false
	}
	for _, key := range slices.Sorted(maps.Keys(s.parameters)) {
		row := s.find(key)
		if !s.parameters[key] || row == nil || len(row.Raw) == 0 || len(row.Dims) >= len(t.Dims) || row.alike() ||
			row.Type != t.Type || !slices.Equal(row.Dims, t.Dims[len(t.Dims)-len(row.Dims):]) ||
			!bytes.HasPrefix(t.Raw, row.Raw) || !t.repeats(len(row.Raw)) {
			continue
		}
		s.expand(t, key)
		r.node.Inputs[r.slot] = t.Name
		return true
	}
	return false
}

// expand makes a tensor the Expand of another one.
func (s *signer) expand(t *Tensor, of string) {
	to := &Tensor{Name: t.Name + ".extents", Type: Int64, Dims: []int64{int64(len(t.Dims))}}
	for _, d := range t.Dims {
		to.Raw = binary.LittleEndian.AppendUint64(to.Raw, uint64(d))
	}
	if _, is := s.before[t.Name]; !is {
		s.made = append(s.made, to)
		s.insert("Expand", t.Name, of, to.Name)
	}
}

// madeNames are what PyTorch calls the values that nodes make or that are fed.
func (s *signer) madeNames(nodes []Node) map[string]bool {
	made := make(map[string]bool)
	for _, n := range nodes {
		if name := argument.FindStringSubmatch(n.fx); name != nil {
			made[name[1]] = true
		}
		for _, out := range n.Outputs {
			made[out] = true
		}
	}
	for _, in := range fedInput.FindAllStringSubmatch(s.Graph.signature, -1) {
		made[in[1]] = true
	}
	return made
}

// fedInput is a line of a signature on what is fed.
var fedInput = regexp.MustCompile(`(?m)^(\w+): USER_INPUT`)

// foldedArgument is an argument of the call of a reading that no node makes, and that the initializer stands for: its
// name, or, as the exporter keeps one of equal ones, that of another value of the same function.
func (r *reading) foldedArgument(made map[string]bool) string {
	of := stem(r.init.Name)
	if slices.Contains(creators, of) {
		return ""
	}
	_, args, _ := strings.Cut(r.node.fx, "(args = ")
	other := ""
	for _, name := range argument.FindAllStringSubmatch(args, -1) {
		switch {
		case name[1] == r.init.Name:
			return name[1]
		case other == "" && !made[name[1]] && stem(name[1]) == of:
			other = name[1]
		}
	}
	return other
}

// stem is the name of the function that a value of PyTorch is called after.
func stem(name string) string { return strings.TrimRight(strings.TrimRight(name, "0123456789"), "_") }

// creators are functions of PyTorch that make numbers of none, and ours for what has no name.
var creators = []string{"val", "zeros", "ones", "full", "arange", "zeros_like", "ones_like", "full_like", "new_zeros",
	"new_ones", "new_full", "scalar_tensor", "where", "triu", "tril", "linspace", "eye", "masked_fill"}

// mayBeTrained reports whether numbers that an exporter computed may be those of a parameter. Masks are not, nor is a
// single number.
func (t *Tensor) mayBeTrained() bool {
	v, err := t.Floats()
	return err == nil && len(v) > 1 && !slices.ContainsFunc(v, func(x float32) bool { return x < -1e30 })
}

// alike reports whether a tensor holds one number, or the same everywhere.
func (t *Tensor) alike() bool { return t.repeats(types[t.Type].size) }

// repeats reports whether all pieces of a number of bytes are the same.
func (t *Tensor) repeats(piece int) bool {
	return len(t.Raw) >= piece && piece > 0 && bytes.Equal(t.Raw[piece:], t.Raw[:len(t.Raw)-piece])
}

// contract makes a tensor that is the same all along a dimension an Expand, as it was in the module: a class token,
// say, that is put before each example.
func (s *signer) contract(t *Tensor, along int, lost []string) {
	if len(t.Dims) < 2 || t.Dims[along] < 2 || along == 0 && t.alike() {
		return
	}
	row := &Tensor{Name: t.Name + ".row", Type: t.Type, Dims: slices.Clone(t.Dims), stands: parameter}
	row.Dims[along] = 1
	piece := types[t.Type].size
	for _, d := range t.Dims[along+1:] {
		piece *= int(d)
	}
	for part := range slices.Chunk(t.Raw, max(1, piece*int(t.Dims[along]))) {
		if of := (Tensor{Raw: part}); !of.repeats(piece) {
			return
		}
		row.Raw = append(row.Raw, part[:piece]...)
	}
	for i := range s.Graph.Nodes { // one that was folded and nothing reads may be left
		if fx := s.Graph.Nodes[i].fx; strings.HasPrefix(fx, "%"+t.Name+" ") && len(s.arguments(fx)) == 1 {
			lost = s.arguments(fx)
		}
	}
	if len(lost) == 1 {
		row.Name = lost[0]
	}
	s.made = append(s.made, row)
	s.expand(t, row.Name)
}
