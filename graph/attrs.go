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
	// Extent is the output extent of conv2d_dx and pad; slice_dx and embedding_dw use [0] only.
	Extent [2]int `json:"extent,omitzero"`
	Groups int    `json:"groups,omitzero"` // Channel groups of a convolution; 0 means 1.
	Inside bool   `json:"inside,omitzero"` // avg_pool divides by the number of pixels that are not padding.
	Dim    int    `json:"dim,omitzero"`    // Dimension of a concat or slice.
	Begin  int    `json:"begin,omitzero"`  // First element of a slice.
	// Length is the extent of a slice, the number of channels in the window of an lrn, or the number of values that
	// statistics are taken over.
	Length       int     `json:"length,omitzero"`
	Rate         float64 `json:"rate,omitzero"` // Share of elements that dropout clears, 0 to 1.
	Key          uint64  `json:"key,omitzero"`  // Key of the random generator, equal for a dropout and its gradient.
	Factor       float64 `json:"factor,omitzero"`
	Shift        float64 `json:"shift,omitzero"` // Summand of an affine op.
	Exponent     float64 `json:"exponent,omitzero"`
	LearningRate float64 `json:"learning_rate,omitzero"`
	Momentum     float64 `json:"momentum,omitzero"`
	Beta1        float64 `json:"beta1,omitzero"`
	Beta2        float64 `json:"beta2,omitzero"`
	Epsilon      float64 `json:"epsilon,omitzero"`
	// InPlace is 1 + the index of the operand whose storage the first output is written to, as its next version;
	// 0 means that the output has a storage of its own.
	InPlace int   `json:"in_place,omitzero"`
	FLOPs   int64 `json:"flops,omitzero"` // Floating-point operations of an opaque op.
	Once    bool  `json:"once,omitzero"`  // The opaque op must not be executed twice, so it is not recomputed.
	// Scratch is the most that an opaque op allocates beside its outputs and frees before it ends.
	Scratch Bytes `json:"scratch,omitzero"`

	Replicas int `json:"replicas,omitzero"` // Number of replicas that an all_reduce averages over.

	TransposeA bool `json:"transpose_a,omitzero"` // The first matrix of a matmul is stored transposed.
	TransposeB bool `json:"transpose_b,omitzero"` // The second matrix of a matmul is stored transposed.
	Causal     bool `json:"causal,omitzero"`      // A row of a softmax sees no later column.
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
