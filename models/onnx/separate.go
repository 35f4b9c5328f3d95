package onnx

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Exporters keep one initializer of all that are equal, such as the ones and zeros of fresh normalisations, which makes
// one parameter of many. PyTorch's says in the file which parameters the module has and which of them each node read:
// that is given back here, before anything reads the model, so that a training has the module's parameters and what is
// saved holds each of them.

// separate gives the readers of an initializer that stands for several its own each.
func (m *Model) separate() {
	if m.Graph.signature == "" {
		m.separateAlike()
		return
	}
	m.separateSigned()
}

// signed is a line of a signature: the name in the texts of nodes, the kind, and the key of the state_dict.
var signed = regexp.MustCompile(`(?m)^(\w+): (PARAMETER|BUFFER) target='([^']*)'`)

// signer gives initializers back to a model with a signature.
type signer struct {
	*Model
	names      map[string]string  // keys of the state_dict by the names in the texts of nodes
	parameters map[string]bool    // of each key: whether it is of a parameter, else it is of a buffer
	inits      map[string]*Tensor // of floats, by name
	made       []*Tensor
	shown      map[string]string // by key: the value that shows it transposed
	before     map[string]Node   // inserted ones, by what they make
	stands     map[string]string // by name of an initializer without a key: which of its readings it is left to
}

// reading is an input of a node that is an initializer of floats.
type reading struct {
	node *Node
	slot int
	init *Tensor
	key  string   // of the state_dict; "": it has none
	is   standing // without a key
	of   string   // what PyTorch calls a value that the exporter computed before; "": it computed none
}

func (m *Model) separateSigned() {
	s := &signer{Model: m, parameters: make(map[string]bool), names: make(map[string]string),
		inits: make(map[string]*Tensor), shown: make(map[string]string), stands: make(map[string]string),
		before: make(map[string]Node)}
	for _, line := range signed.FindAllStringSubmatch(m.Graph.signature, -1) {
		s.names[line[1]], s.parameters[line[3]] = line[3], line[2] == "PARAMETER"
	}
	for i := range m.Graph.Initializers {
		if t := &m.Graph.Initializers[i]; t.Type.float() {
			s.inits[t.Name] = t
		}
	}
	calls := make(map[string][]*Node)
	var order []string
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		if len(n.Outputs) == 0 {
			continue
		}
		call := n.fx
		if call == "" {
			call = n.String()
		}
		if calls[call] == nil {
			order = append(order, call)
		}
		calls[call] = append(calls[call], n)
	}
	var all []*reading
	for _, call := range order {
		all = append(all, s.assign(calls[call])...)
	}
	for _, r := range s.compute(all) {
		s.give(r)
	}
	s.finish()
}

// padded is the text of a lookup in a table that has a row for padding.
var padded = regexp.MustCompile(`aten\.embedding\.default\]\(args = \(%(\w+), %\w+, (\d+)`)

// argument is a name in the text of a call.
var argument = regexp.MustCompile(`%(\w+)`)

// arguments are the keys that a call of PyTorch reads, in their order.
func (s *signer) arguments(fx string) (keys []string) {
	_, args, _ := strings.Cut(fx, "(args = ")
	for _, name := range argument.FindAllStringSubmatch(args, -1) {
		if key, ok := s.names[name[1]]; ok && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// assign finds what the nodes of one call read. Readings of an initializer by its own key are of it; the others
// follow the order of the call's arguments.
func (s *signer) assign(nodes []*Node) (all []*reading) {
	fx := nodes[0].fx
	keys := s.arguments(fx)
	own := make(map[string]*Node) // which node read an initializer by its own key first
	var open []*reading
	for _, n := range nodes {
		for slot, in := range n.Inputs {
			r := &reading{node: n, slot: slot, init: s.inits[in]}
			if r.init == nil || n.Op == "Shape" || n.Op == "Size" { // which read no element
				continue
			}
			all = append(all, r)
			at := slices.Index(keys, in)
			_, isKey := s.parameters[in]
			switch {
			case at < 0 && own[in] != nil && own[in] != n:
				r.key = in
			case n.Op == "InstanceNormalization" && strings.Contains(fx, "aten.group_norm."):
				r.is = buffer // ones and zeros, before the scale and shift of each channel
			case n.Op == "LSTM" || n.Op == "GRU" || n.Op == "RNN":
				if r.is = parameter; slot >= 4 && slot <= 6 {
					r.is = buffer // the state that it begins with
				}
			case at >= 0:
				r.key, own[in], keys = in, n, slices.Delete(keys, at, at+1)
			case isKey && fx == "":
				r.key = in
			default:
				open = append(open, r)
			}
		}
	}
	for _, single := range []bool{true, false} { // numbers of the exporter's own stand before weights
		open = slices.DeleteFunc(open, func(r *reading) bool {
			return (r.init.size() == 1) == single && len(open) > len(keys)
		})
	}
	for i, r := range open {
		r.key = keys[i]
	}
	if keys = keys[len(open):]; len(keys) > 0 {
		s.restoreBias(keys[len(keys)-1], nodes)
	}
	return all
}

// restoreBias gives a product the bias back that an exporter left out because it was zero.
func (s *signer) restoreBias(key string, nodes []*Node) {
	for _, n := range nodes {
		if !strings.Contains(n.rules, "RemoveOptionalBias") || n.foldsNorm() || len(n.Inputs) != 2 {
			continue
		}
		w := s.inits[n.Inputs[1]]
		if w == nil || len(w.Dims) < 2 {
			continue
		}
		c := &call{node: n}
		width := w.Dims[0]
		switch {
		case n.Op == "Gemm" && c.int("transB", 0) == 0:
			width = w.Dims[1]
		case n.Op == "ConvTranspose":
			width = w.Dims[1] * c.int("group", 1)
		}
		if width < 1 || width > maxItems {
			continue
		}
		n.Inputs = append(n.Inputs, key)
		if s.find(key) == nil {
			s.made = append(s.made, &Tensor{Name: key, Type: w.Type, Dims: []int64{width},
				Raw: make([]byte, int(width)*types[w.Type].size)})
		}
		return
	}
}

// find is the initializer of floats of a name, nil if there is none.
func (s *signer) find(name string) *Tensor {
	if i := slices.IndexFunc(s.made, func(t *Tensor) bool { return t.Name == name }); i >= 0 {
		return s.made[i]
	}
	return s.inits[name]
}

// insert adds a node that makes a value, before the first node that reads it.
func (s *signer) insert(op, out string, in ...string) {
	s.before[out] = Node{Op: op, Name: out, Inputs: in, Outputs: []string{out},
		index: len(s.Graph.Nodes) + len(s.before)}
}

// nodes are those of the model with the inserted ones.
func (s *signer) nodes() (all []Node) {
	for _, n := range s.Graph.Nodes {
		for _, in := range n.Inputs {
			if made, ok := s.before[in]; ok {
				all = append(all, made)
				delete(s.before, in)
			}
		}
		all = append(all, n)
	}
	return all
}

// give has a reading read the initializer of its key, or one that stands for nothing else.
func (s *signer) give(r *reading) {
	if r.key != "" && s.giveKey(r) {
		return
	}
	if r.is == unsaid && r.key == "" {
		r.is = buffer
	} else if r.is == unsaid {
		r.is = parameter
	}
	what := fmt.Sprint(r.is)
	if r.is == parameter {
		what += cmp.Or(r.of, r.node.fx)
	}
	name := r.init.Name
	if _, taken := s.parameters[name]; taken || s.stands[name] != "" && s.stands[name] != what {
		name = fmt.Sprintf("%s.%d", r.node.Outputs[0], r.slot)
		copied := *r.init
		copied.Name, copied.stands = name, r.is
		s.made = append(s.made, &copied)
		r.node.Inputs[r.slot] = name
		return
	}
	s.stands[name], r.init.stands = what, r.is
}

// giveKey has a reading read the initializer of its key, which is made of what it read if there is none. It reports
// whether that has the same content.
func (s *signer) giveKey(r *reading) bool {
	t := *r.init
	turned := r.node.Op == "MatMul" && r.slot == 1 && len(t.Dims) == 2 && r.init.Name != r.key &&
		strings.Contains(r.node.fx, "aten.linear.")
	if turned {
		t.Dims = []int64{t.Dims[1], t.Dims[0]}
		t.Raw = transposed(t.Raw, int(t.Dims[0]), int(t.Dims[1]), types[t.Type].size)
	}
	switch have := s.find(r.key); {
	case have == nil:
		t.Name = r.key
		s.made = append(s.made, &t)
	case !slices.Equal(have.Dims, t.Dims) || !bytes.Equal(have.Raw, t.Raw):
		return false
	}
	if !turned {
		r.node.Inputs[r.slot] = r.key
		return true
	}
	if s.shown[r.key] == "" {
		s.shown[r.key] = r.key + ".transposed"
		s.insert("Transpose", s.shown[r.key], r.key)
	}
	r.node.Inputs[r.slot] = s.shown[r.key]
	return true
}

// transposed is a matrix of rows and columns, of elements of a size, made of one of columns and rows.
func transposed(raw []byte, rows, columns, size int) []byte {
	to := make([]byte, 0, len(raw))
	for i := range rows {
		for j := range columns {
			at := (j*rows + i) * size
			to = append(to, raw[at:at+size]...)
		}
	}
	return to
}

// finish puts the initializers into the model, without those that nothing reads any more, and says which are trained.
func (s *signer) finish() {
	g := &s.Graph
	g.Nodes = s.nodes()
	read, makes := make(map[string]bool), make(map[string]bool)
	for i := range g.Nodes {
		for _, in := range g.Nodes[i].Inputs {
			read[in] = true
		}
		for _, out := range g.Nodes[i].Outputs {
			makes[out] = true
		}
	}
	for _, out := range g.Outputs {
		read[out.Name] = true
	}
	kept := make([]Tensor, 0, len(g.Initializers)+len(s.made))
	for _, t := range g.Initializers {
		if s.inits[t.Name] == nil || read[t.Name] && !makes[t.Name] {
			kept = append(kept, t)
		}
	}
	for _, t := range s.made {
		if !makes[t.Name] {
			kept = append(kept, *t)
		}
	}
	for i := range kept {
		if is, ok := s.parameters[kept[i].Name]; ok && is {
			kept[i].stands = parameter
		} else if ok {
			kept[i].stands = buffer
		}
	}
	g.Initializers = kept
}

// alikeSlots are the inputs of operators that hold a scale, a shift, a bias or a running figure.
var alikeSlots = map[string][]int{"Gemm": {2}, "Conv": {2}, "ConvTranspose": {2}, "BatchNormalization": {1, 2, 3, 4},
	"InstanceNormalization": {1, 2}, "GroupNormalization": {1, 2}, "LayerNormalization": {1, 2}, "Add": {0, 1},
	"Mul": {0, 1}}

// separateAlike gives, in a model without a signature, each reader of an initializer that holds one number everywhere
// an initializer of its own, where it is read as a scale, shift, bias or running figure. PyTorch's older exporter reads
// by an Identity what it found to be equal, and directly what a module really has twice.
func (m *Model) separateAlike() {
	g := &m.Graph
	inits := make(map[string]*Tensor)
	for i := range g.Initializers {
		if t := &g.Initializers[i]; t.Type.float() && len(t.Dims) > 0 && t.alike() {
			inits[t.Name] = t
		}
	}
	var made []Tensor
	var names []string // of initializers that stood for several
	apart := func(t *Tensor, name string) {
		copied := *t
		copied.Name = name
		if made = append(made, copied); !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	outputs := make(map[string]bool)
	for _, out := range g.Outputs {
		outputs[out.Name] = true
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n Node) bool {
		if n.Op != "Identity" || len(n.Inputs) != 1 || len(n.Outputs) != 1 || inits[n.Inputs[0]] == nil ||
			outputs[n.Outputs[0]] {
			return false
		}
		apart(inits[n.Inputs[0]], n.Outputs[0])
		return true
	})
	read, scoped := make(map[string]bool), m.scoped()
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, slot := range alikeSlots[n.Op] {
			if scoped || slot >= len(n.Inputs) || len(n.Outputs) == 0 || inits[n.Inputs[slot]] == nil {
				continue
			}
			t := inits[n.Inputs[slot]]
			if (n.Op == "Add" || n.Op == "Mul") && t.size() == 1 { // a number of the network's own, perhaps
				continue
			}
			if read[t.Name] {
				n.Inputs[slot] = fmt.Sprintf("%s.%d", n.Outputs[0], slot)
				apart(t, n.Inputs[slot])
			}
			read[t.Name] = true
		}
	}
	if g.Initializers = append(g.Initializers, made...); len(names) > 0 {
		m.notes = append(m.notes, fmt.Sprintf("%s hold one number everywhere, and several nodes read them as scale, "+
			"shift, bias or running figure: each has its own, as exporters keep one of equal initializers",
			listed(names)))
	}
}

// scoped reports whether nodes have the names of modules, as PyTorch's older exporter has them.
func (m *Model) scoped() bool {
	return slices.ContainsFunc(m.Graph.Nodes, func(n Node) bool { return strings.HasPrefix(n.Name, "/") })
}

// foldedNorm is how the names of rules begin by which exporters put batch normalisations into products.
const foldedNorm = "FuseBatchNorm"

func (n *Node) foldsNorm() bool { return strings.Contains(n.rules, foldedNorm) }
