package onnx

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"tensile/data/rooted"
)

// maxExternal bounds what all tensors in other files take together, in bytes. A file that is all hole can claim any.
const maxExternal = 32 << 30

// load reads the tensors that a model keeps in other files. They must lie in the folder of the model. None is read
// unless all together have no more bytes than their files, and than maxExternal: a small model can name one file for
// any number of tensors.
func (m *Model) load(in *rooted.Files, path string) error {
	var external []*Tensor
	for _, t := range m.tensors() {
		if t.external != nil {
			external = append(external, t)
		}
	}
	if external == nil {
		return nil
	}
	root, err := in.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	ranges := make([]extent, len(external))
	var files ledger
	for i, t := range external {
		if ranges[i], err = t.extent(root); err == nil {
			err = files.take(ranges[i])
		}
		if err != nil {
			return fmt.Errorf("tensor %.80q: external data %.80q: %w", t.Name, t.external["location"], err)
		}
	}
	for i, t := range external {
		if t.Raw, err = ranges[i].read(root); err != nil {
			return fmt.Errorf("tensor %.80q: external data %.80q: %w", t.Name, t.external["location"], err)
		}
		t.external = nil
	}
	return nil
}

// extent is where a tensor lies in a file.
type extent struct {
	location     string
	info         os.FileInfo
	offset, size int64
}

// ledger counts what tensors take of files.
type ledger struct {
	files []os.FileInfo
	taken []int64
	at    map[string]int // places in files, by location: two may name one file
	all   int64
}

func (l *ledger) take(e extent) error {
	i, ok := l.at[e.location]
	if !ok {
		i = slices.IndexFunc(l.files, func(info os.FileInfo) bool { return os.SameFile(info, e.info) })
		if i < 0 {
			i = len(l.files)
			l.files, l.taken = append(l.files, e.info), append(l.taken, 0)
		}
		if l.at == nil {
			l.at = make(map[string]int)
		}
		l.at[e.location] = i
	}
	l.taken[i] += e.size
	l.all += e.size
	switch size := l.files[i].Size(); {
	case l.taken[i] > size:
		return fmt.Errorf("with it tensors take %d bytes or more of the file's %d: save each with bytes of its own",
			l.taken[i], size)
	case l.all > maxExternal:
		return fmt.Errorf("with it tensors take %d bytes of other files, of which there may be %d", l.all,
			int64(maxExternal))
	}
	return nil
}

// tensors are the initializers and the tensors of attributes.
func (m *Model) tensors() []*Tensor {
	var all []*Tensor
	for i := range m.Graph.Initializers {
		all = append(all, &m.Graph.Initializers[i])
	}
	for i := range m.Graph.Nodes {
		for _, a := range m.Graph.Nodes[i].Attributes {
			if a.Tensor != nil {
				all = append(all, a.Tensor)
			}
		}
	}
	return all
}

// extent says where in a folder the elements of a tensor lie, and checks that they are there.
func (t *Tensor) extent(root *os.Root) (extent, error) {
	e := extent{location: t.external["location"]}
	if !filepath.IsLocal(e.location) {
		return e, errors.New("it is not in the folder of the model: put it there and name it by a relative path")
	}
	n, err := t.elements()
	if err != nil {
		return e, err
	}
	e.size = n * int64(types[t.Type].size)
	length := e.size
	for key, to := range map[string]*int64{"offset": &e.offset, "length": &length} {
		if text, ok := t.external[key]; ok {
			if *to, err = strconv.ParseInt(text, 10, 64); err != nil || *to < 0 {
				return e, fmt.Errorf("%s %.40q is no number of bytes: export the model again", key, text)
			}
		}
	}
	if length != e.size {
		return e, fmt.Errorf("it has %d bytes, and %v of shape %v takes %d", length, t.Type, t.Dims, e.size)
	}
	e.info, err = root.Stat(e.location)
	switch {
	case err != nil:
		return e, fmt.Errorf("it cannot be opened in the folder of the model: %w: copy it there, too",
			errors.Unwrap(err))
	case !e.info.Mode().IsRegular():
		return e, errors.New("it is no regular file")
	case e.size > e.info.Size() || e.offset > e.info.Size()-e.size:
		return e, fmt.Errorf("truncated: %d bytes from %d on, and the file has %d: copy it again", e.size, e.offset,
			e.info.Size())
	}
	return e, nil
}

// read returns the bytes of an extent.
func (e extent) read(root *os.Root) ([]byte, error) {
	file, err := root.Open(e.location)
	if err != nil {
		return nil, fmt.Errorf("it cannot be opened in the folder of the model: %w: copy it there, too",
			errors.Unwrap(err))
	}
	defer file.Close()
	raw := make([]byte, e.size)
	_, err = io.ReadFull(io.NewSectionReader(file, e.offset, e.size), raw)
	return raw, err
}
