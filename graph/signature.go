package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Signature identifies what an op costs: ops of equal signatures take the same time on a device, whatever graph they
// are in. It is the first half of a SHA-256, in hexadecimal.
type Signature string

// SignatureDigits is the length of a signature.
const SignatureDigits = sha256.Size

// Signature returns the signature of an op that is executed in one of a device's ways, which have names: of its kind,
// its attributes, the shapes and element types of its operands, which of them are the same tensor and which are updated
// in place. The key of a generator, the learning rate, and where the rows of a gradient
// begin cost nothing, and do not count. It takes about a microsecond.
func (g *Graph) Signature(op OpID, variant string) Signature {
	o := &g.Ops[op]
	w := &digestWriter{hash: sha256.New()}
	w.text(string(o.Kind))
	w.text(variant)
	attrs := o.Attrs
	attrs.Key, attrs.LearningRate = 0, 0
	if o.Kind == LinearDW || o.Kind == EmbeddingDW {
		attrs.Begin = 0
	}
	w.attrs(&attrs)
	w.number(len(o.Inputs))
	for _, t := range o.Inputs {
		w.operand(&g.Tensors[t])
		w.number(slices.Index(o.Inputs, t))
	}
	w.number(len(o.Outputs))
	for i, t := range o.Outputs {
		w.operand(&g.Tensors[t])
		w.number(g.Updated(op, i))
	}
	w.flush(0)
	return Signature(hex.EncodeToString(w.hash.Sum(nil))[:SignatureDigits])
}

// operand writes what an op sees of a tensor.
func (w *digestWriter) operand(t *Tensor) {
	w.shape(t.Shape)
	w.text(string(t.DType))
}
