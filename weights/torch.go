package weights

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// kind is a type of elements: their size, and how one is read as float32. Of whole numbers there is no such way.
type kind struct {
	bytes int64
	read  func(b []byte) float32
}

// kinds are the storages of torch by the names of their classes.
var kinds = map[string]kind{
	"torch.FloatStorage": {4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }},
	"torch.DoubleStorage": {8, func(b []byte) float32 {
		return float32(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}},
	"torch.HalfStorage": {2, func(b []byte) float32 { return half(binary.LittleEndian.Uint16(b)) }},
	"torch.BFloat16Storage": {2, func(b []byte) float32 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	}},
	"torch.LongStorage":  {8, nil},
	"torch.IntStorage":   {4, nil},
	"torch.ShortStorage": {2, nil},
	"torch.CharStorage":  {1, nil},
	"torch.ByteStorage":  {1, nil},
	"torch.BoolStorage":  {1, nil},
}

// half widens a number of 16 bits, 5 of them the exponent.
func half(b uint16) float32 {
	sign, exponent, fraction := uint32(b>>15)<<31, uint32(b>>10)&31, uint32(b)&1023
	switch exponent {
	case 0:
		magnitude := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(magnitude) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// legacy is how a file of torch before 1.6 begins: a pickle of a number that marks it.
var legacy = []byte{0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9}

// Load loads the file at a path: safetensors, or what torch.save writes of a state_dict, alone or as the state_dict,
// model_state_dict or model of a dict. Of the latter it takes tensors of floats: double ones are rounded, half ones
// widened; whole numbers, such as counts of batches, are left out. It runs nothing that a file says. Errors are those
// of Read; archives of other things are refused with the name of what is not known.
func Load(path string) (File, error) {
	return open(path, func(r io.ReaderAt, size int64) (File, error) {
		var head [len("PK\x03\x04") + 5]byte
		n, err := r.ReadAt(head[:], 0)
		switch {
		case err != nil && err != io.EOF:
			return File{}, err
		case n == len(head) && bytes.Equal(head[:], legacy):
			return File{}, fmt.Errorf("is of the form before torch 1.6: convert it with " +
				"torch.save(torch.load(OLD), NEW)")
		case n == len(head) && head[n-1] != '{' && bytes.HasPrefix(head[:], []byte("PK\x03\x04")):
			return DecodeTorch(r, size)
		}
		return Decode(r, size)
	})
}

// DecodeTorch reads an archive of torch.save of the given size. Errors are those of Load, without a path.
func DecodeTorch(r io.ReaderAt, size int64) (File, error) {
	archive, err := newArchive(r, size)
	if err != nil {
		return File{}, err
	}
	text, err := archive.read("data.pkl")
	if err != nil {
		return File{}, err
	}
	top, err := unpickle(text)
	if err != nil {
		return File{}, err
	}
	views, err := tensorsOf(top)
	if err != nil {
		return File{}, err
	}
	return archive.tensors(views)
}

// named is a tensor of a state_dict.
type named struct {
	name string
	view
}

// tensorsOf returns the tensors of floats of a state_dict.
func tensorsOf(top any) ([]named, error) {
	d, _ := top.(*dict)
	all, err := d.tensors()
	if len(all) == 0 && err == nil && d != nil {
		for i, key := range d.keys {
			inner, is := d.values[i].(*dict)
			if is && (key == "state_dict" || key == "model_state_dict" || key == "model") {
				all, err = inner.tensors()
				break
			}
		}
	}
	if len(all) == 0 && err == nil {
		err = fmt.Errorf("holds no dict of tensors of floats: save model.state_dict() by torch.save")
	}
	return all, err
}

func (d *dict) tensors() (all []named, err error) {
	if d == nil {
		return nil, nil
	}
	seen := make(map[string]bool)
	for i, key := range d.keys {
		v, isView := d.values[i].(view)
		name, isText := key.(string)
		if !isView || !isText || v.of.kind.read == nil {
			continue
		}
		if seen[name] {
			return nil, fmt.Errorf("tensor %s is there twice: save the file again", quote(name))
		}
		seen[name] = true
		all = append(all, named{name, v})
	}
	return all, nil
}

// archive is a zip file with all entries in one folder.
type archive struct {
	size    int64
	folder  string
	entries map[string]*zip.File
}

func newArchive(r io.ReaderAt, size int64) (archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return archive{}, fmt.Errorf("%w: save or download it again", err)
	}
	a := archive{size: size, entries: make(map[string]*zip.File)}
	for _, f := range z.File {
		if a.entries[f.Name] != nil {
			return archive{}, fmt.Errorf("%s is there twice: save the file again", quote(f.Name))
		}
		a.entries[f.Name] = f
		if folder, is := strings.CutSuffix(f.Name, "/data.pkl"); is && !strings.Contains(folder, "/") {
			a.folder = folder
		}
	}
	if a.entries[a.folder+"/data.pkl"] == nil {
		return archive{}, fmt.Errorf("is a zip file without data.pkl, not one of torch.save: save " +
			"model.state_dict() by torch.save, or as safetensors")
	}
	if a.entries[a.folder+"/byteorder"] != nil {
		if order, err := a.read("byteorder"); err != nil || string(order) != "little" {
			return archive{}, fmt.Errorf("has its bytes in the order %.20q, want little: save it on another machine",
				order)
		}
	}
	return a, nil
}

// read returns the content of an entry, which is as it is in the archive: as long as that at most.
func (a archive) read(name string) ([]byte, error) {
	f := a.entries[a.folder+"/"+name]
	if f == nil {
		return nil, fmt.Errorf("lacks its part %s: save or download it again", quote(name))
	}
	n := int64(f.UncompressedSize64)
	if f.Method != zip.Store || n < 0 || n > a.size {
		return nil, fmt.Errorf("its part %s is compressed or longer than the file: save it by torch.save", quote(name))
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("its part %s: %w: save or download it again", quote(name), err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("its part %s: %w: save or download it again", quote(name), err)
	}
	return text, nil
}

// tensors reads tensors, each storage once.
func (a archive) tensors(all []named) (File, error) {
	slices.SortStableFunc(all, func(x, y named) int { return strings.Compare(x.of.key, y.of.key) })
	var f File
	var text []byte
	var total int64
	for i, v := range all {
		if i == 0 || v.of.key != all[i-1].of.key {
			var err error
			if text, err = a.read("data/" + v.of.key); err != nil {
				return File{}, fmt.Errorf("tensor %s: %w", quote(v.name), err)
			}
		}
		if n := v.of.kind.bytes; int64(len(text))%n != 0 || int64(len(text))/n != v.of.elements {
			return File{}, fmt.Errorf("tensor %s: its storage has %d bytes, want %d elements of %d: save or "+
				"download the file again", quote(v.name), len(text), v.of.elements, n)
		}
		// Tensors may share a storage, but a small file may not become a large one.
		elements := int64(v.shape.Elements())
		if total += elements * v.of.kind.bytes; total > 2*a.size {
			return File{}, fmt.Errorf("its tensors have more than twice as many bytes as the file: save " +
				"copies of those that share memory")
		}
		f.Tensors = append(f.Tensors, Tensor{v.name, v.shape, v.elements(text)})
	}
	slices.SortFunc(f.Tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return f, nil
}

// elements returns a tensor's elements, row-major, out of its storage.
func (v view) elements(text []byte) []float32 {
	data := make([]float32, v.shape.Elements())
	index, at := make([]int, len(v.shape)), v.offset
	for i := range data {
		data[i] = v.of.kind.read(text[at*v.of.kind.bytes:])
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < v.shape[d] {
				at += v.strides[d]
				break
			}
			at -= int64(index[d]-1) * v.strides[d]
			index[d] = 0
		}
	}
	return data
}
