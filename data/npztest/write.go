package npztest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"tensile/graph"
)

// Array is an array of a file. Data is a slice of float32, int64 or uint8, with as many elements as the shape has.
type Array struct {
	Name  string
	Shape graph.Shape
	Data  any
}

// Write makes a file as numpy.savez does.
func Write(t testing.TB, path string, arrays ...Array) {
	t.Helper()
	content, err := encode(arrays...)
	if err == nil {
		err = os.WriteFile(path, content, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// encode returns the content of such a file.
func encode(arrays ...Array) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, a := range arrays {
		descr := map[reflect.Kind]string{reflect.Float32: "<f4", reflect.Int64: "<i8",
			reflect.Uint8: "|u1"}[reflect.TypeOf(a.Data).Elem().Kind()]
		if n := reflect.ValueOf(a.Data).Len(); descr == "" || n != a.Shape.Elements() {
			return nil, fmt.Errorf("array %s has %d elements of %T, want %v", a.Name, n, a.Data, a.Shape)
		}
		var shape strings.Builder
		for _, extent := range a.Shape {
			fmt.Fprintf(&shape, "%d, ", extent)
		}
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, &shape)
		w, err := z.CreateHeader(&zip.FileHeader{Name: a.Name + ".npy", Method: zip.Store})
		if err != nil {
			return nil, err
		}
		head := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
		if _, err := w.Write(append(head, header...)); err != nil {
			return nil, err
		}
		if err := binary.Write(w, binary.LittleEndian, a.Data); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}
