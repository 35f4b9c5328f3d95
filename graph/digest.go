package graph

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"math/bits"
	"reflect"
)

// Digest identifies a graph: the SHA-256 of all that it says in a binary form without gaps, in hexadecimal.
type Digest string

// Digest returns the graph's digest. It takes about a microsecond for three storages, tensors or ops.
func (g *Graph) Digest() Digest { return g.DigestBy(nil) }

// DigestBy is Digest for a caller who may want to stop: tick is told of every few steps of the work, of some
// nanoseconds each, and may panic. nil: nobody is told.
func (g *Graph) DigestBy(tick func(steps int)) Digest {
	w := &digestWriter{hash: sha256.New(), tick: tick}
	w.text(g.Name)
	w.number(len(g.Storages))
	for i := range g.Storages {
		w.storage(&g.Storages[i])
	}
	w.number(len(g.Tensors))
	for i := range g.Tensors {
		w.tensor(&g.Tensors[i])
	}
	w.number(len(g.Ops))
	for i := range g.Ops {
		w.op(&g.Ops[i])
	}
	for _, name := range g.Passes {
		w.text(name)
	}
	if g.Plain != "" {
		w.number(-1) // no length
		w.text(string(g.Plain))
	}
	w.flush(0)
	return Digest(hex.EncodeToString(w.hash.Sum(nil)))
}

// digestWriter collects bytes for a hash.
type digestWriter struct {
	hash    hash.Hash
	pending []byte
	tick    func(steps int) // nil: nobody is told
}

// flush hashes what is pending if there is more than a limit.
func (w *digestWriter) flush(limit int) {
	if len(w.pending) > limit {
		if w.tick != nil {
			w.tick(len(w.pending))
		}
		w.hash.Write(w.pending) // a hash takes everything
		w.pending = w.pending[:0]
	}
}

func (w *digestWriter) number(n int) { w.pending = binary.AppendVarint(w.pending, int64(n)) }
func (w *digestWriter) float(f float64) {
	w.pending = binary.AppendUvarint(w.pending, math.Float64bits(f))
}
func (w *digestWriter) text(s string) {
	w.number(len(s))
	w.pending = append(w.pending, s...)
}

func (w *digestWriter) storage(s *Storage) {
	w.number(int(s.ID))
	w.text(s.Name)
	w.text(string(s.Role))
	w.number(int(s.Bytes))
	if s.Init != nil {
		w.text(string(s.Init.Kind))
		w.float(s.Init.Scale)
	} else {
		w.number(-1)
	}
	w.text(string(s.Holds))
	if s.PartOf != "" || s.Begin != 0 {
		w.number(-1) // no id or count, as would follow otherwise
		w.text(s.PartOf)
		w.number(int(s.Begin))
	}
	if s.Until != 0 {
		w.number(-2) // no id, count or mark of a part
		w.number(int(s.Until))
	}
	w.flush(1 << 12)
}

func (w *digestWriter) tensor(t *Tensor) {
	w.number(int(t.ID))
	w.text(t.Name)
	w.number(int(t.Storage))
	w.number(t.Version)
	w.number(int(t.Offset))
	w.shape(t.Shape)
	w.text(string(t.DType))
	w.flush(1 << 12)
}

func (w *digestWriter) shape(s Shape) {
	w.number(len(s))
	for _, n := range s {
		w.number(int(n))
	}
}

func (w *digestWriter) op(o *Op) {
	w.number(int(o.ID))
	w.text(o.Name)
	w.text(string(o.Kind))
	for _, ids := range [2][]TensorID{o.Inputs, o.Outputs} {
		w.number(len(ids))
		for _, t := range ids {
			w.number(int(t))
		}
	}
	w.attrs(&o.Attrs)
	w.text(string(o.Phase))
	w.text(o.Layer)
	w.number(int(o.Forward))
	w.flush(1 << 12)
}

// attrs writes the attributes that an op has, by their names, so that a new attribute changes no digest of ops without
// it.
func (w *digestWriter) attrs(a *Attrs) {
	set := a.set()
	w.number(bits.OnesCount64(uint64(set)))
	v := reflect.ValueOf(a).Elem()
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(uint64(set))
		w.text(attrNames[i])
		w.value(v.Field(i))
	}
}

func (w *digestWriter) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Array, reflect.Slice:
		w.number(v.Len())
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		w.number(int(v.Int()))
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		w.number(int(v.Uint()))
	case reflect.Float64:
		w.float(v.Float())
	case reflect.String:
		w.text(v.String())
	case reflect.Bool:
		w.number(1)
	default:
		panic(fmt.Sprintf("graph: an attribute of kind %s has no place in a digest", v.Kind()))
	}
}
