package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Loss is the loss of an iteration. It keeps its bits in JSON, which has no word for NaN and infinity: those are
// strings such as "0x7fc00000".
type Loss float32

// MarshalJSON implements [json.Marshaler].
func (l Loss) MarshalJSON() ([]byte, error) {
	f := float64(l)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Appendf(nil, `"0x%08x"`, math.Float32bits(float32(l))), nil
	}
	return json.Marshal(float32(l))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Loss) UnmarshalJSON(text []byte) error {
	if len(text) == 0 || text[0] != '"' {
		return json.Unmarshal(text, (*float32)(l))
	}
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	bits, err := strconv.ParseUint(word, 0, 32)
	if err != nil {
		return fmt.Errorf("loss %s is neither a number nor the bits of one", quoted(word))
	}
	*l = Loss(math.Float32frombits(uint32(bits)))
	return nil
}

// Losses are those of a job's iterations. In JSON each is a [Loss].
type Losses []float32

// MarshalJSON implements [json.Marshaler].
func (l Losses) MarshalJSON() ([]byte, error) {
	list := make([]Loss, len(l))
	for i, f := range l {
		list[i] = Loss(f)
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Losses) UnmarshalJSON(text []byte) error {
	var list []Loss
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*l = nil
	for _, f := range list {
		*l = append(*l, float32(f))
	}
	return nil
}

// Digest identifies what a job has trained: two results have one digest if all losses and weights have the same bits.
// It is empty without data.
func (r *Result) Digest() string {
	if r.Weights == nil {
		return ""
	}
	sum := sha256.New()
	for _, loss := range r.Losses {
		fmt.Fprintf(sum, "%08x\n", math.Float32bits(loss))
	}
	for _, storage := range slices.Sorted(maps.Keys(r.Weights)) {
		fmt.Fprintf(sum, "%d %s\n", storage, r.Weights[storage])
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
