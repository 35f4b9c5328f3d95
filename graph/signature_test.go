package graph

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// All that decides what an op costs changes its signature: kind, way of the device, shape, type and identity of
// operands, each attribute but those that cost nothing.
func TestSignatureCounts(t *testing.T) {
	plain := tiny(t).Signature(6, "direct")
	if len(plain) != SignatureDigits || strings.Trim(string(plain), "0123456789abcdef") != "" {
		t.Errorf("the signature is %q", plain)
	}
	seen := map[Signature]string{plain: "nothing"}
	differs := func(what string, change func(g *Graph, o *Op)) {
		g := tiny(t)
		change(g, &g.Ops[6])
		s := g.Signature(6, "direct")
		if other, ok := seen[s]; ok {
			t.Errorf("changing %s and changing %s give one signature", what, other)
		}
		seen[s] = what
	}
	differs("kind", func(_ *Graph, o *Op) { o.Kind = Momentum })
	differs("shape", func(g *Graph, o *Op) { g.Tensors[o.Inputs[0]].Shape = Shape{3, 4} })
	differs("shape of an output", func(g *Graph, o *Op) { g.Tensors[o.Outputs[0]].Shape = Shape{12} })
	differs("type", func(g *Graph, o *Op) { g.Tensors[o.Inputs[1]].DType = Float64 })
	differs("sameness", func(_ *Graph, o *Op) { o.Inputs[1] = o.Inputs[0] })
	differs("number of operands", func(_ *Graph, o *Op) { o.Inputs = append(slices.Clone(o.Inputs), o.Inputs[1]) })
	attrs := reflect.TypeFor[Attrs]()
	for i, name := range attrNames {
		if name == "key" || name == "learning_rate" {
			continue
		}
		for at := range max(1, map[reflect.Kind]int{reflect.Array: 2}[attrs.Field(i).Type.Kind()]) {
			differs(name, func(_ *Graph, o *Op) {
				f := reflect.ValueOf(&o.Attrs).Elem().Field(i)
				if f.Kind() == reflect.Array {
					f = f.Index(at)
				}
				switch f.Kind() {
				case reflect.Float64:
					f.SetFloat(0.75)
				case reflect.Bool:
					f.SetBool(true)
				default:
					f.SetInt(7)
				}
			})
		}
	}
	if other := tiny(t).Signature(6, "blocked"); seen[other] != "" || other == plain {
		t.Error("the way in which a device executes it does not count")
	}
}

// What costs nothing leaves a signature as it is: names, layers, storages, the key of a generator, the learning rate.
func TestSignatureLeavesOut(t *testing.T) {
	plain := tiny(t)
	for name, change := range map[string]func(g *Graph){
		"names":         func(g *Graph) { g.Name, g.Ops[6].Name, g.Tensors[g.Ops[6].Inputs[0]].Name = "a", "b", "c" },
		"layer, phase":  func(g *Graph) { g.Ops[6].Layer, g.Ops[6].Phase = "first", Backward },
		"key":           func(g *Graph) { g.Ops[6].Attrs.Key = 9 },
		"learning rate": func(g *Graph) { g.Ops[6].Attrs.LearningRate = 9 },
		"other ops":     func(g *Graph) { g.Ops[0].Kind = LinearDX },
	} {
		g := tiny(t)
		if change(g); g.Signature(6, "") != plain.Signature(6, "") {
			t.Errorf("the signature changes with %s", name)
		}
	}
}
