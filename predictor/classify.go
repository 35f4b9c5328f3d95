package predictor

import (
	"slices"
	"strings"
)

// elementwise are the traced functions that are one pass over their operands, and the measured kinds that stand for
// them: with a scalar or broadcast partner, and with two full operands.
var elementwise = map[string][2]string{
	"add": {"addu", "add"}, "sub": {"addu", "add"}, "iadd": {"addu", "add"}, "mul": {"mulu", "mul"},
	"truediv": {"divu", "div"},
	"pow":     {"powu", "pow"}, "tanh": {"tanh", "tanh"}, "gelu": {"gelu", "gelu"}, "relu": {"relu", "relu"},
}

// copies are traced functions and methods that move elements: predicted as a pass over one operand.
var copies = []string{"where", "max", "masked_fill", "masked_fill_", "contiguous", "reshape", "lt", "ones", "full",
	"arange", "cumsum", "bool", "long"}

// classify tells what a traced op computes, from its name and shapes, and whether its operands are contiguous: [True,
// False]. Group is "" for what launches no kernel: a view, a value of the host, a contiguous of what is, a dropout in
// inference.
func classify(op, target, kwargs string, in, out [][]int, contiguous string, inference bool) (group string, c Call) {
	if !strings.HasPrefix(op, "call_") || len(out) == 0 || len(in) == 0 {
		return "", Call{}
	}
	y := out[0]
	width := y[len(y)-1]
	pass := func(group, kind string, read int) (string, Call) {
		return group, Call{Kind: kind, Form: Stream, Dims: stream(elementsOf(y)/max(1, width), width, read, 1)}
	}
	function := functionOf(op, target)
	switch {
	case slices.Contains([]string{"matmul", "bmm"}, function):
		m := y[len(y)-2]
		return "BMM", Call{Kind: "bmm", Form: Gemm, Dims: Dims{B: elementsOf(y) / (m * width), M: m,
			N: in[0][len(in[0])-1], K: width}}
	case function == "addmm" && len(in) == 3:
		return "FC", Call{Kind: "linear", Form: Gemm, Dims: Dims{B: 1, M: in[1][0], N: in[1][1], K: width}}
	case function == "linear":
		n := in[0][len(in[0])-1]
		return "FC", Call{Kind: "linear", Form: Gemm, Dims: Dims{B: 1, M: elementsOf(in[0]) / n, N: n, K: width}}
	case function == "layer_norm":
		return pass("LN", "ln", 1)
	case function == "softmax":
		return pass("Softmax", "softmax", 1)
	case function == "dropout":
		if inference || strings.Contains(kwargs, "'p': 0.0") || strings.Contains(kwargs, "'training': False") {
			return "", Call{} // it drops nothing
		}
		return pass("other", "addu", 1) // as published results have it
	case function == "embedding":
		return pass("other", "addu", 1)
	case elementsOf(y) <= 1:
		return "", Call{} // on the host
	case elementwise[function][0] != "":
		full := 0
		for _, s := range in {
			if elementsOf(s) == elementsOf(y) {
				full++
			}
		}
		full = min(max(full, 1), 2)
		return pass("EW", elementwise[function][full-1], full)
	case slices.Contains([]string{"contiguous", "reshape"}, function) && strings.HasPrefix(contiguous, "[True"):
		return "", Call{}
	case slices.Contains(copies, function):
		return pass("other", "addu", 1)
	}
	return "", Call{} // a view
}

// functionOf is what a traced op calls: of a module, what its path says.
func functionOf(op, target string) string {
	if op != "call_module" {
		target = strings.Trim(target, "<>")
		for _, prefix := range []string{"built-in function ", "built-in method ", "function "} {
			target = strings.TrimPrefix(target, prefix)
		}
		name, _, _ := strings.Cut(target, " ")
		return name
	}
	last := target[strings.LastIndex(target, ".")+1:]
	switch {
	case strings.Contains(last, "layernorm"), strings.Contains(last, "layer_norm"), strings.HasPrefix(last, "ln_"):
		return "layer_norm"
	case strings.Contains(last, "drop"):
		return "dropout"
	case strings.Contains(last, "embed"), last == "wte", last == "wpe":
		return "embedding"
	case last == "activation": // of a pooler
		return "tanh"
	case last == "activation_fn":
		return "relu"
	}
	return "linear"
}
