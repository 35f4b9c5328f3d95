package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tensile/data/weights"
	"tensile/graph"
)

// State is what a checkpoint holds. The loader and dropout depend on seed and iteration alone, so that the rest of the
// job follows from it.
type State struct {
	Job         string
	ID          int64 // ID of the job; jobs with the same name have different IDs.
	Incarnation int64
	Iteration   int // complete iterations
	Seed        uint64
	Graph       graph.Digest // Digest of the graph before passes.
	Device      string       // its identity: the rest has the same bits on devices of an equal one
	Model       string
	Optimizer   string
	Settings    string // Settings of the graph, as from task.SettingsOf; "": unknown.
	Data        string // folder of its examples; "": a synthetic set
	Weights     string // file of its first weights; "": none
	From        string // checkpoint that it began with; "": none

	Losses  []float32        // Loss of each complete iteration; none on a device without data.
	Tensors []weights.Tensor // persistent storages by name; none on a device without data
}

// lossesName is the name of the tensor with the losses.
const lossesName = "tensile.losses"

// The metadata has these keys beside those of fields.
const (
	formatKey = "format"
	format    = "tensile checkpoint 1"
	digestKey = "digest"
)

// errNone is the error for another safetensors file.
var errNone = errors.New("it is no checkpoint")

// fields are the texts of the metadata.
func (s *State) fields() []struct {
	key  string
	text *string
} {
	return []struct {
		key  string
		text *string
	}{{"job", &s.Job}, {"graph", (*string)(&s.Graph)}, {"device", &s.Device}, {"model", &s.Model},
		{"optimizer", &s.Optimizer},
		{"settings", &s.Settings}, {"data", &s.Data}, {"weights", &s.Weights}, {"from", &s.From}}
}

// encode writes the state as a file.
func (s *State) encode(w io.Writer) error {
	if n := len(s.Losses); n != 0 && n != s.Iteration {
		return fmt.Errorf("there are %d losses of %d iterations", n, s.Iteration)
	}
	f := weights.File{Metadata: map[string]string{formatKey: format, "id": fmt.Sprint(s.ID),
		"incarnation": fmt.Sprint(s.Incarnation), "iteration": fmt.Sprint(s.Iteration), "seed": fmt.Sprint(s.Seed)}}
	for _, field := range s.fields() {
		f.Metadata[field.key] = *field.text
	}
	f.Tensors = append(slices.Clone(s.Tensors), weights.Tensor{Name: lossesName, Shape: graph.Shape{len(s.Losses)},
		Data: s.Losses})
	f.Metadata[digestKey] = digest(f)
	return weights.Encode(w, f)
}

// decode reads a file of this many bytes.
func decode(r io.ReaderAt, size int64) (*State, error) {
	f, err := weights.Decode(r, size)
	if err != nil {
		return nil, err
	}
	if f.Metadata[formatKey] != format {
		if f.Metadata[formatKey] == "" {
			return nil, errNone
		}
		return nil, fmt.Errorf("its format is %.40q, not %q: it is of another release", f.Metadata[formatKey], format)
	}
	if f.Metadata[digestKey] != digest(f) {
		return nil, errors.New("its content does not have its digest: the file was damaged")
	}
	s := new(State)
	for _, field := range s.fields() {
		*field.text = f.Metadata[field.key]
	}
	number := func(key string) (n int64) {
		n, problem := strconv.ParseInt(f.Metadata[key], 10, 64)
		if problem == nil && n < 0 {
			problem = errors.New("it is negative")
		}
		if problem != nil {
			err = cmp.Or(err, fmt.Errorf("its %s is %.40q: %w", key, f.Metadata[key], problem))
		}
		return n
	}
	s.ID, s.Incarnation, s.Iteration = number("id"), number("incarnation"), int(number("iteration"))
	seed, problem := strconv.ParseUint(f.Metadata["seed"], 10, 64)
	if s.Seed = seed; err != nil || problem != nil {
		return nil, cmp.Or(err, problem)
	}
	for _, t := range f.Tensors {
		if t.Name == lossesName {
			s.Losses = t.Data
		} else {
			s.Tensors = append(s.Tensors, t)
		}
	}
	if n := len(s.Losses); n != 0 && n != s.Iteration {
		return nil, fmt.Errorf("it has %d losses of %d iterations", n, s.Iteration)
	}
	return s, nil
}

// digest is the SHA-256 of all metadata but the digest, and of all tensors, in hexadecimal: each text and each list
// with its length before it, sorted by key or name.
func digest(f weights.File) string {
	sum := sha256.New()
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		sum.Write(b[:])
	}
	text := func(s string) {
		number(len(s))
		io.WriteString(sum, s)
	}
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		if key != digestKey {
			text(key)
			text(f.Metadata[key])
		}
	}
	number(-1) // the texts end
	var chunk [1 << 16]byte
	byName := func(a, b weights.Tensor) int { return strings.Compare(a.Name, b.Name) }
	for _, t := range slices.SortedFunc(slices.Values(f.Tensors), byName) {
		text(t.Name)
		number(len(t.Shape))
		for _, extent := range t.Shape {
			number(extent)
		}
		for part := range slices.Chunk(t.Data, len(chunk)/4) {
			for i, v := range part {
				binary.LittleEndian.PutUint32(chunk[4*i:], math.Float32bits(v))
			}
			sum.Write(chunk[:4*len(part)])
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
