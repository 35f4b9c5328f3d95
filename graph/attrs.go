package graph

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Attrs holds what a kind needs beside its operands. Fields that a kind does not have stay zero.
type Attrs struct {
	Kernel [2]int `json:"kernel,omitzero"`
	Stride [2]int `json:"stride,omitzero"`
	Pad    [2]int `json:"pad,omitzero"`
	// of what conv2d_dx and pad make; of slice_dx and embedding_dw [0] alone
	Extent [2]int `json:"extent,omitzero"`
	Groups int    `json:"groups,omitzero"` // of channels that a convolution keeps apart; 0 is 1
	Inside bool   `json:"inside,omitzero"` // avg_pool divides by the pixels that are not padding
	Dim    int    `json:"dim,omitzero"`    // that a concat or slice runs along
	Begin  int    `json:"begin,omitzero"`  // of a slice
	// of a slice; channels in the window of an lrn; values that statistics are of
	Length       int     `json:"length,omitzero"`
	Rate         float64 `json:"rate,omitzero"` // share of elements that dropout clears
	Key          uint64  `json:"key,omitzero"`  // of the generator, the same for a dropout and its gradient
	Factor       float64 `json:"factor,omitzero"`
	Shift        float64 `json:"shift,omitzero"` // of an affine
	Exponent     float64 `json:"exponent,omitzero"`
	LearningRate float64 `json:"learning_rate,omitzero"`
	Momentum     float64 `json:"momentum,omitzero"`
	Beta1        float64 `json:"beta1,omitzero"`
	Beta2        float64 `json:"beta2,omitzero"`
	Epsilon      float64 `json:"epsilon,omitzero"`
	// 1 + the operand in whose storage the first output is made, as its next version; 0: in a storage of its own
	InPlace int   `json:"in_place,omitzero"`
	FLOPs   int64 `json:"flops,omitzero"` // of an opaque op
	Once    bool  `json:"once,omitzero"`  // an opaque op that may not be executed again
	// of an opaque op: what it allocates beside its outputs and frees before it ends, at most
	Scratch Bytes `json:"scratch,omitzero"`

	Replicas int `json:"replicas,omitzero"` // that an all_reduce takes the mean over

	TransposeA bool `json:"transpose_a,omitzero"` // a matmul's first matrix is stored as its transpose
	TransposeB bool `json:"transpose_b,omitzero"` // its second
	Causal     bool `json:"causal,omitzero"`      // a softmax's row sees no later column
}

// attrNames are the names of the fields of Attrs in their order, as in JSON.
var attrNames = func() []string {
	var names []string
	for f := range reflect.TypeFor[Attrs]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// attrSet is a set of fields of Attrs, a bit each.
type attrSet uint64

// names returns a set of fields by their names.
func names(fields ...string) attrSet {
	var set attrSet
	for _, f := range fields {
		i := slices.Index(attrNames, f)
		if i < 0 {
			panic(fmt.Sprintf("graph: there is no attribute %q", f))
		}
		set |= 1 << i
	}
	return set
}

// String lists the names of the set.
func (s attrSet) String() string {
	var in []string
	for i, name := range attrNames {
		if s&(1<<i) != 0 {
			in = append(in, name)
		}
	}
	return strings.Join(in, ", ")
}

// set returns the fields that are not zero.
func (a Attrs) set() attrSet {
	if a == (Attrs{}) {
		return 0
	}
	var set attrSet
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			set |= 1 << i
		}
	}
	return set
}

// finite returns an error unless all numbers are.
func (a Attrs) finite() error {
	for _, f := range [...]struct {
		name string
		v    float64
	}{{"rate", a.Rate}, {"factor", a.Factor}, {"shift", a.Shift}, {"exponent", a.Exponent},
		{"learning rate", a.LearningRate}, {"momentum", a.Momentum},
		{"beta1", a.Beta1}, {"beta2", a.Beta2}, {"epsilon", a.Epsilon}} {
		if math.IsNaN(f.v) || math.IsInf(f.v, 0) {
			return fmt.Errorf("%s %v is not finite", f.name, f.v)
		}
	}
	return nil
}

// share checks a number that is to be at least 0 and below 1.
func share(name string, v float64) error {
	if v < 0 || v >= 1 {
		return fmt.Errorf("%s %v must be at least 0 and below 1", name, v)
	}
	return nil
}

func positive(name string, v float64) error {
	if v <= 0 {
		return fmt.Errorf("%s %v must be positive", name, v)
	}
	return nil
}
