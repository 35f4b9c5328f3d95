package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"tensile/data/rooted"
)

// Limits of what is read. They bound memory by a small multiple of the file's size, and keep products of extents
// within 64 bits.
const (
	maxFile     = math.MaxInt32 // bytes; protobuf's own limit
	maxItems    = 1 << 20       // nodes, tensors or values of a graph; strings of a node
	maxRank     = 64
	maxElements = 1 << 40
)

// Read reads the model in a file, with tensors that it keeps in other files of the folder. Errors, beside those of the
// file system: a file that is no model or breaks a rule of the format. They name the place.
func Read(in *rooted.Files, path string) (*Model, error) {
	text, err := readFile(in, path)
	if err != nil {
		return nil, err
	}
	m, err := Decode(text)
	if err == nil {
		err = m.load(in, path)
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m.separate()
	return m, nil
}

func readFile(in *rooted.Files, path string) ([]byte, error) {
	info, err := in.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("ONNX file %s does not exist: export one (docs/onnx.md)", path)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: name an ONNX file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, and a protobuf message at most %d: export large tensors as external "+
			"data", path, info.Size(), maxFile)
	}
	return in.ReadFile(path)
}

// ReadTensor reads a file that holds one tensor, such as those beside the cases of the ONNX project.
func ReadTensor(path string) (*Tensor, error) {
	text, err := readFile(nil, path)
	if err != nil {
		return nil, err
	}
	var t Tensor
	if err := t.decode(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &t, nil
}

// Decode reads a model from its bytes. Tensors in other files are not loaded. Errors are those of Read.
func Decode(text []byte) (*Model, error) {
	m := &Model{}
	hasGraph := false
	var functions []function
	err := forEachField(text, &m.rest, func(f field) error {
		switch f.number {
		case 1:
			return f.int(&m.IR)
		case 2:
			return f.text(&m.Producer)
		case 7:
			hasGraph = true
			return decodeMessage("graph", m.Graph.decode, f)
		case 8:
			return appended(&m.Opsets, "opset", f, (*Opset).decode)
		case 25:
			return appended(&functions, "function", f, (*function).decode)
		}
		return errUnknown
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("no ONNX model, or a damaged one: %w", err)
	case !hasGraph:
		return nil, errors.New("no ONNX model: it has no graph")
	}
	for i := range m.Graph.Nodes {
		m.Graph.Nodes[i].index = i
	}
	if err := m.inline(functions); err != nil {
		return nil, err
	}
	return m, nil
}

// field is one field of a message.
type field struct {
	number   protowire.Number
	kind     protowire.Type
	at       int    // Offset in its message.
	number64 uint64 // its value if it is a varint or of a fixed size
	bytes    []byte // its value if it has a length
}

// errUnknown is what a decoder returns for a field to be kept as it is.
var errUnknown = errors.New("unknown field")

// forEachField calls take for every field of a message. Fields that it does not know are appended to rest.
func forEachField(message []byte, rest *[]byte, take func(f field) error) error {
	for at := 0; at < len(message); {
		number, kind, n := protowire.ConsumeTag(message[at:])
		if n < 0 {
			return fmt.Errorf("byte %d: %w: copy or export the file again", at, protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(number, kind, message[at+n:])
		if size < 0 {
			return fmt.Errorf("byte %d, field %d: %w: copy or export the file again", at, number,
				protowire.ParseError(size))
		}
		f := field{number: number, kind: kind, at: at}
		value := message[at+n : at+n+size]
		switch kind {
		case protowire.VarintType:
			f.number64, _ = protowire.ConsumeVarint(value)
		case protowire.Fixed32Type:
			v, _ := protowire.ConsumeFixed32(value)
			f.number64 = uint64(v)
		case protowire.Fixed64Type:
			f.number64, _ = protowire.ConsumeFixed64(value)
		case protowire.BytesType:
			f.bytes, _ = protowire.ConsumeBytes(value)
		}
		if err := take(f); err == errUnknown {
			*rest = append(*rest, message[at:at+n+size]...)
		} else if err != nil {
			return err
		}
		at += n + size
	}
	return nil
}

// checkType returns an error unless the field is of a type.
func (f field) checkType(kind protowire.Type) error {
	if f.kind != kind {
		return fmt.Errorf("byte %d: field %d has wire type %d, want %d", f.at, f.number, f.kind, kind)
	}
	return nil
}

func (f field) int(to *int64) error {
	*to = int64(f.number64)
	return f.checkType(protowire.VarintType)
}

func (f field) text(to *string) error {
	if err := f.checkType(protowire.BytesType); err != nil {
		return err
	}
	if !utf8.Valid(f.bytes) {
		return fmt.Errorf("byte %d: field %d is no UTF-8", f.at, f.number)
	}
	*to = string(f.bytes)
	return nil
}

func (f field) texts(to *[]string) error {
	if len(*to) >= maxItems {
		return fmt.Errorf("more than %d strings in one field", maxItems)
	}
	var s string
	err := f.text(&s)
	*to = append(*to, s)
	return err
}

// ints takes a repeated integer, packed or not.
func (f field) ints(to *[]int64) error {
	if f.kind == protowire.VarintType {
		*to = append(*to, int64(f.number64))
		return nil
	}
	if err := f.checkType(protowire.BytesType); err != nil {
		return err
	}
	for b := f.bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return fmt.Errorf("byte %d: %w", f.at, protowire.ParseError(n))
		}
		*to, b = append(*to, int64(v)), b[n:]
	}
	return nil
}

// fixed takes a repeated number of size bytes, packed or not, as bytes.
func (f field) fixed(size int, to *[]byte) error {
	switch {
	case f.kind == protowire.Fixed32Type && size == 4:
		*to = binary.LittleEndian.AppendUint32(*to, uint32(f.number64))
	case f.kind == protowire.Fixed64Type && size == 8:
		*to = binary.LittleEndian.AppendUint64(*to, f.number64)
	case f.kind == protowire.BytesType && len(f.bytes)%size == 0:
		*to = append(*to, f.bytes...)
	default:
		return fmt.Errorf("byte %d: field %d holds no numbers of %d bytes", f.at, f.number, size)
	}
	return nil
}

func decodeMessage(what string, decode func([]byte) error, f field) error {
	err := f.checkType(protowire.BytesType)
	if err == nil {
		err = decode(f.bytes)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// appended decodes a message and appends it.
func appended[T any](to *[]T, what string, f field, decode func(*T, []byte) error) error {
	if len(*to) >= maxItems {
		return fmt.Errorf("more than %d times a %s", maxItems, what)
	}
	var v T
	err := decodeMessage(fmt.Sprintf("%s %d", what, len(*to)), func(b []byte) error { return decode(&v, b) }, f)
	*to = append(*to, v)
	return err
}

func (o *Opset) decode(b []byte) error {
	return forEachField(b, &o.rest, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&o.Domain)
		case 2:
			return f.int(&o.Version)
		}
		return errUnknown
	})
}

func (g *Graph) decode(b []byte) error {
	return forEachField(b, &g.rest, func(f field) error {
		switch f.number {
		case 1:
			return appended(&g.Nodes, "node", f, (*Node).decode)
		case 2:
			return f.text(&g.Name)
		case 5:
			return appended(&g.Initializers, "initializer", f, (*Tensor).decode)
		case 11:
			return appended(&g.Inputs, "input", f, (*Value).decode)
		case 12:
			return appended(&g.Outputs, "output", f, (*Value).decode)
		case 13:
			return appended(&g.Values, "value", f, (*Value).decode)
		case 15:
			return errors.New("it has sparse initializers, which are not read: export dense ones")
		case 16:
			return f.property("pkg.torch.export.ExportedProgram.graph_signature", &g.signature)
		}
		return errUnknown
	})
}

// property takes a text that has a key, of a list of such, and keeps it as it is.
func (f field) property(key string, to *string) error {
	var ignored []byte
	var text [2]string
	err := forEachField(f.bytes, &ignored, func(f field) error {
		if f.number == 1 || f.number == 2 {
			return f.text(&text[f.number-1])
		}
		return errUnknown
	})
	if err != nil {
		return err
	}
	if text[0] == key {
		*to = text[1]
	}
	return errUnknown
}

func (n *Node) decode(b []byte) error {
	return forEachField(b, &n.rest, func(f field) error {
		switch f.number {
		case 1:
			return f.texts(&n.Inputs)
		case 2:
			return f.texts(&n.Outputs)
		case 3:
			return f.text(&n.Name)
		case 4:
			return f.text(&n.Op)
		case 5:
			return appended(&n.Attributes, "attribute", f, (*Attribute).decode)
		case 7:
			return f.text(&n.Domain)
		case 9:
			if err := f.property("pkg.torch.onnx.fx_node", &n.fx); err != errUnknown {
				return err
			}
			return f.property("pkg.onnxscript.rewriter.rule_name", &n.rules)
		}
		return errUnknown
	})
}

func (a *Attribute) decode(b []byte) error {
	return forEachField(b, &a.rest, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&a.Name)
		case 2:
			a.Float = math.Float32frombits(uint32(f.number64))
			return f.checkType(protowire.Fixed32Type)
		case 3:
			return f.int(&a.Int)
		case 4:
			a.String = string(f.bytes)
			return f.checkType(protowire.BytesType)
		case 5:
			a.Tensor = &Tensor{}
			return decodeMessage("tensor", a.Tensor.decode, f)
		case 7:
			var raw []byte
			if err := f.fixed(4, &raw); err != nil {
				return err
			}
			a.Floats = append(a.Floats, floats32(raw)...)
			return nil
		case 8:
			return f.ints(&a.Ints)
		case 9:
			if len(a.Strings) >= maxItems {
				return fmt.Errorf("more than %d strings in one field", maxItems)
			}
			a.Strings = append(a.Strings, string(f.bytes))
			return f.checkType(protowire.BytesType)
		case 20:
			return f.int((*int64)(&a.Type))
		case 21:
			return f.text(&a.refers)
		}
		return errUnknown // subgraphs among them: they are not descended into
	})
}

func (v *Value) decode(b []byte) error {
	v.kept = slices.Clone(b)
	var ignored []byte
	return forEachField(b, &ignored, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&v.Name)
		case 2:
			return decodeMessage("type", v.decodeType, f)
		}
		return errUnknown
	})
}

// decodeType reads the type of a tensor. Other types (sequences, maps) leave Type 0.
func (v *Value) decodeType(b []byte) error {
	var ignored []byte
	return forEachField(b, &ignored, func(f field) error {
		if f.number != 1 {
			return errUnknown
		}
		return decodeMessage("tensor", func(b []byte) error {
			return forEachField(b, &ignored, func(f field) error {
				switch f.number {
				case 1:
					var t int64
					err := f.int(&t)
					v.Type = Type(t)
					return err
				case 2:
					v.Dims = []Dim{}
					return decodeMessage("shape", v.decodeShape, f)
				}
				return errUnknown
			})
		}, f)
	})
}

func (v *Value) decodeShape(b []byte) error {
	var ignored []byte
	return forEachField(b, &ignored, func(f field) error {
		if f.number != 1 {
			return errUnknown
		}
		if len(v.Dims) == maxRank {
			return fmt.Errorf("more than %d dimensions", maxRank)
		}
		return appended(&v.Dims, "dimension", f, func(d *Dim, b []byte) error {
			return forEachField(b, &ignored, func(f field) error {
				switch f.number {
				case 1:
					return f.int(&d.Extent)
				case 2:
					return f.text(&d.Symbol)
				}
				return errUnknown
			})
		})
	})
}
