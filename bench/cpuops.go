package bench

import (
	"fmt"
	"strings"

	"tensile/graph"
)

// CPUGroup is what ops of some kinds take of an iteration, as time passes.
type CPUGroup struct {
	Group string  `json:"group"`
	Ours  float64 `json:"tensile_ms"`
	Torch float64 `json:"torch_ms"`
}

// cpuGroups say how the kinds of an op and PyTorch's names for them begin. The first that fits counts. PyTorch's
// optimizer is timed as a whole, as "optimizer".
var cpuGroups = []struct {
	name         string
	kinds, torch []string
}{
	{"convolutions", []string{"conv2d"}, []string{"mkldnn_convolution", "convolution", "_convolution", "conv2d"}},
	{"losses", []string{"softmax_xent"}, []string{"nll_loss", "_log_softmax", "log_softmax", "cross_entropy"}},
	{"attention", []string{"matmul", "softmax"}, []string{"_scaled_dot_product", "scaled_dot_product", "bmm",
		"_softmax"}},
	{"linear and recurrent layers", []string{"linear", "bias", "lstm"}, []string{"addmm", "mm", "matmul", "linear",
		"sum", "mkldnn_rnn", "lstm", "sigmoid", "tanh"}}, // PyTorch's recurrence has its products in it
	{"norms", []string{"batch_norm", "layer_norm"}, []string{"native_batch_norm", "native_layer_norm", "batch_norm",
		"_batch_norm_impl", "layer_norm"}},
	{"activations", []string{"relu", "gelu", "dropout"}, []string{"relu", "threshold", "clamp_min", "gelu", "dropout",
		"native_dropout", "bernoulli_"}},
	{"pooling", []string{"max_pool", "avg_pool"}, []string{"max_pool", "avg_pool", "adaptive_avg_pool",
		"_adaptive_avg_pool", "mean"}},
	{"embeddings", []string{"embedding"}, []string{"embedding", "index_put_", "index_select"}},
	{"optimizer", []string{"adam"}, []string{"optimizer"}},
	{"moves", []string{"concat", "slice", "transpose", "pad"}, []string{"cat", "slice", "copy_", "clone", "contiguous",
		"narrow", "select", "transpose", "permute", "fill_", "zero_", "zeros"}},
}

// cpuRest is the group of all others.
const cpuRest = "others"

// opName is the kind of an op; a product of two matrices, as of the rows of a sequence with weights, is linear.
func opName(g *graph.Graph, op graph.OpID) string {
	o := &g.Ops[op]
	if o.Kind == graph.MatMul && g.Tensors[o.Outputs[0]].Shape[0] == 1 {
		return string(graph.Linear)
	}
	return string(o.Kind)
}

// groupOps puts our names of ops and PyTorch's, each with milliseconds, into the groups.
func groupOps(ours, torch map[string]float64) (groups []CPUGroup) {
	groupOf := func(name string, begins func(i int) []string) int {
		for i := range cpuGroups {
			for _, begin := range begins(i) {
				if strings.HasPrefix(name, begin) {
					return i
				}
			}
		}
		return len(cpuGroups)
	}
	all := make([]CPUGroup, len(cpuGroups)+1)
	for name, took := range ours {
		all[groupOf(name, func(i int) []string { return cpuGroups[i].kinds })].Ours += took
	}
	for name, took := range torch {
		name = strings.TrimPrefix(name, "aten::")
		all[groupOf(name, func(i int) []string { return cpuGroups[i].torch })].Torch += took
	}
	for i := range all {
		all[i].Group = cpuRest
		if i < len(cpuGroups) {
			all[i].Group = cpuGroups[i].name
		}
		if all[i].Ours > 0 || all[i].Torch > 0 {
			groups = append(groups, all[i])
		}
	}
	return groups
}

// furthestBehind tells the group that is furthest behind PyTorch's.
func (r *CPURow) furthestBehind() string {
	var furthest float64
	text := "none"
	for _, g := range r.Ops {
		if behind := g.Ours - g.Torch; behind > furthest {
			furthest, text = behind, fmt.Sprintf("%s %.1f for %.1f ms", g.Group, g.Ours, g.Torch)
		}
	}
	return text
}
