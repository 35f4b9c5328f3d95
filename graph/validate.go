package graph

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// MaxBytes bounds a storage, or the scratch of a step. MaxTotal bounds the storages of a graph together, an arena and a
// region of the host: no sum of one of each overflows.
const (
	MaxBytes = Bytes(1) << 46
	MaxTotal = Bytes(1) << 52
)

// Validate checks the graph against the rules of its kinds and the meaning of versions. It returns every problem it
// finds, joined, or nil. Problems that make others impossible to judge (ids out of range) end the check early.
func (g *Graph) Validate() error {
	v := validator{g: g}
	v.ids()
	if len(v.problems) == 0 {
		v.storages()
		v.tensors()
		v.ops()
		v.replicas()
		v.versions()
	}
	if len(v.problems) == 0 {
		return nil
	}
	return fmt.Errorf("graph %q: %w", g.Name, errors.Join(v.problems...))
}

type validator struct {
	g        *Graph
	problems []error
}

func (v *validator) say(format string, args ...any) {
	v.problems = append(v.problems, fmt.Errorf(format, args...))
}

// ids checks that every reference leads somewhere, so that the other checks need not.
func (v *validator) ids() {
	g := v.g
	if len(g.Ops) == 0 {
		v.say("there are no ops, so there is nothing to train")
	}
	for i, name := range g.Passes {
		if !isPassName(name) || slices.Contains(g.Passes[:i], name) {
			v.say("pass %d is called %.40q: names differ, and have 1 to 40 lower-case letters", i, name)
		}
	}
	if g.Plain != "" && (len(g.Passes) == 0 || !isDigest(g.Plain)) {
		v.say("the digest before passes is %.70q: it is 64 hexadecimal digits, and only of graphs after passes",
			g.Plain)
	}
	for i, s := range g.Storages {
		if int(s.ID) != i {
			v.say("storage %d (%s) has id %d", i, s.Name, s.ID)
		}
	}
	for i, t := range g.Tensors {
		if int(t.ID) != i {
			v.say("tensor %d (%s) has id %d", i, t.Name, t.ID)
		}
		if t.Storage < 0 || int(t.Storage) >= len(g.Storages) {
			v.say("tensor %s: there is no storage %d", t.Name, t.Storage)
		}
	}
	for i, op := range g.Ops {
		if int(op.ID) != i {
			v.say("op %d (%s) has id %d", i, op.Name, op.ID)
		}
		if _, ok := kinds[op.Kind]; !ok {
			v.say("op %s: unknown kind %q", op.Name, op.Kind)
		} else if n := len(kinds[op.Kind].outputs); op.Kind != Opaque && len(op.Outputs) != n {
			v.say("op %s: %s makes %d outputs, got %d", op.Name, op.Kind, n, len(op.Outputs))
		}
		if op.Forward != NoOp && (op.Forward < 0 || int(op.Forward) >= i) {
			v.say("op %s: forward op %d is not an earlier op", op.Name, op.Forward)
		}
		for _, ids := range [2][]TensorID{op.Inputs, op.Outputs} {
			for _, t := range ids {
				if t < 0 || int(t) >= len(g.Tensors) {
					v.say("op %s: there is no tensor %d", op.Name, t)
				}
			}
		}
	}
}

func isDigest(d Digest) bool {
	return len(d) == 64 && strings.Trim(string(d), "0123456789abcdef") == ""
}

// isPassName reports whether a rewrite may be called so.
func isPassName(name string) bool {
	return name != "" && len(name) <= 40 && !strings.ContainsFunc(name, func(r rune) bool { return r < 'a' || r > 'z' })
}

func (v *validator) storages() {
	room := MaxTotal
	opaque := v.g.Opaque()
	for _, s := range v.g.Storages {
		if s.Bytes > 0 && room >= 0 {
			room -= min(s.Bytes, MaxBytes)
		}
		switch s.Role {
		case Input, Parameter, State, Activation, Gradient, Output:
		default:
			v.say("storage %s: unknown role %q", s.Name, s.Role)
		}
		if !s.Holds.isKnown() {
			v.say("storage %s: it holds %q, which is not known; leave it out", s.Name, s.Holds)
		} else if s.Holds != Anything && s.Role != Input {
			v.say("storage %s: only inputs say what they hold", s.Name)
		}
		if opaque && (s.Bytes <= 0 || s.Bytes > MaxBytes) {
			v.say("storage %s: %d bytes is not from 1 to %d", s.Name, s.Bytes, MaxBytes)
		} else if s.Bytes <= 0 || s.Bytes > MaxBytes || !opaque && s.Bytes%ElementBytes != 0 {
			v.say("storage %s: %d bytes is not a positive multiple of %d up to %d", s.Name, s.Bytes, ElementBytes,
				MaxBytes)
		}
		if s.Init == nil && opaque {
			continue
		}
		if (s.Init != nil) != s.Role.Persistent() {
			v.say("storage %s: persistent storages, and no others, have an init", s.Name)
		} else if s.Init != nil {
			switch s.Init.Kind {
			case InitZero, InitOne, InitNormal, InitFile:
			default:
				v.say("storage %s: unknown init %q", s.Name, s.Init.Kind)
			}
			if math.IsNaN(s.Init.Scale) || math.IsInf(s.Init.Scale, 0) {
				v.say("storage %s: init scale %v is not finite", s.Name, s.Init.Scale)
			}
		}
	}
	if room < 0 {
		v.say("the storages have more than %d bytes together", MaxTotal)
	}
	v.parts()
	v.holds()
}

// holds checks until when storages are held.
func (v *validator) holds() {
	var last []OpID // per storage: that touches it
	for _, s := range v.g.Storages {
		if s.Until == 0 {
			continue
		}
		if last == nil {
			last = v.g.LastTouches()
		}
		switch {
		case s.Role != Activation && s.Role != Gradient:
			v.say("storage %s: it has the role %s; activations and gradients alone are held until an op", s.Name,
				s.Role)
		case s.Until <= last[s.ID] || int(s.Until) > len(v.g.Ops):
			v.say("storage %s: it is held until op %d, and must be until one after op %d that touches it, up to %d",
				s.Name, s.Until, last[s.ID], len(v.g.Ops))
		}
	}
}

// parts checks that the parts of each whole follow one another, and that no other persistent storage has its name.
func (v *validator) parts() {
	ends := make(map[string]Bytes)
	for _, parts := range v.g.Parts() {
		for _, p := range parts {
			s := &v.g.Storages[p]
			if s.Begin != ends[s.PartOf] {
				v.say("storage %s: it begins at byte %d of %s, the parts before it end at %d", s.Name, s.Begin,
					s.PartOf, ends[s.PartOf])
			}
			ends[s.PartOf] = s.Begin + s.Bytes
		}
	}
	for _, s := range v.g.Storages {
		_, divided := ends[s.Name]
		switch {
		case s.PartOf == "" && s.Begin != 0, s.PartOf != "" && !s.Role.Persistent():
			v.say("storage %s: parts of something are persistent and say of what", s.Name)
		case divided && s.Role.Persistent():
			v.say("storage %s: others are parts of something of its name", s.Name)
		}
	}
}

func (v *validator) tensors() {
	seen := make([]bool, len(v.g.Storages))
	types := make([]DType, len(v.g.Storages))
	opaque := v.g.Opaque()
	for _, t := range v.g.Tensors {
		s := v.g.Storages[t.Storage]
		if t.DType.Bytes() == 0 {
			v.say("tensor %s: unknown dtype %q", t.Name, t.DType)
			continue
		}
		if seen[s.ID] && types[s.ID] != t.DType {
			v.say("tensor %s: storage %s has elements of type %v, not %v", t.Name, s.Name, types[s.ID], t.DType)
		}
		seen[s.ID], types[s.ID] = true, t.DType
		if s.Role.Persistent() && !t.DType.isFloat() && !opaque {
			v.say("tensor %s: storage %s is persistent and of type %v, want float32 or float64", t.Name, s.Name,
				t.DType)
		}
		if t.Version < 0 {
			v.say("tensor %s: version %d is negative", t.Name, t.Version)
		}
		elements := Bytes(1)
		for _, d := range t.Shape {
			if d < 1 || elements > MaxBytes/Bytes(d) {
				v.say("tensor %s: shape %v has an extent below 1 or too many elements", t.Name, t.Shape)
				elements = 0
				break
			}
			elements *= Bytes(d)
		}
		if elements == 0 {
			continue
		}
		if size := elements * t.DType.Bytes(); t.Offset < 0 || t.Offset%t.DType.Bytes() != 0 ||
			t.Offset > s.Bytes-size {
			v.say("tensor %s: bytes %d to %d do not lie in storage %s (%d bytes)", t.Name, t.Offset, t.Offset+size,
				s.Name, s.Bytes)
		}
	}
}

// ops checks each op by the rule of its kind: shapes, phases, which outputs are in place.
func (v *validator) ops() {
	g := v.g
	opaque := g.Opaque()
	for _, op := range g.Ops {
		switch op.Phase {
		case Forward, Backward, Optimize:
		default:
			v.say("op %s: unknown phase %q", op.Name, op.Phase)
		}
		if err := v.inferred(&op); err != nil {
			v.say("op %s: %w", op.Name, err)
			continue
		}
		for i, id := range op.Outputs {
			out := g.Tensors[id]
			in := g.Updated(op.ID, i)
			switch {
			case in == fresh && !g.Fresh(op.ID, i):
				v.say("op %s: output %s must be a fresh storage, not version %d of %s", op.Name, out.Name, out.Version,
					g.Storages[out.Storage].Name)
			case in == fresh && (out.Offset != 0 || roundUp(out.Bytes()) != g.Storages[out.Storage].Bytes &&
				(!opaque || out.Bytes() != g.Storages[out.Storage].Bytes)):
				v.say("op %s: fresh output %s must cover its whole storage", op.Name, out.Name)
			case in != fresh:
				of := g.Tensors[op.Inputs[in]]
				if out.Storage != of.Storage || out.Offset != of.Offset || out.Version != of.Version+1 {
					v.say("op %s: output %s must be the next version of input %s", op.Name, out.Name, of.Name)
				}
			}
		}
	}
}

// inferred compares the outputs of an op with those that follow from its inputs.
func (v *validator) inferred(op *Op) error {
	g := v.g
	if op.Kind == Opaque {
		return kinds[Opaque].accepts(op.Attrs)
	}
	shapes, err := Infer(op.Kind, op.Attrs, g.Shapes(op.Inputs))
	if err != nil {
		return err
	}
	types, err := inferTypes(op.Kind, g.dtypes(op.Inputs))
	if err != nil {
		return err
	}
	for i, id := range op.Outputs {
		out := g.Tensors[id]
		if !slices.Equal(out.Shape, shapes[i]) {
			v.say("op %s: output %s has shape %v, want %v", op.Name, out.Name, out.Shape, shapes[i])
		}
		if out.DType != types[i] {
			v.say("op %s: output %s is of type %v, want %v", op.Name, out.Name, out.DType, types[i])
		}
	}
	return nil
}

// versions walks the ops in order and checks that every content is made once, before it is read, and is not read
// after it was overwritten.
func (v *validator) versions() {
	g := v.g
	const unmade = -1
	current := make([]int, len(g.Storages))
	for i, s := range g.Storages {
		if !s.Role.FromHost() {
			current[i] = unmade
		}
	}
	for _, op := range g.Ops {
		for _, r := range g.Reads(op.ID) {
			if current[r.Storage] != r.Number {
				v.say("op %s: reads version %d of %s, which holds version %d there (-1: nothing yet)", op.Name,
					r.Number, g.Storages[r.Storage].Name, current[r.Storage])
			}
		}
		writes := g.Writes(op.ID)
		for i, w := range writes {
			s := g.Storages[w.Storage]
			if slices.ContainsFunc(writes[:i], func(other Version) bool { return other.Storage == w.Storage }) {
				v.say("op %s: makes two versions of %s", op.Name, s.Name)
			}
			if s.Role == Input {
				v.say("op %s: writes input %s", op.Name, s.Name)
			}
			if g.Fresh(op.ID, i) && current[w.Storage] != unmade {
				v.say("op %s: makes %s a second time", op.Name, s.Name)
			}
			current[w.Storage] = w.Number
		}
		for i, id := range op.Outputs {
			for j, in := range op.Inputs {
				if g.Updated(op.ID, i) != j && g.Tensors[in].Storage == g.Tensors[id].Storage {
					v.say("op %s: input %s lies in the storage that output %s overwrites", op.Name, g.Tensors[in].Name,
						g.Tensors[id].Name)
				}
			}
		}
	}
	for i, n := range current {
		if n == unmade {
			v.say("storage %s is never made", g.Storages[i].Name)
		}
	}
	last := g.LastVersions()
	for i, n := range current {
		if n != unmade && n != last[i] {
			v.say("storage %s: version %d is never made", g.Storages[i].Name, last[i])
		}
	}
}
