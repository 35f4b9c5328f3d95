package weights

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"tensile/data/rooted"
)

// storages are the types of torch's storages by the names of their classes.
var storages = map[string]Type{
	"torch.FloatStorage":    "F32",
	"torch.DoubleStorage":   "F64",
	"torch.HalfStorage":     "F16",
	"torch.BFloat16Storage": "BF16",
	"torch.LongStorage":     "I64",
	"torch.IntStorage":      "I32",
	"torch.ShortStorage":    "I16",
	"torch.CharStorage":     "I8",
	"torch.ByteStorage":     "U8",
	"torch.BoolStorage":     "BOOL",
}

// legacy is how a file of torch before 1.6 begins: a pickle of a number that marks it.
var legacy = []byte{0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9}

// Load loads the file at a path: safetensors, or what torch.save writes of a state_dict, alone or in a dict, with
// anything beside it. Of the latter it takes tensors of floats: double ones are rounded, half ones widened; whole
// numbers, such as counts of batches, are left out. Of safetensors it has tensors also under the names that the
// metadata gives for those that share memory. It runs nothing that a file says. Errors are those of Read; archives of
// other things are refused with the name of what is not known.
//
// A folder stands for the weights in it, and an index for the files that it lists.
func Load(in *rooted.Files, path string) (File, error) {
	if info, err := in.Stat(path); err == nil && info.IsDir() {
		return loadFolder(in, path)
	}
	if strings.HasSuffix(path, ".index.json") {
		return loadIndex(in, path)
	}
	return open(in, path, func(r io.ReaderAt, size int64) (File, error) {
		var head [len("PK\x03\x04") + 5]byte
		n, err := r.ReadAt(head[:], 0)
		switch {
		case err != nil && err != io.EOF:
			return File{}, err
		case n == len(head) && bytes.Equal(head[:], legacy):
			return File{}, fmt.Errorf("is of the form before torch 1.6: convert it with " +
				"torch.save(torch.load(OLD), NEW)")
		case n == len(head) && head[n-1] != '{' && bytes.HasPrefix(head[:], []byte("PK\x03\x04")):
			return decodeTorch(r, size)
		}
		f, err := Decode(r, size)
		f.alias()
		return f, err
	})
}

// alias adds the tensors that safetensors' save_model leaves out because they share memory with another: the metadata
// has that one's name under theirs.
func (f *File) alias() {
	tensors := make(map[string]Tensor)
	for _, t := range f.Tensors {
		tensors[t.Name] = t
	}
	for _, name := range slices.Sorted(maps.Keys(f.Metadata)) {
		kept, found := tensors[f.Metadata[name]]
		if _, own := tensors[name]; found && !own {
			f.Tensors = append(f.Tensors, Tensor{name, kept.Shape, kept.Data})
		}
	}
	slices.SortFunc(f.Tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
}

// decodeTorch reads an archive of torch.save of the given size. Errors are those of Load, without a path.
func decodeTorch(r io.ReaderAt, size int64) (File, error) {
	archive, err := newArchive(r, size)
	if err != nil {
		return File{}, err
	}
	text, err := archive.read("data.pkl")
	if err != nil {
		return File{}, err
	}
	top, err := unpickle(text, size)
	if err != nil {
		return File{}, err
	}
	views, note, err := tensorsOf(top)
	if err != nil {
		return File{}, err
	}
	f, err := archive.tensors(views)
	f.Note = note
	return f, err
}

// named is a tensor of a state_dict.
type named struct {
	name string
	view
}

// tensorsOf returns the tensors of floats of a state_dict, which is the top or within it, and a line on another one
// that has tensors of the same names.
func tensorsOf(top any) (all []named, note string, err error) {
	d, isDict := top.(*dict)
	if !isDict {
		return nil, "", noDict(top)
	}
	found := d.find("", make(map[*dict]bool))
	switch len(found) {
	case 0:
		return nil, "", noDict(d.values...)
	case 1:
		if other := d.findLike(found[0].of, "", make(map[*dict]bool)); other != "" {
			note = fmt.Sprintf("has weights at %s and at %s: the first are taken; torch.save(torch.load(FILE)%s, NEW) "+
				"makes a file of the others", found[0].path, other, other)
		}
		all, err = found[0].of.tensors()
		return all, note, err
	}
	var paths []string
	for _, f := range found[:min(len(found), 5)] {
		paths = append(paths, f.path)
	}
	return nil, "", fmt.Errorf("holds %d dicts of tensors, at %s: save the one that is meant, as by "+
		"torch.save(torch.load(OLD)%s, NEW)", len(found), strings.Join(paths, ", "), paths[0])
}

// noDict is the error of a file without a dict of tensors. It names what the file holds instead, if that is anything.
func noDict(values ...any) error {
	for _, v := range values {
		by := ""
		switch v := v.(type) {
		case thing:
			by = v.by
		case global:
			by = string(v)
		}
		if by != "" {
			return fmt.Errorf("holds no dict of tensors of floats: %s is none of what a dict of tensors needs, and "+
				"nothing is called for a file: save model.state_dict() by torch.save", quote(by))
		}
	}
	return fmt.Errorf("holds no dict of tensors of floats: save model.state_dict() by torch.save")
}

// place is a dict of tensors, and how Python gets at it.
type place struct {
	path string
	of   *dict
}

// find returns the dicts of tensors at or below a dict that were not seen: that under a name which checkpoints have for
// it, if there is one; else the dict itself, unless it has nothing but single numbers; else those below.
func (d *dict) find(path string, seen map[*dict]bool) (found []place) {
	const deepest = 100 // characters of a path: a hostile file is deep
	if seen[d] || len(path) > deepest {
		return nil
	}
	seen[d] = true
	var below []place
	for i, key := range d.keys {
		name, isText := key.(string)
		inner, is := d.values[i].(*dict)
		if !isText || !is {
			continue
		}
		all := inner.find(fmt.Sprintf("%s[%s]", path, quote(name)), seen)
		if len(all) > 0 && (name == "state_dict" || name == "model_state_dict" || name == "model") {
			return all
		}
		below = append(below, all...)
	}
	single := true
	for _, v := range d.values {
		switch v := v.(type) {
		case view:
			if found = []place{{path, d}}; len(v.shape) > 0 && !v.of.kind.IsInteger() {
				single = false
			}
		case thing:
			if v.tensor {
				found, single = []place{{path, d}}, false
			}
		}
	}
	if single && len(below) > 0 {
		return below
	}
	return found
}

// findLike returns the path of another dict at or below this one that has a tensor of the name of one of those in a
// dict, as averages of weights have; "": there is none.
func (d *dict) findLike(of *dict, path string, seen map[*dict]bool) string {
	if seen[d] || strings.Count(path, "[") > deepestDict {
		return ""
	}
	seen[d] = true
	bare := func(key any) string {
		name, _ := key.(string)
		return strings.TrimPrefix(name, "module.")
	}
	has := make(map[string]bool)
	for i, key := range of.keys {
		if v, is := of.values[i].(view); is && len(v.shape) > 0 {
			has[bare(key)] = true
		}
	}
	for i, key := range d.keys {
		switch v := d.values[i].(type) {
		case view:
			if d != of && len(v.shape) > 0 && has[bare(key)] {
				return path
			}
		case *dict:
			if name, isText := key.(string); isText {
				if other := v.findLike(of, fmt.Sprintf("%s[%s]", path, quote(name)), seen); other != "" {
					return other
				}
			}
		}
	}
	return ""
}

// deepestDict is how deep dicts may lie in one another to be looked into.
const deepestDict = 8

// tensors returns the tensors of floats in a dict.
func (d *dict) tensors() (all []named, err error) {
	seen := make(map[string]bool)
	for i, key := range d.keys {
		v, isView := d.values[i].(view)
		name, isText := key.(string)
		if other, is := d.values[i].(thing); is && other.tensor {
			return nil, fmt.Errorf("tensor %s is of %s, which is not read: convert it to float32 first", quote(name),
				quote(other.by))
		}
		if !isView || !isText || v.of.kind.IsInteger() {
			continue
		}
		if seen[name] {
			return nil, fmt.Errorf("tensor %s is there twice: save the file again", quote(name))
		}
		seen[name] = true
		all = append(all, named{name, v})
	}
	if len(all) == 0 {
		err = noDict()
	}
	return all, err
}

// archive is a zip file with all entries in one folder.
type archive struct {
	size    int64
	folder  string
	entries map[string]*zip.File

	unchecked bool // it was written without sums to check
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
		a.unchecked = a.unchecked || f.CRC32 == 0 && f.UncompressedSize64 > 0
		if folder, is := strings.CutSuffix(f.Name, "/data.pkl"); is && !strings.Contains(folder, "/") {
			a.folder = folder
		}
	}
	if a.entries[a.folder+"/data.pkl"] == nil {
		return archive{}, fmt.Errorf("is a zip file without data.pkl, not one of torch.save: save " +
			"model.state_dict() by torch.save, or as safetensors")
	}
	if a.entries[a.folder+"/byteorder"] != nil {
		order, err := a.read("byteorder")
		if err != nil {
			return archive{}, err
		}
		if string(order) != "little" {
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
	r, err := io.Reader(nil), error(nil)
	if f.CRC32 == 0 { // torch.serialization.set_crc32_options(False)
		r, err = f.OpenRaw()
	} else {
		r, err = f.Open()
	}
	if err != nil {
		return nil, fmt.Errorf("its part %s: %w: save or download it again", quote(name), err)
	}
	text := bytes.NewBuffer(make([]byte, 0, n+bytes.MinRead))
	if _, err := text.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("its part %s: %w: save or download it again", quote(name), err)
	}
	return text.Bytes(), nil
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
		if n := v.of.kind.Bytes(); int64(len(text))%n != 0 || int64(len(text))/n != v.of.elements {
			return File{}, fmt.Errorf("tensor %s: its storage has %d bytes, want %d elements of %d: save or "+
				"download the file again", quote(v.name), len(text), v.of.elements, n)
		}
		// Tensors may share a storage, but a small file may not become a large one.
		elements := int64(v.shape.Elements())
		if total += elements * v.of.kind.Bytes(); total > 2*a.size {
			return File{}, fmt.Errorf("its tensors have more than twice as many bytes as the file: save " +
				"copies of those that share memory")
		}
		f.Tensors = append(f.Tensors, Tensor{v.name, v.shape, v.elements(text)})
	}
	if a.unchecked && !slices.ContainsFunc(f.Tensors, func(t Tensor) bool {
		return slices.ContainsFunc(t.Data, func(v float32) bool { return v != 0 })
	}) {
		return File{}, fmt.Errorf("its tensors hold nothing but zeros, as torch.serialization.skip_data writes them: " +
			"save it with its data")
	}
	slices.SortFunc(f.Tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return f, nil
}

// elements returns a tensor's elements, row-major, out of its storage.
func (v view) elements(text []byte) []float32 {
	data := make([]float32, v.shape.Elements())
	index, at, e := make([]int, len(v.shape)), v.offset, types[v.of.kind]
	for i := range data {
		data[i] = e.float(text[at*e.bytes:])
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
