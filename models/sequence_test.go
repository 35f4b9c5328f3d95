package models

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
)

// TestSequenceParameters compares with the closed forms of docs/models.md, and with the figures of others: BERT-base's
// encoder and pooler have 109,482,240, its heads the rest; GNMT's are the sums of PipeDream's profiles gnmt and
// gnmt_large; Tacotron2's those of NVIDIA's reference.
func TestSequenceParameters(t *testing.T) {
	heads := int64(768*768+768+2*768+30522) + 2*768 + 2
	tests := []struct {
		model     string
		published int64
	}{
		{"bert", 109_482_240 + heads},
		{"gpt2", 124_439_808},
		{"gnmt", 193_765_952},
		{"gnmt:8,1024", 277_717_568},
		{"rhn", 23_482_400},
		{"tacotron2", 28_193_153},
		{"bert:2,8,2", 0}, {"gpt:3,16,4", 0}, {"gnmt:5,8", 0}, {"rhn:3,8", 0}, {"tacotron:2,32", 0},
	}
	for _, test := range tests {
		g := build(t, test.model, Config{Batch: 1, Sequence: 3})
		got, want := g.Parameters(), closedForm(t, test.model)
		if got != want || test.published != 0 && got != test.published {
			t.Errorf("%s has %d parameters, its closed form %d, and %d are published", test.model, got, want,
				test.published)
		}
	}
}

// Every step of an LSTM, the first too, adds the bias of the product of the step before, as torch and cuDNN do.
func TestLSTMBiases(t *testing.T) {
	for _, name := range []string{"gnmt:3,8", "tacotron:1,16"} {
		g := build(t, name, Config{Sequence: 3, Vocabulary: 9, Batch: 2})
		maker := make(map[graph.Version]graph.Op)
		steps := 0
		for _, op := range g.Ops {
			for _, v := range g.Writes(op.ID) {
				maker[v] = op
			}
			if op.Kind != graph.LSTM {
				continue
			}
			steps++
			biases := 0
			for _, in := range op.Inputs {
				if made, ok := maker[g.Version(in)]; ok {
					for _, of := range made.Inputs {
						if strings.HasSuffix(g.Tensors[of].Name, ".before.b") {
							biases++
						}
					}
				}
			}
			if biases != 1 {
				t.Errorf("%s: %s adds %d biases of the step before, want 1", name, op.Name, biases)
			}
		}
		if steps < 10 {
			t.Errorf("%s has %d steps of an LSTM", name, steps)
		}
	}
}

// closedForm counts a network's parameters by the formulas of docs/models.md.
func closedForm(t *testing.T, name string) int64 {
	sizes := map[string][]int64{
		"bert": {12, 768}, "gpt2": {12, 768}, "gnmt": {4, 1024}, "gnmt:8,1024": {8, 1024}, "rhn": {10, 830},
		"tacotron2":  {3, 512},
		"bert:2,8,2": {2, 8}, "gpt:3,16,4": {3, 16}, "gnmt:5,8": {5, 8}, "rhn:3,8": {3, 8}, "tacotron:2,32": {2, 32},
	}[name]
	l, h := sizes[0], sizes[1]
	layer := 4*(h*h+h) + 2*h + (4*h*h + 4*h) + (4*h*h + h) + 2*h
	lstm := func(in, h int64) int64 { return 4*h*(in+h) + 8*h }
	switch {
	case strings.HasPrefix(name, "bert"):
		const v, p = 30522, 512
		return v*h + p*h + 2*h + 2*h + l*layer + (h*h + h) + (h*h + h + 2*h + v) + (2*h + 2)
	case strings.HasPrefix(name, "gpt"):
		const v, p = 50257, 1024
		return v*h + p*h + l*layer + 2*h
	case strings.HasPrefix(name, "gnmt"):
		const v = 32320
		encoder := 2*lstm(h, h) + lstm(2*h, h) + (l-2)*lstm(h, h)
		decoder := lstm(h, h) + (2*h*h + h) + (l-1)*lstm(2*h, h)
		return 2*v*h + encoder + decoder + v*h + v
	case strings.HasPrefix(name, "rhn"):
		const v = 10000
		return v*h + v + 2*h*h + 2*l*(h*h+h)
	case strings.HasPrefix(name, "tacotron"):
		const v, mel = 148, 80
		conv := func(in, out int64) int64 { return 5*in*out + out + 2*out }
		encoder := v*h + l*conv(h, h) + 2*lstm(h, h/2)
		attention := 2*h*h/4 + h*h/4 + h/4 + 2*31*h/16 + h/16*h/4
		decoder := mel*h/2 + h/2*h/2 + lstm(h/2+h, 2*h) + attention + lstm(3*h, 2*h) + 3*h*(mel+1) + mel + 1
		return encoder + decoder + conv(mel, h) + 3*conv(h, h) + conv(h, mel)
	}
	t.Fatalf("%s has no closed form", name)
	return 0
}

// TestSequenceMACs compares the arithmetic of a forward pass at batch 1 with the sums of the layers' products: L(4SH² +
// 2S²H
// + 2SHF), and SHV for a head. BERT's is given without its heads and pooler.
func TestSequenceMACs(t *testing.T) {
	tests := []struct {
		model string
		steps int
		head  bool
		want  float64 // 1e9 multiply-adds
	}{
		{"bert", 128, false, 11.17}, {"bert", 512, false, 48.32}, {"gpt2", 1024, false, 106.30},
		{"gpt2", 1024, true, 145.82},
	}
	for _, test := range tests {
		g := build(t, test.model, Config{Batch: 1, Sequence: test.steps})
		var flops int64
		for _, op := range g.Ops {
			if op.Phase == graph.Forward && (op.Kind == graph.Linear || op.Kind == graph.MatMul) &&
				(test.head || strings.HasPrefix(op.Layer, "layer")) {
				flops += g.Cost(op.ID).FLOPs
			}
		}
		if got := float64(flops) / 2e9; got < 0.99*test.want || got > 1.01*test.want {
			t.Errorf("%s of %d steps: %.3f G multiply-adds, want %.2f within 1 %%", test.model, test.steps, got,
				test.want)
		}
	}
}

// TestSequenceDefaults: without settings the sizes are the published ones.
func TestSequenceDefaults(t *testing.T) {
	for name, want := range map[string]struct {
		input graph.Shape
		rate  float64
	}{
		"bert": {graph.Shape{16, 128}, 1e-4}, "gpt2": {graph.Shape{16, 1024}, 1e-4}, "gnmt": {graph.Shape{16, 50},
			1e-3},
		"rhn": {graph.Shape{16, 35}, 1e-3}, "tacotron2": {graph.Shape{16, 100}, 1e-3},
	} {
		g := build(t, name, Config{})
		if got := g.Tensors[0].Shape; !slices.Equal(got, want.input) {
			t.Errorf("%s: input %v, want %v", name, got, want.input)
		}
		if got := g.Ops[len(g.Ops)-1].Attrs.LearningRate; !closeTo(got, want.rate) {
			t.Errorf("%s: learning rate %v, want %v", name, got, want.rate)
		}
	}
}

// TestGraphsAreSmall: an unrolled network has tens of thousands of ops, and none takes more than 1 KB.
func TestGraphsAreSmall(t *testing.T) {
	for _, name := range []string{"gpt2", "gnmt:8,1024", "rhn", "tacotron2"} {
		before := heap()
		g := build(t, name, Config{})
		if each := (heap() - before) / int64(len(g.Ops)); each > 1000 { // negative: something else was let go
			t.Errorf("%s: %d ops of %d bytes each", name, len(g.Ops), each)
		}
		runtime.KeepAlive(g)
	}
}

// heap is how many bytes are in use. What pools hold lives through one collection.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestUnrolled: a step more adds the same number of ops, whatever the length.
func TestUnrolled(t *testing.T) {
	for _, name := range []string{"gnmt:2,4", "rhn:2,4", "tacotron:1,16"} {
		ops := func(steps int) int { return len(build(t, name, Config{Sequence: steps, Vocabulary: 9, Batch: 1}).Ops) }
		if first, second := ops(5)-ops(4), ops(9)-ops(8); first != second || first < 1 {
			t.Errorf("%s: a step adds %d ops to 4 and %d to 8", name, first, second)
		}
	}
}

// TestGNMTDropout compares what gnmt drops out, and what reads it, with PipeDream's profile gnmt
// (github.com/msr-fiddle/pipedream, profiler/translation/profiles/gnmt/graph.txt): the input of every layer but the
// first of encoder and decoder, and in the decoder before the attention's answer is joined to it.
func TestGNMTDropout(t *testing.T) {
	g := build(t, "gnmt:4,8", Config{Sequence: 3, Vocabulary: 9, Batch: 2})
	maker, readers := make(map[graph.StorageID]string), make(map[graph.StorageID][]string)
	var dropouts []graph.Op
	for _, op := range g.Ops {
		if op.Phase != graph.Forward {
			continue
		}
		for _, in := range op.Inputs {
			s := g.Tensors[in].Storage
			readers[s] = append(readers[s], op.Name)
		}
		maker[g.Tensors[op.Outputs[0]].Storage] = op.Name
		if op.Kind == graph.Dropout {
			dropouts = append(dropouts, op)
		}
	}
	var got []string
	for _, op := range dropouts {
		from, to := g.Tensors[op.Inputs[0]], g.Tensors[op.Outputs[0]]
		got = append(got, fmt.Sprintf("%s %v -> %s", maker[from.Storage], from.Shape, strings.Join(readers[to.Storage],
			" ")))
	}
	want := []string{
		"encoder1 [2 3 16] -> encoder2.below",
		"encoder2 [2 3 8] -> encoder3.below",
		"encoder3.add [2 3 8] -> encoder4.below",
		"decoder1 [2 3 8] -> decoder2.in",
		"decoder2 [2 3 8] -> decoder3.in",
		"decoder3.add [2 3 8] -> decoder4.in",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
