package data

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"tensile/data/rooted"
	"tensile/data/weights"
	"tensile/graph"
)

// Array is a named array of a file. Its first dimension counts examples.
type Array struct {
	Name  string
	Type  weights.Type
	Shape graph.Shape
	begin int64 // Offset of the first element in the file.
}

// Examples is the extent of the first dimension, 0 of a single number.
func (x Array) Examples() int {
	if len(x.Shape) == 0 {
		return 0
	}
	return x.Shape[0]
}

// Size is the number of elements of an example.
func (x Array) Size() int {
	if len(x.Shape) == 0 {
		return 0
	}
	return x.Shape[1:].Elements()
}

// bytes is the size of an example in the file.
func (x Array) bytes() int64 { return int64(x.Size()) * x.Type.Bytes() }

// Arrays is a safetensors file or an .npz file of NumPy, whose arrays hold examples, and an order to draw them in. Of
// the file it holds the header: examples are read when they are asked for. It is immutable and safe for concurrent use.
// The file stays open as long as it is used, so that one that is put in its place changes nothing.
type Arrays struct {
	path   string
	file   io.ReaderAt
	arrays []Array
	seed   uint64
}

// IsArrays reports whether a path names a file of arrays by its extension: .safetensors or .npz.
func IsArrays(path string) bool {
	return strings.EqualFold(filepath.Ext(path), ".safetensors") || isNPZ(path)
}

func isNPZ(path string) bool { return strings.EqualFold(filepath.Ext(path), ".npz") }

// OpenArrays opens a file of arrays. The seed decides the order of examples. Every error is one line that names the
// file, the array and the remedy.
func OpenArrays(in *rooted.Files, path string, seed uint64) (*Arrays, error) {
	err := regular(in, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("data file %s does not exist: name a .safetensors or .npz file", path)
	} else if err != nil {
		return nil, fmt.Errorf("data file %w", err)
	}
	file, err := in.Open(path)
	if err != nil {
		return nil, err
	}
	a := &Arrays{path: path, file: file, seed: seed}
	info, err := file.Stat()
	if err == nil {
		index := indexSafetensors
		if isNPZ(path) {
			index = indexNPZ
		}
		a.arrays, err = index(file, info.Size())
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

func indexSafetensors(r io.ReaderAt, size int64) ([]Array, error) {
	places, err := weights.Index(r, size)
	var all []Array
	for _, p := range places {
		all = append(all, Array{p.Name, p.Type, p.Shape, p.Begin})
	}
	return all, err
}

// indexNPZ finds the arrays of an .npz file: a zip file of .npy files, which are not compressed.
func indexNPZ(r io.ReaderAt, size int64) ([]Array, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: it is no .npz file, or damaged: save it by numpy.savez", err)
	}
	var all []Array
	seen := make(map[string]bool)
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, ".npy")
		fail := func(err error) ([]Array, error) { return nil, fmt.Errorf("array %.80q: %w", name, err) }
		if seen[name] {
			return fail(errors.New("is there twice: save the file again"))
		}
		seen[name] = true
		if f.Method != zip.Store || f.Flags&1 != 0 {
			return fail(errors.New("is compressed, so that no part of it can be read alone: save it by numpy.savez, " +
				"not savez_compressed"))
		}
		begin, err := f.DataOffset()
		length := int64(f.UncompressedSize64)
		if err != nil || length < 0 || begin > size-length {
			return fail(errors.New("goes beyond the end of the file: save or download it again"))
		}
		kind, shape, header, err := readNPY(io.NewSectionReader(r, begin, length), length)
		if err != nil {
			return fail(err)
		}
		all = append(all, Array{name, kind, shape, begin + header})
	}
	slices.SortFunc(all, func(a, b Array) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Name is what people call the set, for messages: the name of its file.
func (a *Arrays) Name() string { return filepath.Base(a.path) }

// Find returns the array of a name, and whether there is one.
func (a *Arrays) Find(name string) (Array, bool) {
	i := slices.IndexFunc(a.arrays, func(x Array) bool { return x.Name == name })
	if i < 0 {
		return Array{}, false
	}
	return a.arrays[i], true
}

// Names returns the names of the arrays, sorted.
func (a *Arrays) Names() []string {
	var names []string
	for _, x := range a.arrays {
		names = append(names, x.Name)
	}
	return names
}

// Fill reads the batch of an iteration, counted from 0, as the file has it: batch examples of an array one after the
// other, which to has room for. All arrays with as many examples are drawn in one order. It may be called in any order,
// again, and by several goroutines at once. Errors: the file cannot be read, or has become shorter.
func (a *Arrays) Fill(x Array, iteration, batch int, to []byte) error {
	n := x.bytes()
	if iteration < 0 || int64(len(to)) != int64(batch)*n {
		panic(fmt.Sprintf("data: Fill of iteration %d with %d bytes for %d examples of %d", iteration, len(to), batch,
			n))
	}
	return newOrder(x.Examples(), a.seed).forEach(iteration, batch, func(i, example int) error {
		return a.read(x, x.begin+int64(example)*n, to[int64(i)*n:][:n])
	})
}

func (a *Arrays) read(x Array, at int64, to []byte) error {
	if n, err := a.file.ReadAt(to, at); n < len(to) {
		return fmt.Errorf("%s: array %.80q ends after %d bytes of the file (%w): it was changed, start again", a.path,
			x.Name, at+int64(n), err)
	}
	return nil
}

// scanned is how many bytes of an array Range holds at a time, a multiple of every type's size.
const scanned = 1 << 20

// Range returns the least and the largest of the whole numbers in an array. It reads all of them, block by block.
func (a *Arrays) Range(x Array) (least, largest int64, err error) {
	least, largest = math.MaxInt64, math.MinInt64
	left := int64(x.Examples()) * x.bytes()
	text, numbers := make([]byte, min(left, scanned)), make([]int64, min(left, scanned)/x.Type.Bytes())
	for at := x.begin; left > 0; {
		part := text[:min(left, scanned)]
		if err := a.read(x, at, part); err != nil {
			return 0, 0, err
		}
		block := numbers[:int64(len(part))/x.Type.Bytes()]
		x.Type.Ints(block, part)
		least, largest = min(least, slices.Min(block)), max(largest, slices.Max(block))
		at, left = at+int64(len(part)), left-int64(len(part))
	}
	return least, largest, nil
}
