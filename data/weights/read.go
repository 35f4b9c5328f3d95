package weights

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"tensile/data/rooted"
	"tensile/graph"
)

// Read loads the tensors of floats in the file at a path: those of 64 bits are rounded, those of 16 widened. Whole
// numbers, such as counts of batches, are left out. Errors, beside those of the file system: a file that breaks a rule
// of the format, and tensors of types that are not known. They name the tensor and say what to do.
func Read(path string) (File, error) { return open(nil, path, Decode) }

// open has a file of weights read.
func open(in *rooted.Files, path string, decode func(r io.ReaderAt, size int64) (File, error)) (File, error) {
	info, err := in.Stat(path)
	if err != nil {
		return File{}, fmt.Errorf("read weights: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for whoever writes to it
		return File{}, fmt.Errorf("read weights %s: is no regular file: name a file of weights", path)
	}
	file, err := in.Open(path)
	if err != nil {
		return File{}, fmt.Errorf("read weights: %w", err)
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return File{}, fmt.Errorf("read weights: %w", err)
	}
	f, err := decode(file, info.Size())
	if err != nil {
		return File{}, fmt.Errorf("read weights %s: %w", path, err)
	}
	return f, nil
}

// Decode reads a file of the given size. Errors are those of Read, without a path.
func Decode(r io.ReaderAt, size int64) (File, error) {
	parts, metadata, start, err := index(r, size)
	if err != nil {
		return File{}, err
	}
	f := File{Metadata: metadata}
	chunk := make([]byte, min(chunkBytes, size-start))
	for _, p := range parts {
		if p.kind.IsInteger() {
			continue
		}
		data := make([]float32, (p.end-p.begin)/p.kind.Bytes())
		if err := readFloats(r, start+p.begin, p.kind, data, chunk); err != nil {
			return File{}, fmt.Errorf("tensor %s: %w", quote(p.name), err)
		}
		f.Tensors = append(f.Tensors, Tensor{p.name, p.shape, data})
	}
	slices.SortFunc(f.Tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return f, nil
}

// Place is where a tensor of any type lies in a file: its elements begin at a byte of the file, row-major.
type Place struct {
	Name  string
	Type  Type
	Shape graph.Shape
	Begin int64
}

// Index returns where the tensors of a safetensors file of the given size lie, sorted by name. It reads the header
// alone. Errors are those of Read, without a path.
func Index(r io.ReaderAt, size int64) ([]Place, error) {
	parts, _, start, err := index(r, size)
	var all []Place
	for _, p := range parts {
		all = append(all, Place{p.name, p.kind, p.shape, start + p.begin})
	}
	slices.SortFunc(all, func(a, b Place) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// index reads the header and checks that its tensors cover the data, which begins at byte start.
func index(r io.ReaderAt, size int64) (parts []part, metadata map[string]string, start int64, err error) {
	text, err := headerText(r, size)
	if err != nil {
		return nil, nil, 0, err
	}
	if parts, metadata, err = parseHeader(text); err != nil {
		return nil, nil, 0, err
	}
	start = lengthBytes + int64(len(text))
	if err := checkCover(parts, size-start); err != nil {
		return nil, nil, 0, err
	}
	return parts, metadata, start, nil
}

// headerText reads the header, having checked its length against the file's.
func headerText(r io.ReaderAt, size int64) ([]byte, error) {
	if size < lengthBytes {
		return nil, fmt.Errorf("has %d bytes, too few for a safetensors file: save or download it again", size)
	}
	var length [lengthBytes]byte
	if _, err := r.ReadAt(length[:], 0); err != nil && err != io.EOF {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if length[0] == '{' && n > maxHeader {
		return nil, fmt.Errorf("is text, and no safetensors file: of a model in several files, which an index lists, " +
			"load all and save them as one")
	}
	if n > maxHeader {
		return nil, fmt.Errorf("claims a header of %d bytes, want at most %d: check that it is a safetensors file", n,
			maxHeader)
	}
	if int64(n) > size-lengthBytes {
		return nil, fmt.Errorf("truncated: has %d bytes, the header alone ends at %d: save or download it again", size,
			lengthBytes+n)
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, lengthBytes); err != nil && err != io.EOF {
		return nil, err
	}
	return text, nil
}

// checkCover sorts the parts by offset and checks that they cover all of the data, without gap or overlap.
func checkCover(parts []part, size int64) error {
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	var end int64
	for _, p := range parts {
		if p.begin != end {
			return fmt.Errorf("tensor %s starts at byte %d of the data, want %d, where the one before ends: save "+
				"the file again",
				quote(p.name), p.begin, end)
		}
		if end = p.end; end > size {
			return fmt.Errorf("truncated: tensor %s ends at byte %d of the data, the file at %d: save or download "+
				"it again",
				quote(p.name), end, size)
		}
	}
	if end != size {
		return fmt.Errorf("has %d bytes of data, of which tensors cover %d: save or download it again", size, end)
	}
	return nil
}

// readFloats fills data with elements of a type from an offset on, by way of the chunk.
func readFloats(r io.ReaderAt, offset int64, kind Type, data []float32, chunk []byte) error {
	for len(data) > 0 {
		n := min(int64(len(data)), int64(len(chunk))/kind.Bytes())
		bytes := chunk[:n*kind.Bytes()]
		if got, err := r.ReadAt(bytes, offset); got < len(bytes) {
			return fmt.Errorf("after %d bytes of the file: %w", offset+int64(got), err)
		}
		kind.Floats(data[:n], bytes)
		data, offset = data[n:], offset+int64(len(bytes))
	}
	return nil
}
