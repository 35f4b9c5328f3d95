package weights

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tensile/data/rooted"
	"tensile/graph"
)

// metadataDCP is the file of a folder of torch.distributed.checkpoint that says where its tensors lie.
const metadataDCP = ".metadata"

// object is an instance of a class of torch.distributed.checkpoint, with its attributes by name.
type object struct{ attributes *dict }

// get is an attribute, nil if there is none.
func (o *object) get(name string) any {
	if o == nil || o.attributes == nil {
		return nil
	}
	for i, key := range o.attributes.keys {
		if key == name {
			return o.attributes.values[i]
		}
	}
	return nil
}

// piece is a part of a tensor, and where it lies.
type piece struct {
	name         string
	at           []int64 // its first element in the tensor
	file         string
	offset, size int64
}

// loadDCP loads the tensors of floats of a folder of torch.distributed.checkpoint: pieces that torch.save has written
// one behind the other.
func loadDCP(in *rooted.Files, dir string) (File, error) {
	path := filepath.Join(dir, metadataDCP)
	var pieces []piece
	shapes := make(map[string]graph.Shape)
	_, err := open(in, path, func(r io.ReaderAt, size int64) (File, error) {
		if size > maxHeader {
			return File{}, fmt.Errorf("has %d bytes, of which it may have %d", size, maxHeader)
		}
		text := make([]byte, size)
		if _, err := r.ReadAt(text, 0); err != nil {
			return File{}, err
		}
		top, err := unpickle(text, size)
		if err == nil {
			pieces, err = piecesOf(top, shapes)
		}
		return File{}, err
	})
	if err != nil {
		return File{}, err
	}
	tensors := make(map[string]*Tensor)
	for i := 0; i < len(pieces); {
		n := 1
		for i+n < len(pieces) && pieces[i+n].file == pieces[i].file {
			n++
		}
		_, err := open(in, filepath.Join(dir, pieces[i].file), func(r io.ReaderAt, size int64) (File, error) {
			for _, p := range pieces[i : i+n] {
				if err := p.read(r, size, shapes[p.name], tensors); err != nil {
					return File{}, fmt.Errorf("tensor %s: %w", quote(p.name), err)
				}
			}
			return File{}, nil
		})
		if err != nil {
			return File{}, err
		}
		i += n
	}
	var f File
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		f.Tensors = append(f.Tensors, *tensors[name])
	}
	return f, nil
}

// piecesOf are the pieces that metadata lists, by file, and the shapes of the tensors.
func piecesOf(top any, shapes map[string]graph.Shape) (all []piece, err error) {
	const save = "save it again, or convert the folder by python -m torch.distributed.checkpoint.format_utils " +
		"dcp_to_torch FOLDER FILE.pt"
	meta, _ := top.(*object)
	tensors, areTensors := meta.get("state_dict_metadata").(*dict)
	stored, isStored := meta.get("storage_data").(*dict)
	if !areTensors || !isStored {
		return nil, fmt.Errorf("is no metadata of torch.distributed.checkpoint: %s", save)
	}
	for i, key := range tensors.keys {
		name, _ := key.(string)
		of, _ := tensors.values[i].(*object)
		size, isTensor := numbersOf(of.get("size"))
		if !isTensor { // a number or text of the state_dict
			continue
		}
		shapes[name] = graph.Shape{}
		for _, n := range size {
			shapes[name] = append(shapes[name], int(n))
		}
		if _, err := count(shapes[name]); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(name), err)
		}
	}
	for i, key := range stored.keys {
		index, _ := key.(*object)
		where, _ := stored.values[i].(*object)
		name, _ := index.get("fqn").(string)
		if _, is := shapes[name]; !is {
			continue
		}
		p := piece{name: name}
		p.at, _ = numbersOf(index.get("offset"))
		p.file, _ = where.get("relative_path").(string)
		var is [2]bool
		p.offset, is[0] = where.get("offset").(int64)
		p.size, is[1] = where.get("length").(int64)
		if len(p.at) != len(shapes[name]) || !filepath.IsLocal(p.file) || !is[0] || !is[1] || p.offset < 0 ||
			p.size < 0 {
			return nil, fmt.Errorf("tensor %s lies nowhere that is known: %s", quote(name), save)
		}
		if where.get("transform_descriptors") != nil {
			return nil, fmt.Errorf("tensor %s is compressed: %s", quote(name), save)
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b piece) int { return strings.Compare(a.file, b.file) })
	return all, nil
}

// read puts a piece into its tensor, which is made if there is none yet. One of whole numbers is passed over.
func (p piece) read(r io.ReaderAt, size int64, shape graph.Shape, tensors map[string]*Tensor) error {
	if p.size > size || p.offset > size-p.size {
		return fmt.Errorf("it takes %d bytes from %d on, and the file has %d: copy the folder again", p.size, p.offset,
			size)
	}
	section := io.NewSectionReader(r, p.offset, p.size)
	archive, err := newArchive(section, p.size)
	if err != nil {
		return err
	}
	text, err := archive.read("data.pkl")
	if err != nil {
		return err
	}
	top, err := unpickle(text, p.size)
	if err != nil {
		return err
	}
	v, isView := top.(view)
	if other, is := top.(thing); is && other.tensor {
		return fmt.Errorf("it is of %s, which is not read: convert it to float32 first", quote(other.by))
	}
	if !isView || v.of.kind.IsInteger() {
		return nil
	}
	f, err := archive.tensors([]named{{p.name, v}})
	if err != nil {
		return err
	}
	part := f.Tensors[0]
	if len(part.Shape) != len(shape) {
		return fmt.Errorf("it has shape %v, and a piece %v: copy the folder again", shape, part.Shape)
	}
	for d, n := range part.Shape {
		if p.at[d] > int64(shape[d]-n) {
			return fmt.Errorf("a piece of shape %v at %v reaches beyond its shape %v: copy the folder again",
				part.Shape, p.at, shape)
		}
	}
	whole := tensors[p.name]
	if whole == nil {
		if len(part.Data) == shape.Elements() {
			tensors[p.name] = &Tensor{p.name, shape, part.Data}
			return nil
		}
		const most = 1 << 32 // elements, of pieces that a small file may claim to be of
		if shape.Elements() > most {
			return fmt.Errorf("shape %v has more than %d elements in pieces", shape, int64(most))
		}
		whole = &Tensor{p.name, shape, make([]float32, shape.Elements())}
		tensors[p.name] = whole
	}
	putPiece(whole, part, p.at)
	return nil
}

// putPiece copies a part into a tensor, row by row.
func putPiece(to *Tensor, part Tensor, at []int64) {
	if len(part.Data) == 0 {
		return
	}
	last := len(part.Shape) - 1
	if last < 0 {
		copy(to.Data, part.Data)
		return
	}
	width := part.Shape[last]
	for row := range len(part.Data) / width {
		begin, step, rest := int(at[last]), to.Shape[last], row
		for d := last - 1; d >= 0; d-- {
			begin += (int(at[d]) + rest%part.Shape[d]) * step
			rest /= part.Shape[d]
			step *= to.Shape[d]
		}
		copy(to.Data[begin:begin+width], part.Data[row*width:])
	}
}
