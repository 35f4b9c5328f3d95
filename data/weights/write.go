package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tensile/data/rooted"
	"tensile/graph"
)

// entry is the header's description of a tensor, in the field order of the reference implementation.
type entry struct {
	DType   string      `json:"dtype"`
	Shape   graph.Shape `json:"shape"`
	Offsets [2]int64    `json:"data_offsets"`
}

// Write saves the file at a path, in place of what was there. It writes beside the path and renames, so that no reader
// and no crash ever meets half a file; when it fails, the old file stays and nothing else is left. If the path is a
// link, what it points at is replaced. Errors: contents that the format cannot hold, those of the file system, and of a
// file that does not lie within the folders.
func Write(in *rooted.Files, path string, f File) error {
	if err := replace(in, path, func(w io.Writer) error { return Encode(w, f) }); err != nil {
		return fmt.Errorf("write weights %s: %w", path, err)
	}
	return nil
}

// Encode writes the file's bytes. Errors: contents that the format cannot hold, and those of w.
func Encode(w io.Writer, f File) error {
	if err := f.check(); err != nil {
		return err
	}
	f.Tensors = slices.SortedFunc(slices.Values(f.Tensors), func(a, b Tensor) int {
		return strings.Compare(a.Name, b.Name)
	})
	head, err := header(f, maxHeader)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	chunk := make([]byte, 0, chunkBytes)
	for _, t := range f.Tensors {
		for part := range slices.Chunk(t.Data, chunkBytes/int(elementBytes)) {
			chunk = chunk[:0]
			for _, v := range part {
				chunk = binary.LittleEndian.AppendUint32(chunk, math.Float32bits(v))
			}
			if _, err := w.Write(chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunkBytes is how much is converted between float32 and bytes at a time.
const chunkBytes = 1 << 18

// header returns the length, at most the limit, and the JSON text. Tensors must be sorted by name.
func header(f File, limit int) ([]byte, error) {
	fields := make(map[string]any, len(f.Tensors)+1) // encoding/json writes them in the order of their names
	if len(f.Metadata) > 0 {
		fields[metadataKey] = f.Metadata
	}
	var offset int64
	for _, t := range f.Tensors {
		end := offset + int64(len(t.Data))*elementBytes
		fields[t.Name] = entry{dtype, append(graph.Shape{}, t.Shape...), [2]int64{offset, end}}
		offset = end
	}
	text := bytes.NewBuffer(make([]byte, lengthBytes))
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	head := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	length := len(head) - lengthBytes
	if length > limit {
		return nil, fmt.Errorf("the header would take %d bytes, want at most %d: shorten names or metadata", length,
			limit)
	}
	binary.LittleEndian.PutUint64(head, uint64(length))
	return head, nil
}
