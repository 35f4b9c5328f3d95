package onnx

import (
	"fmt"
	"maps"
	"slices"
)

// function is an operator that a model makes of nodes.
type function struct {
	name, domain, overload string
	inputs, outputs        []string
	nodes                  []Node
	defaults               []Attribute
	opsets                 []Opset
}

func (f *function) decode(b []byte) error {
	var ignored []byte
	return forEachField(b, &ignored, func(of field) error {
		switch of.number {
		case 1:
			return of.text(&f.name)
		case 4:
			return of.texts(&f.inputs)
		case 5:
			return of.texts(&f.outputs)
		case 7:
			return appended(&f.nodes, "node", of, (*Node).decode)
		case 9:
			return appended(&f.opsets, "opset", of, (*Opset).decode)
		case 10:
			return of.text(&f.domain)
		case 11:
			return appended(&f.defaults, "attribute", of, (*Attribute).decode)
		case 13:
			return of.text(&f.overload)
		}
		return errUnknown
	})
}

// mostNested is how deep functions may call one another.
const mostNested = 32

// inline puts the nodes of a model's functions in place of those that call them.
func (m *Model) inline(all []function) error {
	if len(all) == 0 {
		return nil
	}
	functions := make(map[[2]string]*function)
	for i := range all {
		functions[[2]string{all[i].domain, all[i].name}] = &all[i]
	}
	for range mostNested {
		calls := 0
		var nodes []Node
		for i := range m.Graph.Nodes {
			n := &m.Graph.Nodes[i]
			f := functions[[2]string{n.Domain, n.Op}]
			if f == nil {
				nodes = append(nodes, *n)
				continue
			}
			body, err := f.called(m, n)
			if err != nil {
				return fmt.Errorf("%v: %w", n, err)
			}
			if calls++; len(nodes)+len(body) > maxItems {
				return fmt.Errorf("%v: with its nodes the model has more than %d", n, maxItems)
			}
			nodes = append(nodes, body...)
		}
		if m.Graph.Nodes = nodes; calls == 0 {
			for i := range nodes {
				nodes[i].index = i
			}
			return nil
		}
	}
	return fmt.Errorf("its functions call one another more than %d deep", mostNested)
}

// called are the nodes of a function where a node calls it.
func (f *function) called(m *Model, n *Node) ([]Node, error) {
	for _, o := range f.opsets {
		if (o.Domain == "" || o.Domain == "ai.onnx") && o.Version != m.Version() {
			return nil, fmt.Errorf("its function is of operator set %d and the model of %d: export both with one",
				o.Version, m.Version())
		}
	}
	if len(n.Inputs) > len(f.inputs) || len(n.Outputs) > len(f.outputs) {
		return nil, fmt.Errorf("it has %d inputs and %d outputs, and its function %d and %d", len(n.Inputs),
			len(n.Outputs), len(f.inputs), len(f.outputs))
	}
	names := map[string]string{"": ""}
	for i, in := range f.inputs {
		names[in] = ""
		if i < len(n.Inputs) {
			names[in] = n.Inputs[i]
		}
	}
	for i, out := range f.outputs {
		if i < len(n.Outputs) && n.Outputs[i] != "" {
			names[out] = n.Outputs[i]
		}
	}
	of := n.Name
	if of == "" && len(n.Outputs) > 0 {
		of = n.Outputs[0]
	}
	renamed := func(list []string) []string {
		list = slices.Clone(list)
		for i, name := range list {
			to, ok := names[name]
			if !ok {
				to = of + "/" + name
				names[name] = to
			}
			list[i] = to
		}
		return list
	}
	settings := make(map[string]Attribute)
	for _, a := range slices.Concat(f.defaults, n.Attributes) {
		settings[a.Name] = a
	}
	nodes := slices.Clone(f.nodes)
	for i := range nodes {
		b := &nodes[i]
		b.Inputs, b.Outputs = renamed(b.Inputs), renamed(b.Outputs)
		b.Name = of + "/" + b.Name
		if b.fx == "" {
			b.fx = n.fx
		}
		b.Attributes = bound(b.Attributes, maps.Clone(settings))
	}
	return nodes, nil
}

// bound are the attributes of a node of a function, with those of its caller where it refers to them.
func bound(all []Attribute, settings map[string]Attribute) (list []Attribute) {
	for _, a := range all {
		if a.refers == "" {
			list = append(list, a)
		} else if s, ok := settings[a.refers]; ok {
			s.Name = a.Name
			list = append(list, s)
		}
	}
	return list
}
