package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJSONRoundTrip(t *testing.T) {
	graphs := []*Graph{tiny(t)}
	for _, call := range calls {
		g, err := use(call.kind, call.attrs, call.in).Graph()
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	for _, g := range graphs {
		text := encode(t, g)
		again, err := Read(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(g, again); diff != "" {
			t.Errorf("after a round trip (-want +got):\n%s", diff)
		}
		if g.Digest() != again.Digest() {
			t.Errorf("the digest of %s changed in a round trip", g.Name)
		}
	}
}

func encode(t *testing.T, g *Graph) []byte {
	t.Helper()
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDigest checks that whatever is changed in a graph changes its digest.
func TestDigest(t *testing.T) {
	seen := map[Digest]string{}
	for name, change := range map[string]func(g *Graph){
		"nothing":  func(*Graph) {},
		"name":     func(g *Graph) { g.Name = "other" },
		"role":     func(g *Graph) { g.Storages[4].Role = Output },
		"init":     func(g *Graph) { g.Storages[2].Init.Scale = 0.25 },
		"shape":    func(g *Graph) { g.Tensors[3].Shape = Shape{4, 2} },
		"operand":  func(g *Graph) { g.Ops[4].Inputs[0] = 4 },
		"attrs":    func(g *Graph) { g.Ops[6].Attrs.LearningRate = 0.2 },
		"layer":    func(g *Graph) { g.Ops[0].Layer = "first" },
		"op order": func(g *Graph) { swapOps(g, 4, 5) },
	} {
		g := tiny(t)
		change(g)
		d := g.Digest()
		if len(d) != 64 {
			t.Errorf("digest %q is not 64 digits", d)
		}
		if other, ok := seen[d]; ok {
			t.Errorf("changing %s and changing %s give one digest", name, other)
		}
		seen[d] = name
	}
}

// TestDigestOfEveryField changes every field of the graph's parts, by reflection, so that none is forgotten.
func TestDigestOfEveryField(t *testing.T) {
	plain := tiny(t).Digest()
	changed := 0
	var change func(v reflect.Value, what string, parts func(g *Graph) reflect.Value)
	change = func(v reflect.Value, what string, part func(g *Graph) reflect.Value) {
		if v.Kind() == reflect.Struct || v.Kind() == reflect.Array {
			for i := range map[bool]func() int{true: v.NumField, false: v.Len}[v.Kind() == reflect.Struct]() {
				of := func(v reflect.Value) reflect.Value {
					if v.Kind() == reflect.Struct {
						return v.Field(i)
					}
					return v.Index(i)
				}
				change(of(v), fmt.Sprintf("%s.%d", what, i), func(g *Graph) reflect.Value { return of(part(g)) })
			}
			return
		}
		g := tiny(t)
		switch f := part(g); f.Kind() {
		case reflect.String:
			f.SetString(f.String() + "x")
		case reflect.Float64:
			f.SetFloat(f.Float() + 0.5)
		case reflect.Uint64:
			f.SetUint(f.Uint() + 1)
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Pointer:
			f.Set(reflect.Zero(f.Type()))
		case reflect.Slice:
			f.Set(reflect.Append(f, reflect.Zero(f.Type().Elem())))
		default:
			f.SetInt(f.Int() + 1)
		}
		if changed++; g.Digest() == plain {
			t.Errorf("%s of %v does not count", what, v.Kind())
		}
	}
	last := func(list any) reflect.Value { v := reflect.ValueOf(list); return v.Index(v.Len() - 1) }
	for _, part := range []func(g *Graph) reflect.Value{
		func(g *Graph) reflect.Value { return reflect.ValueOf(&g.Storages[2]).Elem() },
		func(g *Graph) reflect.Value { return reflect.ValueOf(g.Storages[2].Init).Elem() },
		func(g *Graph) reflect.Value { return last(g.Tensors) },
		func(g *Graph) reflect.Value { return last(g.Ops) },
	} {
		change(part(tiny(t)), part(tiny(t)).Type().Name(), part)
	}
	if changed < 30 {
		t.Errorf("only %d fields were changed", changed)
	}
}

func TestReadErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", "read graph: line 1, column 1: EOF"},
		{"syntax", "{\n  \"name\": \"a\",\n  \"ops\": [}", "read graph: line 3, column "},
		{"type", "{\"name\": \"a\",\n \"ops\": 3}", "read graph: line 2, column "},
		{"cut short", "{\"name\": \"a\"", "unexpected EOF"},
		{"unknown field", "{\"name\": \"a\", \"weights\": []}", `unknown field "weights"`},
		{"more text", "{\"name\": \"a\"}\n{}", "read graph: line 2, column 2: more text after the graph"},
		{"garbage after", "{\"name\": \"a\"}\n]", "more text after the graph"},
		{"invalid", `{"name": "a", "storages": [{"id": 1, "name": "s", "role": "input", "bytes": 4}]}`,
			"storage 0 (s) has id 1"},
	}
	for _, test := range tests {
		g, err := Read(strings.NewReader(test.text))
		if g != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want it to contain %q", test.name, err, test.want)
		}
	}
	broken := errors.New("broken pipe")
	if _, err := Read(failing{broken}); !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzRead checks that Read never panics, and that what it accepts is valid, answers every question about its ops, and
// survives a round trip.
func FuzzRead(f *testing.F) {
	for _, call := range calls {
		g, err := use(call.kind, call.attrs, call.in).Graph()
		if err != nil {
			f.Fatal(err)
		}
		text, err := json.Marshal(g)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"name":"a","storages":[{"id":0,"name":"s","role":"input","bytes":4}],"ops":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		if err := g.Validate(); err != nil {
			t.Fatalf("Read accepted an invalid graph: %v", err)
		}
		for i := range g.Ops {
			op := OpID(i)
			if c := g.Cost(op); c.FLOPs < 0 || c.Bytes <= 0 {
				t.Errorf("op %d costs %+v", i, c)
			}
			if len(g.Reads(op)) == 0 || len(g.Writes(op)) == 0 || g.WorkingSet(op) <= 0 {
				t.Errorf("op %d reads %v, writes %v, working set %v", i, g.Reads(op), g.Writes(op), g.WorkingSet(op))
			}
		}
		if n := g.Parameters(); n < 0 {
			t.Errorf("%d parameters", n)
		}
		again, err := Read(bytes.NewReader(encode(t, g)))
		if err != nil {
			t.Fatalf("what Read accepted is refused after a round trip: %v", err)
		}
		if g.Digest() != again.Digest() {
			t.Error("the digest changed in a round trip")
		}
	})
}
