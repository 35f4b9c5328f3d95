package external

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/internal/golden"
)

func to[T any](v T) *T { return &v }

// small is the graph of the package's comment.
func small() *graph.Graph {
	return &graph.Graph{Name: "train",
		Storages: []graph.Storage{
			{ID: 0, Name: "w", Role: graph.Parameter, Bytes: 4},
			{ID: 1, Name: "a", Role: graph.Activation, Bytes: 9, Until: 2}},
		Tensors: []graph.Tensor{
			{ID: 0, Name: "w", Storage: 0, Shape: graph.Shape{4}, DType: graph.Uint8},
			{ID: 1, Name: "a", Storage: 1, Shape: graph.Shape{9}, DType: graph.Uint8},
			{ID: 2, Name: "w", Storage: 0, Version: 1, Shape: graph.Shape{4}, DType: graph.Uint8}},
		Ops: []graph.Op{
			{ID: 0, Name: "aten.mm", Kind: graph.Opaque, Inputs: []graph.TensorID{0}, Outputs: []graph.TensorID{1},
				Phase: graph.Forward, Forward: graph.NoOp},
			{ID: 1, Name: "aten.add_", Kind: graph.Opaque, Inputs: []graph.TensorID{0, 1},
				Outputs: []graph.TensorID{2}, Attrs: graph.Attrs{Scratch: 64}, Phase: graph.Optimize,
				Forward: graph.NoOp}}}
}

// samples are messages of all kinds, with all their fields, in an order in which they may come.
func samples() map[Side][]Message {
	return map[Side][]Message{
		Script: {
			Hello{PID: 7, Framework: "torch", Release: "1.13.0", Device: Device{Kind: "cpu", Name: "cpu",
				Memory: 1 << 34, Least: 1024, Out: 5e9, In: 6e9, Base: 3}, Rank: to(0)},
			Recorded{Number: 1, Graph: small(), Latency: []time.Duration{5, 6}, Held: 12},
			Applied{Plan: 1, Iteration: 3, Reserved: 99},
			Applied{Plan: 2, Iteration: 3, Reserved: 99, Error: "there is no storage 5"},
			Iteration{Iteration: 4, Graph: 1, Plan: 1, Wall: 50, Stall: 7, Hooks: true,
				Steps: []time.Duration{5, 6}, Touched: 80,
				Reserved: 90, Host: 13, Faults: 1, Loss: to(0.5)},
			Passive{Iteration: 4, Why: "op 1 is aten.mul, not aten.add_", Always: true},
			Parked{Number: 1, Iteration: 5, Reserved: 0},
			End{Iteration: 6, Stopped: true},
			End{Iteration: 6, Error: "RuntimeError"},
		},
		Sidecar: {
			Plan{Number: 1, Limit: 100, Why: "no plan needs less than 120 bytes"},
			Plan{Number: 2, Graph: 1, Limit: 100, Bytes: 77, Entry: []graph.StorageID{0}, Boundaries: []Boundary{
				{Before: 1, Do: []Action{{Do: Out, Storage: to(graph.StorageID(0)), Wait: true},
					{Do: Drop, Storage: to(graph.StorageID(1))},
					{Do: Again, Op: to(graph.OpID(0)), Outputs: []int{0}},
					{Do: In, Storage: to(graph.StorageID(0))}}},
				{Before: 2, Do: []Action{{Do: Again, Op: to(graph.OpID(0))}}}}},
			Plan{Number: 3, Limit: 100, Strict: true}, Park{Number: 1}, Resume{Number: 2}, Stop{},
		},
	}
}

func lines(t *testing.T, messages []Message) []byte {
	t.Helper()
	var text []byte
	for _, m := range messages {
		line, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, line...)
	}
	return text
}

// TestLines keeps what messages look like, and shows that each is the same after it was written and read.
func TestLines(t *testing.T) {
	for side, name := range map[Side]string{Script: "script.jsonl", Sidecar: "sidecar.jsonl"} {
		text := lines(t, samples()[side])
		golden.Compare(t, filepath.Join("testdata", name), string(text))
		r := NewReader(bytes.NewReader(text), side)
		for _, want := range samples()[side] {
			got, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: at the end %v, want EOF", name, err)
		}
		other := Script + Sidecar - side
		for line := range bytes.Lines(text) {
			if m, err := Decode(line[:len(line)-1], other); err == nil {
				t.Errorf("the other side may say %v", m)
			}
		}
	}
}

// TestRefusesLines shows what is no message.
func TestRefusesLines(t *testing.T) {
	body := func(kind, body string) string { return `{"version":1,"kind":"` + kind + `","body":` + body + `}` }
	recorded, err := Encode(samples()[Script][1])
	if err != nil {
		t.Fatal(err)
	}
	change := func(old, with string) string {
		if !strings.Contains(string(recorded), old) {
			t.Fatalf("there is no %s in %s", old, recorded)
		}
		return strings.TrimSuffix(strings.Replace(string(recorded), old, with, 1), "\n")
	}
	for _, c := range []struct {
		side       Side
		line, want string
	}{
		{Script, ``, "no message"},
		{Script, `[]`, "no message"},
		{Script, `{"version":1,"kind":"end","body":{"iteration":1},"more":1}`, "unknown field"},
		{Script, body("end", `{"iteration":1}`) + "{}", "more text"},
		{Script, "{\n}", "more than a line"},
		{Script, `{"version":2,"kind":"end","body":{"iteration":1}}`, "version 2"},
		{Script, body("stop", `{}`), `no kind "stop"`},
		{Sidecar, body("end", `{"iteration":1}`), `no kind "end"`},
		{Script, body("end", `null`), "no body"},
		{Script, body("end", `{"iteration":1,"other":2}`), "unknown field"},
		{Script, body("end", `{"iteration":-1}`), "iteration is -1"},
		{Script, body("end", `{"iteration":1,"error":"a\nb"}`), "control character"},
		{Script, body("end", `{"iteration":1,"error":"a","stopped":true}`), "failed, and was stopped"},
		{Script, body("end", `{"iteration":1,"error":"`+strings.Repeat("a", maxText+1)+`"}`), "8192 at most"},
		{Script, body("passive", `{"iteration":1,"why":""}`), "does not say why"},
		{Script, body("hello", `{"pid":1,"framework":"jax","release":"","device":{"kind":"cpu"}}`), "not known: torch"},
		{Script, body("hello", `{"pid":1,"framework":"torch","release":"","device":{"kind":"tpu"}}`), "cpu, cuda"},
		{Script, body("hello", `{"pid":0,"framework":"torch","release":"","device":{"kind":"cpu"}}`), "pid is 0"},
		{Script, body("iteration", `{"iteration":1,"graph":0,"plan":3}`), "was not sent"},
		{Script, body("iteration", `{"iteration":1,"graph":1,"wall_ns":3,"stall_ns":4}`), "stall_ns is 4"},
		{Script, body("graph", `{"number":1}`), "no graph"},
		{Script, change(`"held_bytes":12`, `"held_bytes":70368744177664`), "bytes together, with what is held"},
		{Script, change(`[5,6]`, `[5]`), "1 latencies, for 2 ops"},
		{Script, change(`[5,6]`, `[5,-6]`), "latency_ns is -6"},
		{Script, change(`"kind":"opaque"`, `"kind":"relu"`), "op aten.mm"},
		{Script, change(`"until":2`, `"until":3`), "up to 2"},
		{Script, change(`"until":2`, `"until":1`), "after op 1"},
		{Script, change(`"role":"parameter"`, `"role":"input"`), "writes input"},
		{Script, change(`"shape":[9]`, `"shape":[8]`), "cover its whole storage"},
		{Script, change(`"scratch":64`, `"scratch":-64`), "scratch -64"},
		{Script, change(`"bytes":9,"until"`, `"bytes":9,"begin":1,"until"`), "parts of something"},
		{Sidecar, body("plan", `{"number":0,"graph":0,"limit_bytes":0}`), "number is 0"},
		{Sidecar, body("plan", `{"number":1,"graph":0,"limit_bytes":0,"entry":[1]}`), "for no graph"},
		{Sidecar, body("plan", `{"number":1,"graph":1,"limit_bytes":9,"entry":[2,2]}`), "do not ascend"},
		{Sidecar, body("plan", `{"number":1,"graph":1,"limit_bytes":9,"strict":true}`), "it is strict"},
		{Sidecar, body("plan", `{"number":1,"graph":0,"limit_bytes":0,"strict":true}`), "it is strict"},
		{Sidecar, body("plan", `{"number":1,"graph":1,"limit_bytes":0,"boundaries":[{"before":1,"do":[]}]}`),
			"nothing to do"},
		{Sidecar, body("plan", `{"number":1,"graph":1,"limit_bytes":0,"boundaries":[`+
			`{"before":1,"do":[{"do":"drop","storage":1,"wait":true}]}]}`), "a drop does not wait"},
		{Sidecar, body("plan", `{"number":1,"graph":1,"limit_bytes":0,"boundaries":[`+
			`{"before":1,"do":[{"do":"again","op":1,"outputs":[1,0]}]}]}`), "do not ascend"},
		{Sidecar, body("plan", `{"number":1,"graph":1,"limit_bytes":0,"boundaries":[`+
			`{"before":1,"do":[{"do":"fly"}]}]}`), "nothing to do"},
		{Sidecar, body("park", `{"number":0}`), "number is 0"},
	} {
		if m, err := Decode([]byte(c.line), c.side); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.120s: got %v and %v, want an error with %q", c.line, m, err, c.want)
		}
	}
}

// TestFile reads the file that is kept, and refuses others.
func TestFile(t *testing.T) {
	all := samples()[Script]
	text := lines(t, all[:2])
	golden.Compare(t, filepath.Join("testdata", "recorded.json"), string(text))
	f, err := os.Open(filepath.Join("testdata", "recorded.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := ReadFile(f)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&File{all[0].(Hello), all[1].(Recorded)}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, c := range []struct {
		text []byte
		want string
	}{
		{nil, "record it again"},
		{lines(t, all[:1]), "record it again"},
		{lines(t, all[1:3]), "begins with hello"},
		{lines(t, []Message{all[0], all[2]}), "ends with graph"},
		{lines(t, all[:3]), "more behind"},
		{text[:len(text)-1], "line 2: it has no end"},
		{[]byte("{}\n"), "line 1"},
	} {
		if _, err := ReadFile(bytes.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: error %v, want one with %q", c.text, err, c.want)
		}
	}
}

// endless is a line that does not end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestLongLine shows that a line which does not end is refused when it is too long.
func TestLongLine(t *testing.T) {
	_, err := NewReader(endless{}, Script).Next()
	if err == nil || !strings.Contains(err.Error(), "line 1: it has more") {
		t.Errorf("error %v", err)
	}
}

// FuzzDecode refuses any bytes, or reads what is the same after it was written.
func FuzzDecode(f *testing.F) {
	for side, messages := range samples() {
		for _, m := range messages {
			line, err := Encode(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(line[:len(line)-1], side == Script)
		}
	}
	f.Fuzz(func(t *testing.T, line []byte, script bool) {
		side := Sidecar
		if script {
			side = Script
		}
		m, err := Decode(line, side)
		if err != nil {
			return
		}
		again, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(again[:len(again)-1], side)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := Encode(got)
		if err != nil || !bytes.Equal(again, twice) {
			t.Errorf("%s\nis after it was read and written %s, %v", again, twice, err)
		}
	})
}
