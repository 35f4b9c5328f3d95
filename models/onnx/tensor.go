package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// decode reads a tensor. Elements in typed fields become bytes.
func (t *Tensor) decode(b []byte) error {
	var ints []int64
	var typed protowire.Number // the field that the elements stand in; 0: none yet
	from := func(f field) error {
		if typed != 0 && typed != f.number {
			return fmt.Errorf("its elements stand in two fields, %d and %d", typed, f.number)
		}
		typed = f.number
		return nil
	}
	err := forEachField(b, &t.rest, func(f field) error {
		switch f.number {
		case 1:
			if err := f.ints(&t.Dims); err != nil || len(t.Dims) <= maxRank {
				return err
			}
			return fmt.Errorf("more than %d dimensions", maxRank)
		case 2:
			var v int64
			err := f.int(&v)
			t.Type = Type(v)
			return err
		case 3:
			return fmt.Errorf("it is a segment of a tensor, which is not read: export it whole")
		case 4, 10:
			if err := from(f); err != nil {
				return err
			}
			return f.fixed(map[protowire.Number]int{4: 4, 10: 8}[f.number], &t.Raw)
		case 5, 7, 11:
			if err := from(f); err != nil {
				return err
			}
			return f.ints(&ints)
		case 6:
			return fmt.Errorf("it holds strings, which are not read: export the network without them")
		case 8:
			return f.text(&t.Name)
		case 9:
			if err := from(f); err != nil {
				return err
			}
			t.Raw = append(t.Raw, f.bytes...)
			return f.checkType(protowire.BytesType)
		case 13:
			return decodeMessage("external data", t.decodeExternal, f)
		case 14:
			var location int64
			err := f.int(&location)
			if location == 1 && t.external == nil {
				t.external = make(map[string]string)
			}
			return err
		}
		return errUnknown
	})
	if err != nil {
		return fmt.Errorf("tensor %.80q: %w", t.Name, err)
	}
	known, ok := types[t.Type]
	if !ok {
		return fmt.Errorf("tensor %.80q: its elements are of %v, which is not read: export it with float32", t.Name,
			t.Type)
	}
	for _, v := range ints {
		var eight [8]byte
		binary.LittleEndian.PutUint64(eight[:], uint64(v))
		t.Raw = append(t.Raw, eight[:known.size]...)
	}
	return nil
}

// decodeExternal reads a key and a value of where a tensor lies.
func (t *Tensor) decodeExternal(b []byte) error {
	var key, value string
	var ignored []byte
	err := forEachField(b, &ignored, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&key)
		case 2:
			return f.text(&value)
		}
		return errUnknown
	})
	if t.external == nil {
		t.external = make(map[string]string)
	}
	t.external[key] = value
	return err
}

// elements returns the number of elements that the shape has.
func (t *Tensor) elements() (int64, error) {
	n := int64(1)
	for _, d := range t.Dims {
		if d < 0 || d > maxElements || d > 0 && n > maxElements/d {
			return 0, fmt.Errorf("tensor %.80q: shape %v has a negative extent or more than %d elements", t.Name,
				t.Dims, int64(maxElements))
		}
		n *= d
	}
	return n, nil
}

// check returns an error unless a tensor has as many elements as its shape.
func (t *Tensor) check() error {
	n, err := t.elements()
	if err != nil {
		return err
	}
	if want := n * int64(types[t.Type].size); want != int64(len(t.Raw)) {
		return fmt.Errorf("tensor %.80q: %v of shape %v takes %d bytes, and the file has %d", t.Name, t.Type, t.Dims,
			want, len(t.Raw))
	}
	return nil
}

func floats32(raw []byte) []float32 {
	v := make([]float32, len(raw)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v
}

// Floats returns the elements of a tensor of floating type, double ones rounded to float32.
func (t *Tensor) Floats() ([]float32, error) {
	if !t.Type.float() {
		return nil, fmt.Errorf("tensor %.80q holds %v, want a floating type", t.Name, t.Type)
	}
	v := make([]float32, len(t.Raw)/types[t.Type].size)
	floating[t.Type].Floats(v, t.Raw)
	return v, nil
}

// Ints returns the elements of a tensor of whole numbers or truth values.
func (t *Tensor) Ints() ([]int64, error) {
	size := types[t.Type].size
	var signed bool
	switch t.Type {
	case Int8, Int16, Int32, Int64:
		signed = true
	case Uint8, Uint16, Uint32, Uint64, Bool:
	default:
		return nil, fmt.Errorf("tensor %.80q holds %v, want whole numbers", t.Name, t.Type)
	}
	v := make([]int64, len(t.Raw)/size)
	for i := range v {
		var eight [8]byte
		copy(eight[:], t.Raw[i*size:(i+1)*size])
		u := binary.LittleEndian.Uint64(eight[:])
		if shift := 64 - 8*size; signed {
			v[i] = int64(u<<shift) >> shift
		} else {
			v[i] = int64(u)
		}
	}
	return v, nil
}
