package predictor

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Network is a traced network on a device: its ops in order, layers repeated as often as the network has them.
type Network struct {
	Name    string
	Device  int
	Ops     []TracedOp
	Forward float64 // measured end to end, in seconds

	names            []string // the names of the ops, while the layer occurs once
	from, to, layers int      // first and last op of it, and how often it is repeated
}

// TracedOp is an op of a traced network.
type TracedOp struct {
	Group   string // Group in perop.csv: BMM, FC, EW, Softmax, LN or other; "" if no kernel is launched.
	Call    Call
	Seconds float64 // measured, forward
	Beside  float64 // Prediction of another predictor.
}

// layers are the first and last op of the repeated part, by the name of the network.
var layers = []struct{ network, from, to string }{
	{"bert", "bert_encoder_layer_0_attention_self_query", "bert_encoder_layer_0_output_layer_norm"},
	{"gpt", "transformer_h_0_ln_1", "add_15"},
	{"opt", "model_decoder_layers_0_self_attn_layer_norm", "view_11"},
}

// ReadTraces reads traced networks in NeuSight's form: per device a folder DEVICE, in it NETWORK.csv with the ops of
// one layer and what stands before and after, and NETWORK.json with the number of layers and what was measured end to
// end. Networks of which it is not known where a layer begins are skipped, with a line each. Folder beside, if one is
// named, has what another predictor says of the ops: files of the same names, with columns Name and fw_latency.
func ReadTraces(dir, beside string, devices []Device) (networks []Network, skipped []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.csv"))
	if err != nil {
		return nil, nil, err
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("%s: no DEVICE/NETWORK.csv in it, such as %s", dir, exampleTrace)
	}
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		d := slices.IndexFunc(devices, func(d Device) bool { return strings.ReplaceAll(d.Name, " ", "_") == folder })
		if d < 0 {
			return nil, nil, fmt.Errorf("%s: folders of devices are expected in %s, such as %s, and no device file "+
				"describes %q", file, dir, exampleTrace, folder)
		}
		n, err := readTrace(file)
		if errors.Is(err, errUnknownNetwork) {
			skipped = append(skipped, err.Error())
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		n.Device = d
		if beside != "" {
			other := filepath.Join(beside, folder, filepath.Base(file))
			if err := n.readBeside(other); err != nil {
				return nil, nil, err
			}
		}
		n.repeat()
		networks = append(networks, *n)
	}
	if len(networks) == 0 {
		return nil, nil, fmt.Errorf("%s: none of its %d networks can be read; the first: %s", dir, len(files),
			skipped[0])
	}
	return networks, skipped, nil
}

// exampleTrace shows how the files of traces are laid out.
const exampleTrace = "Tesla_V100-PCIE-32GB/bert_large-train-512-2.csv"

// errUnknownNetwork is of a network of which it is not known where a layer begins.
var errUnknownNetwork = errors.New("it is not known where a layer of this network begins: known are bert, gpt and opt")

func readTrace(file string) (*Network, error) {
	n := &Network{Name: strings.TrimSuffix(filepath.Base(file), ".csv")}
	i := slices.IndexFunc(layers, func(l struct{ network, from, to string }) bool {
		return strings.HasPrefix(n.Name, l.network)
	})
	if i < 0 {
		return nil, fmt.Errorf("%s: %w", file, errUnknownNetwork)
	}
	content, err := os.ReadFile(strings.TrimSuffix(file, ".csv") + ".json")
	if err != nil {
		return nil, err
	}
	var label struct {
		Layers  int     `json:"num_layer"`
		Forward float64 `json:"fw_latency"`
	}
	if err := json.Unmarshal(content, &label); err != nil {
		return nil, fmt.Errorf("%s: label: %w", file, err)
	}
	n.Forward = label.Forward / 1e3
	records, err := readRecords(file)
	if err != nil {
		return nil, err
	}
	from, to := -1, -1
	for at, fields := range records[1:] {
		c := &cursor{path: file, head: records[0], row: at + 2, fields: fields}
		op, err := c.traced(strings.Contains(n.Name, "-inf-"))
		if err != nil {
			return nil, err
		}
		switch c.text("Name") {
		case layers[i].from:
			from = at
		case layers[i].to:
			to = at
		}
		n.Ops, n.names = append(n.Ops, op), append(n.names, c.text("Name"))
	}
	if from < 0 || to < from {
		return nil, fmt.Errorf("%s: a layer should go from %s to %s", file, layers[i].from, layers[i].to)
	}
	n.from, n.to, n.layers = from, to, label.Layers
	return n, nil
}

// repeat repeats the layer.
func (n *Network) repeat() {
	body := slices.Repeat(n.Ops[n.from:n.to+1], n.layers)
	n.Ops = slices.Concat(n.Ops[:n.from], body, n.Ops[n.to+1:])
	n.names = nil
}

// readBeside reads what another predictor says of the ops, before the layer is repeated.
func (n *Network) readBeside(file string) error {
	records, err := readRecords(file)
	if err != nil {
		return err
	}
	if len(records)-1 != len(n.Ops) {
		return fmt.Errorf("%s: %d ops, the measured network has %d", file, len(records)-1, len(n.Ops))
	}
	for at, fields := range records[1:] {
		c := &cursor{path: file, head: records[0], row: at + 2, fields: fields}
		if name := c.text("Name"); c.err == nil && name != n.names[at] {
			c.fail("Name", "the measured network has %q there", n.names[at])
		}
		n.Ops[at].Beside = c.milliseconds("fw_latency")
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

func readRecords(file string) ([][]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(records) < 2 {
		return nil, fmt.Errorf("%s: no rows", file)
	}
	return records, nil
}

// milliseconds reads a latency, in seconds.
func (c *cursor) milliseconds(column string) float64 {
	ms, err := strconv.ParseFloat(c.text(column), 64)
	if err != nil || !(ms >= 0 && ms < 1e9) {
		c.fail(column, "it is not a number of milliseconds")
	}
	return ms / 1e3
}

// traced reads a row of a network that is trained, or only used for inference.
func (c *cursor) traced(inference bool) (TracedOp, error) {
	measured := c.milliseconds("fw_latency")
	in, out := c.shapes("input_shapes"), c.shapes("output_shape")
	contiguous := "" // not known
	if slices.Contains(c.head, "input_contiguous") {
		contiguous = c.text("input_contiguous")
	}
	group, call := classify(c.text("op"), strings.ToLower(c.text("target")), c.text("_kwargs"), in, out, contiguous,
		inference)
	return TracedOp{Group: group, Call: call, Seconds: measured}, c.err
}

// shapes reads [[2, 512], [1]] or (2, 512).
func (c *cursor) shapes(column string) [][]int {
	text := c.text(column)
	if strings.HasPrefix(text, "(") {
		text = "[[" + strings.TrimSuffix(strings.Trim(text, "()"), ",") + "]]"
	}
	var shapes [][]int
	if err := json.Unmarshal([]byte(text), &shapes); err != nil {
		c.fail(column, "%q is no list of shapes", text)
	}
	return shapes
}

func elementsOf(shape []int) int {
	n := 1
	for _, v := range shape {
		n *= v
	}
	return n
}
