package predictor

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trace is a tiny network of BERT's names on a board, with a label.
func trace(t *testing.T, label string, rows ...string) string {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "NVIDIA_Y2")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	head := "op,target,_kwargs,input_shapes,fw_latency,output_shape,Name\n"
	for name, content := range map[string]string{"bert_tiny.csv": head + strings.Join(rows, "\n") + "\n",
		"bert_tiny.json": label} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	embedRow = `call_module,bert.embeddings.word_embeddings,{},"[[2, 512]]",0.04,"(2, 512, 1024)",embed`
	queryRow = `call_module,bert.encoder.layer.0.attention.self.query,{},"[[2, 512, 1024]]",0.27,"(2, 512, 1024)",` +
		`bert_encoder_layer_0_attention_self_query`
	viewRow = `call_method,view,{},"[[2, 512, 1024], [1]]",0.015,"(2, 512, 16, 64)",view`
	normRow = `call_module,bert.encoder.layer.0.output.LayerNorm,{},"[[2, 512, 1024]]",0.044,"(2, 512, 1024)",` +
		`bert_encoder_layer_0_output_layer_norm`
	endRow = `output,output,{},"[[2, 512, 30522], [2, 2]]",0,"(2, 2)",output`
)

func TestReadTraces(t *testing.T) {
	networks, _, err := ReadTraces(trace(t, `{"num_layer": 3, "fw_latency": 2.5}`, embedRow, queryRow, viewRow, normRow,
		endRow), "", boards())
	if err != nil {
		t.Fatal(err)
	}
	n := networks[0]
	if len(networks) != 1 || n.Name != "bert_tiny" || n.Device != 1 || n.Forward != 2.5e-3 || len(n.Ops) != 1+3*3+1 {
		t.Fatalf("got %+v", networks)
	}
	if op := n.Ops[4]; op.Group != "FC" || op.Call.Dims != (Dims{B: 1, M: 1024, N: 1024, K: 1024}) ||
		math.Abs(op.Seconds-0.27e-3) > 1e-12 {
		t.Errorf("the second layer begins with %+v", op)
	}
	if n.Ops[2].Group != "" || n.Ops[3].Group != "LN" || n.Ops[0].Group != "other" {
		t.Errorf("groups of %+v", n.Ops[:4])
	}

	e := EvaluateTraces(model(t), networks)
	want := 0.04 + 3*(0.27+0.044) // a view launches nothing
	if x := e.Networks[0]; math.Abs(x.Measured-want) > 1e-9 || x.Predicted <= 0 ||
		math.Abs(x.Error.Alone-math.Abs(x.Predicted-want)/want) > 1e-9 || e.Mean != x.Error {
		t.Errorf("got %+v, want %v measured", x, want)
	}
	if len(e.Groups) != 3 || e.Groups[0].Group != "FC" || e.Groups[0].Ops != 3 {
		t.Errorf("groups are %+v", e.Groups)
	}
}

// A network of which it is not known where a layer begins is skipped, and the others are judged.
func TestReadTracesSkips(t *testing.T) {
	dir := trace(t, `{"num_layer": 3, "fw_latency": 2.5}`, queryRow, normRow)
	for _, end := range []string{".csv", ".json"} {
		content, err := os.ReadFile(filepath.Join(dir, "NVIDIA_Y2", "bert_tiny"+end))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "NVIDIA_Y2", "switch4-inf"+end), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	networks, skipped, err := ReadTraces(dir, "", boards())
	if err != nil || len(networks) != 1 || len(skipped) != 1 || !strings.Contains(skipped[0],
		"switch4-inf.csv: it is not known where a layer of this network begins: known are bert, gpt and opt") {
		t.Errorf("got %d networks, skipped %q, %v", len(networks), skipped, err)
	}
	if err := os.Remove(filepath.Join(dir, "NVIDIA_Y2", "bert_tiny.csv")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadTraces(dir, "", boards()); err == nil || !strings.Contains(err.Error(),
		"none of its 1 networks can be read") {
		t.Errorf("only a network that is not known: %v", err)
	}
}

// What another predictor says of the same ops is judged beside; files that do not fit together are refused.
func TestReadTracesBeside(t *testing.T) {
	dir := trace(t, `{"num_layer": 3, "fw_latency": 2.5}`, queryRow, viewRow, normRow)
	other := trace(t, `{}`, strings.Replace(queryRow, "0.27", "0.54", 1), viewRow, normRow)
	networks, _, err := ReadTraces(dir, other, boards())
	if err != nil {
		t.Fatal(err)
	}
	e := EvaluateTraces(model(t), networks)
	for _, g := range e.Groups {
		if want := map[string]float64{"FC": 1, "LN": 0}[g.Group]; math.Abs(g.Sum.Beside-want) > 1e-6 ||
			math.Abs(g.Op.Beside-want) > 1e-6 {
			t.Errorf("%s: %+v, want errors of %v beside", g.Group, g, want)
		}
	}
	if want := (2.5 - 3*(0.54+0.044)) / 2.5; math.Abs(e.EndToEnd.Beside-want) > 1e-6 {
		t.Errorf("end to end %+v, want %v beside", e.EndToEnd, want)
	}
	for want, other := range map[string]string{
		"2 ops, the measured network has 3":      trace(t, `{}`, queryRow, normRow),
		`row 3: column Name: the measured netwo`: trace(t, `{}`, queryRow, normRow, viewRow),
		"no such file":                           t.TempDir(),
	} {
		if _, _, err := ReadTraces(dir, other, boards()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestReadTracesRefuses(t *testing.T) {
	const label = `{"num_layer": 3, "fw_latency": 2.5}`
	for _, test := range []struct{ name, dir, want string }{
		{"empty", t.TempDir(), "no DEVICE/NETWORK.csv"},
		{"no end", trace(t, label, queryRow, viewRow), "a layer should go from"},
		{"label", trace(t, `{`, queryRow, normRow), "label"},
		{"latency", trace(t, label, queryRow, strings.Replace(viewRow, "0.015", "fast", 1), normRow),
			"row 3: column fw_latency"},
		{"shape", trace(t, label, strings.Replace(queryRow, "[[2, 512, 1024]]", "[[2, x]]", 1), normRow),
			"row 2: column input_shapes"},
	} {
		if _, _, err := ReadTraces(test.dir, "", boards()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
	const want = "folders of devices are expected in"
	if _, _, err := ReadTraces(trace(t, label, queryRow, normRow), "", boards()[:1]); err == nil ||
		!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `no device file describes "NVIDIA_Y2"`) {
		t.Errorf("a folder that is no device's: %v", err)
	}
}

func TestClassify(t *testing.T) {
	x := []int{2, 16, 512, 64}
	for _, test := range []struct {
		op, target, kwargs string
		in                 [][]int
		out                []int
		group, kind        string
		bytes              float64
	}{
		{"call_function", "<built-in method matmul of type object at 0x1>", "{}", [][]int{x, {2, 16, 64, 512}},
			[]int{2, 16, 512, 512}, "BMM", "bmm", 4 * 32 * (2*512*64 + 512*512)},
		{"call_function", "<built-in method addmm of type object at 0x1>", "{}", [][]int{{30}, {10, 20}, {20, 30}},
			[]int{10, 30}, "FC", "linear", 4 * (200 + 600 + 300)},
		{"call_function", "<built-in function add>", "{}", [][]int{x, x}, x, "EW", "add", 12 * 2 * 16 * 512 * 64},
		{"call_function", "<built-in function add>", "{}", [][]int{x, {1}}, x, "EW", "addu", 8 * 2 * 16 * 512 * 64},
		{"call_function", "<built-in function add>", "{}", [][]int{{1}}, []int{1}, "", "", 0},
		{"call_function", "<built-in function getitem>", "{}", [][]int{x}, []int{16, 512, 64}, "", "", 0},
		{"call_function", "<function softmax at 0x1>", "{}", [][]int{x}, x, "Softmax", "softmax",
			8 * 2 * 16 * 512 * 64},
		{"call_function", "<function dropout at 0x1>", "{'p': 0.0, 'training': True}", [][]int{x}, x, "", "", 0},
		{"call_function", "<function dropout at 0x1>", "{'p': 0.1, 'training': True}", [][]int{x}, x, "other", "addu",
			8 * 2 * 16 * 512 * 64},
		{"call_method", "permute", "{}", [][]int{x}, []int{2, 512, 16, 64}, "", "", 0},
		{"call_method", "contiguous", "{}", [][]int{x}, x, "other", "addu", 8 * 2 * 16 * 512 * 64},
		{"call_module", "bert.embeddings.dropout", "{}", [][]int{x}, x, "other", "addu", 8 * 2 * 16 * 512 * 64},
		{"call_module", "bert.embeddings.dropout", "{inference}", [][]int{x}, x, "", "", 0},
		{"call_method", "contiguous", "{contiguous}", [][]int{x}, x, "", "", 0},
		{"get_attr", "weight", "{}", nil, []int{30}, "", "", 0},
	} {
		contiguous := "[False, True]"
		if test.kwargs == "{contiguous}" {
			contiguous = "[True, False]"
		}
		group, c := classify(test.op, test.target, test.kwargs, test.in, [][]int{test.out}, contiguous,
			test.kwargs == "{inference}")
		if group != test.group || c.Kind != test.kind || group != "" && c.bytes() != test.bytes {
			t.Errorf("%s %s: %q %+v of %v bytes, want %q %q of %v", test.op, test.target, group, c, c.bytes(),
				test.group, test.kind, test.bytes)
		}
	}
}
