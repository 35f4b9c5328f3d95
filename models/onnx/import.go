package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tensile/graph"
)

// Options are how a model is imported. The zero value imports it as the file has it.
type Options struct {
	// Batch is the extent of the first dimension of the inputs. 0: that of the file, or 16 where it has a symbol.
	Batch int
	// Sequence is the extent of other dimensions that have a symbol. 0: they are an error.
	Sequence int
	// Train imports for training: batch normalisations use the statistics of the batch.
	Train bool
	// Known are the contents of inputs that are known before the graph runs; inputs of whole numbers must be, unless
	// they index a table.
	Known map[string]*Tensor
}

// defaultBatch is the batch of a model that has a symbol in its place.
const defaultBatch = 16

// Network is what an import makes: the forward ops in Builder, and the tensors of the model's outputs.
type Network struct {
	Builder *graph.Builder
	Outputs []Output
	// Contents are the constants that the graph keeps, by the names of their storages, which begin with graph.InitFile.
	Contents map[string][]float32

	importer *importer
}

// Output is an output of a model.
type Output struct {
	Name   string
	Shape  graph.Shape
	Tensor graph.TensorID
	known  *constant // not nil: it depends on nothing, and Tensor has no meaning
}

// Constant returns the content of an output that depends on nothing that is fed or kept.
func (o Output) Constant() ([]float32, bool) {
	if o.known == nil {
		return nil, false
	}
	v := make([]float32, o.known.elements())
	for i := range v {
		v[i] = float32(o.known.float(i))
	}
	return v, true
}

// value is what is known of a value of a model.
type value struct {
	name    string
	shape   graph.Shape
	whole   bool           // it holds whole numbers
	tensor  graph.TensorID // unless missing
	known   *constant      // nil: it is not known
	init    *Tensor        // an initializer; nil: none
	input   bool
	counts  bool     // an input of whole numbers that is fed as floats
	held    string   // the Constant node's output that it shows, of floats; "": it shows none
	fresh   bool     // made by ConstantOfShape: weights that were left out of the file
	numbers bool     // floats that hold whole numbers
	truth   bool     // floats that are 0 or 1, which one a comparison says
	key     uint64   // of random numbers: which they are; 0: they are none
	listed  bool     // it is a sequence
	items   []*value // of a sequence
	source  *value   // of a fresh one: what it is in another shape or order; nil: a node made it
	perm    []int    // of a source whose dimensions are exchanged; nil: they are not
	turned  *value   // whose last two dimensions it has exchanged, for products that read them so; nil: of none
	failed  bool     // it comes from a node that is not supported
	derivation
}

// missing marks a value that no tensor was made for yet.
const missing graph.TensorID = -1

// importer imports one model.
type importer struct {
	model    *Model
	options  Options
	b        *graph.Builder
	values   map[string]*value
	read     map[string]bool // values that something reads
	contents map[string][]float32
	ops      map[*Node][2]int // the ops of each node, from one to before another
	keys     map[*Node]uint64 // of each Dropout and RandomUniformLike: its number in the file
	folded   int              // elements of constants so far
	fixed    int              // the batch that the file has in place of a symbol, if it is imported with another
	loss     bool             // a node made the loss
	maker    map[string]*Node // of each value
	readers  map[string][]*Node
	outputs  map[string]bool  // the outputs of the model
	instead  map[*Node]*Node  // what is imported for a node; nil: nothing is
	fed      map[string]bool  // values that depend on what is fed
	counts   map[string]bool  // inputs of whole numbers that are fed as floats
	passed   map[*Node]bool   // casts of such
	stops    []graph.TensorID // what no gradient goes through
	held     []string         // outputs of Constant nodes that may be weights, and are no parameters
}

// Import makes the forward ops of a model. Errors: operators and forms of them that are not supported, all at once,
// with the names of their nodes, and shapes that do not fit.
func Import(m *Model, name string, o Options) (*Network, error) {
	nodes, err := m.Graph.sorted()
	if err != nil {
		return nil, err
	}
	return importNodes(m, name, nodes, o)
}

// importNodes is Import with the nodes in an order in which they can be executed.
func importNodes(m *Model, name string, nodes []*Node, o Options) (*Network, error) {
	i := &importer{model: m, options: o, b: graph.NewBuilder(name), values: make(map[string]*value),
		read: make(map[string]bool), contents: make(map[string][]float32), ops: make(map[*Node][2]int),
		keys: make(map[*Node]uint64), fed: make(map[string]bool), maker: make(map[string]*Node),
		readers: make(map[string][]*Node), instead: make(map[*Node]*Node),
		outputs: make(map[string]bool)}
	if o.Train {
		i.counts, i.passed = m.counts()
	}
	for k := range m.Graph.Nodes {
		if n := &m.Graph.Nodes[k]; n.Op == "Dropout" || n.Op == "RandomUniformLike" {
			i.keys[n] = uint64(len(i.keys) + 1)
		}
	}
	if err := unsupported(m); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		for _, in := range n.Inputs {
			i.read[in] = true
			i.readers[in] = append(i.readers[in], n)
		}
		for _, out := range n.Outputs {
			i.maker[out] = n
		}
	}
	for _, v := range m.Graph.Outputs {
		i.read[v.Name], i.outputs[v.Name] = true, true
	}
	if err := i.sources(differentiated(m, nodes)); err != nil {
		return nil, err
	}
	i.feeds(nodes)
	i.findGELUs(nodes)
	var problems []string
	for _, n := range nodes {
		first := len(i.b.Peek().Ops)
		of, replaced := i.instead[n]
		if !replaced {
			of = n
		}
		if of == nil {
			continue
		}
		if err := i.node(of); err != nil {
			problems = append(problems, fmt.Sprintf("%v: %.300v", n, err)) // err may list many numbers
		}
		i.ops[n] = [2]int{first, len(i.b.Peek().Ops)}
		if i.b.Err() != nil { // what comes after it would say the same
			break
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("not supported: %s", cut(problems))
	}
	net := &Network{Builder: i.b, Contents: i.contents, importer: i}
	for _, v := range m.Graph.Outputs {
		var err error
		out := Output{Name: v.Name, Tensor: missing}
		from := i.values[v.Name]
		if from.known != nil {
			out.known, out.Shape = from.known, from.known.shape
		} else if out.Tensor, err = i.tensorOf(from); err != nil {
			return nil, fmt.Errorf("output %.80q: %w", v.Name, err)
		} else {
			out.Shape = from.shape
		}
		net.Outputs = append(net.Outputs, out)
	}
	return net, i.b.Err()
}

// feeds finds the values that depend on what is fed.
func (i *importer) feeds(nodes []*Node) {
	for name, v := range i.values {
		i.fed[name] = v.input && v.known == nil
	}
	for _, n := range nodes {
		if slices.ContainsFunc(n.Inputs, func(in string) bool { return i.fed[in] }) {
			for _, out := range n.Outputs {
				i.fed[out] = true
			}
		}
	}
}

// cut joins problems, the first few of many.
func cut(problems []string) string {
	const most = 20
	more := ""
	if n := len(problems); n > most {
		problems, more = problems[:most], fmt.Sprintf("; and %d more", n-most)
	}
	return strings.Join(problems, "; ") + more
}

// unsupported lists all nodes whose operators are not known.
func unsupported(m *Model) error {
	nodes := make(map[string][]string)
	for i := range m.Graph.Nodes {
		n := &m.Graph.Nodes[i]
		if !supported(n) {
			name := n.Op
			if n.Domain != "" && n.Domain != "ai.onnx" {
				name = n.Domain + "." + n.Op
			}
			nodes[name] = append(nodes[name], n.String())
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	var all []string
	for _, op := range slices.Sorted(maps.Keys(nodes)) {
		names := nodes[op]
		text := fmt.Sprintf("%.60s in %d nodes: %s", op, len(names), names[0])
		if len(names) == 1 {
			text = fmt.Sprintf("%.60s in %s", op, names[0])
		}
		for i, name := range names[1:] {
			if i == 2 {
				text += ", ..."
				break
			}
			text += ", " + name
		}
		all = append(all, text)
	}
	return fmt.Errorf("operators that are not supported: %s (docs/onnx.md lists those that are)", cut(all))
}

func supported(n *Node) bool {
	switch n.Domain {
	case "", "ai.onnx", "ai.onnx.preview.training":
		return folds[n.Op] != nil || operators[n.Op] != nil
	}
	return false
}

// steps are the operators through which no gradient goes.
var steps = []string{"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not",
	"Floor", "Ceil",
	"IsNaN", "Sign", "Round", "Shape", "Size", "Range", "ConstantOfShape"}

// differentiated are the values on which an output of the model depends by more than steps and casts to whole numbers
// or truth values. An initializer that is none of them, such as a mask, is a constant and no parameter.
func differentiated(m *Model, nodes []*Node) map[string]bool {
	all := make(map[string]bool)
	for _, out := range m.Graph.Outputs {
		all[out.Name] = true
	}
	for _, n := range slices.Backward(nodes) {
		c := &call{node: n}
		if slices.Contains(steps, n.Op) || n.Op == "Cast" && !Type(c.int("to", int64(Float32))).float() ||
			!slices.ContainsFunc(n.Outputs, func(out string) bool { return all[out] }) {
			continue
		}
		for _, in := range n.Inputs {
			all[in] = true
		}
	}
	return all
}

// sources makes the values that no node makes. Initializers of floats that are differentiated are parameters.
func (i *importer) sources(differentiated map[string]bool) error {
	i.values[""] = &value{tensor: missing}
	g := &i.model.Graph
	for k := range g.Initializers {
		t := &g.Initializers[k]
		if !i.read[t.Name] {
			continue
		}
		v := &value{name: t.Name, tensor: missing, init: t}
		for _, d := range t.Dims {
			v.shape = append(v.shape, int(d))
		}
		v.whole = !t.Type.float()
		if v.whole || len(t.Dims) == 0 && t.stands != parameter || t.stands == buffer || !differentiated[t.Name] {
			var err error
			if v.known, err = constantOf(t); err != nil {
				return err
			}
		}
		i.values[t.Name] = v
	}
	for _, in := range g.Inputs {
		if _, ok := i.values[in.Name]; ok || !i.read[in.Name] {
			continue
		}
		v := &value{name: in.Name, tensor: missing, input: true, counts: i.counts[in.Name]}
		v.whole = !in.Type.float() && !v.counts
		if t := i.options.Known[in.Name]; t != nil && (v.whole || len(t.Dims) == 0 || len(t.Raw) == 0) {
			k, err := constantOf(t)
			if err != nil {
				return err
			}
			v.known, v.shape = k, k.shape
		} else if err := i.sized(v, in); err != nil {
			return fmt.Errorf("input %.80q: %w", in.Name, err)
		}
		i.values[in.Name] = v
	}
	return nil
}

// sized gives an input its shape.
func (i *importer) sized(v *value, in Value) error {
	if in.Dims == nil {
		return fmt.Errorf("the file does not say its shape: export it with one")
	}
	extents := []int64{}
	for d, dim := range in.Dims {
		n := dim.Extent
		switch {
		case d == 0 && i.options.Batch > 0:
			i.fixed = int(min(n, maxItems))
			n = int64(i.options.Batch)
		case d == 0 && n == 0:
			n = defaultBatch
		case n == 0 && i.options.Sequence > 0:
			n = int64(i.options.Sequence)
		case n == 0:
			return fmt.Errorf("dimension %d is %.40q, which the file leaves open: give it with --sequence", d,
				dim.Symbol)
		}
		extents = append(extents, n)
	}
	var err error
	v.shape, err = shapeOf(extents)
	return err
}

// node imports a node.
func (i *importer) node(n *Node) error {
	c := &call{importer: i, node: n}
	if len(n.Outputs) == 0 {
		return fmt.Errorf("it has no output")
	}
	var in []*constant
	folded := folds[n.Op] != nil
	for k := range n.Inputs {
		v, err := c.value(k)
		if n.Inputs[k] == "" {
			continue
		}
		if err != nil {
			return err
		}
		if v.failed {
			i.fail(n)
			return nil
		}
		folded = folded && v.known != nil
		in = append(in, v.known)
	}
	switch {
	case n.Op == "Shape" && len(in) > 0: // which needs no content
		in, folded = []*constant{{shape: i.values[n.Inputs[0]].shape}}, true
	case n.Op == "CastLike" && len(in) > 0 && in[0] != nil: // nor does it of the second
		folded = true
	}
	i.b.SetLayer(n.Name)
	var err error
	if of := operators[n.Op]; folded {
		err = c.fold(in)
	} else if of == nil {
		err = fmt.Errorf("it is computed before the training only, and its input %.80q depends on what is trained or "+
			"fed: export the network without it", c.unknown())
	} else {
		err = of(c)
	}
	if c.wrong != nil { // what follows from it says less
		err = c.wrong
	}
	if err == nil {
		err = i.b.Err()
	}
	if err == nil {
		c.derive()
		c.classify()
	}
	for _, out := range n.Outputs {
		if err == nil && out != "" && i.read[out] && i.values[out] == nil {
			err = fmt.Errorf("its output %.80q is not made", out)
		}
	}
	if err != nil {
		i.fail(n)
	}
	return err
}

// unknown is the first input that is not known before the training.
func (c *call) unknown() string {
	for _, in := range c.node.Inputs {
		if v := c.values[in]; in != "" && v.known == nil {
			return in
		}
	}
	return ""
}

// fold computes what a node makes of constants.
func (c *call) fold(in []*constant) error {
	need, special := leastInputs[c.node.Op]
	if !special {
		need = 1
	}
	if len(in) < need || need > 0 && !c.hasInput(0) {
		return fmt.Errorf("it has %d inputs, want %d", len(in), need)
	}
	k, err := folds[c.node.Op](c, in)
	if err != nil {
		return err
	}
	if err := c.afford(k); err != nil {
		return err
	}
	v := &value{shape: k.shape, whole: k.whole, known: k, tensor: missing}
	if err := c.leftOut(v); err != nil {
		return err
	}
	c.hold(v)
	c.set(0, v)
	return nil
}

// maxAllFolded bounds the elements of all constants together, so that a small file takes no more memory than that.
const maxAllFolded = 1 << 25

// afford returns an error if a constant is too large, or all together are.
func (i *importer) afford(k *constant) error {
	n := max(len(k.ints), len(k.floats))
	if k.whole {
		n = k.elements()
	}
	return i.affordNumbers(n)
}

func (i *importer) affordNumbers(n int) error {
	if i.folded += max(0, n); n < 0 || n > maxFolded || i.folded > maxAllFolded {
		return fmt.Errorf("it makes a constant of %d elements: there may be %d, and %d in all", n, maxFolded,
			maxAllFolded)
	}
	return nil
}

// numbers is room for n numbers of a constant.
func (c *call) numbers(n int) ([]float64, error) {
	if err := c.affordNumbers(n); err != nil {
		return nil, err
	}
	return make([]float64, n), nil
}

// leftOut marks a constant that may be a weight which was left out of the file: one number everywhere, in a shape.
func (c *call) leftOut(v *value) (err error) {
	switch c.node.Op {
	case "ConstantOfShape":
		v.fresh = true
	case "Reshape", "Identity", "Transpose", "Unsqueeze", "Squeeze":
		from := c.values[c.node.Inputs[0]]
		if v.fresh = from.fresh; !v.fresh {
			break
		}
		v.source = from
		if c.node.Op == "Transpose" {
			v.perm, err = c.permutation(len(from.shape))
		}
	}
	return err
}

// hold records that a constant is what a Constant node has, in another form perhaps.
func (c *call) hold(v *value) {
	switch c.node.Op {
	case "Constant":
		if !v.whole && len(v.shape) > 0 {
			v.held = c.node.Outputs[0]
		}
	case "Reshape", "Identity", "Transpose", "Unsqueeze", "Squeeze", "Flatten", "Cast", "Slice", "Concat":
		v.held = c.values[c.node.Inputs[0]].held
	}
}

// leastInputs are the operators without which folding would find too few inputs; all others need one, but Constant.
var leastInputs = map[string]int{"Constant": 0, "Gather": 2, "Reshape": 2, "Expand": 2, "Tile": 2, "Range": 3,
	"Where": 3, "GatherElements": 2, "GatherND": 2, "ScatterND": 3, "CumSum": 2}

func (i *importer) fail(n *Node) {
	for _, out := range n.Outputs {
		i.values[out] = &value{tensor: missing, failed: true}
	}
}

// set makes output k of the node.
func (c *call) set(k int, v *value) {
	if k < len(c.node.Outputs) && c.node.Outputs[k] != "" {
		v.name = c.node.Outputs[k]
		c.values[v.name] = v
	}
}

// give makes output k of the node: a tensor in this shape.
func (c *call) give(k int, t graph.TensorID, shape graph.Shape) {
	c.set(k, &value{shape: shape, tensor: t, whole: c.b.Peek().Tensors[t].DType == graph.Int64})
}
