package onnx

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// load reads the tensors that a model keeps in other files. They must lie in the folder of the model.
func (m *Model) load(path string) error {
	var root *os.Root
	for _, t := range m.tensors() {
		if t.external == nil {
			continue
		}
		if root == nil {
			var err error
			if root, err = os.OpenRoot(filepath.Dir(path)); err != nil {
				return err
			}
			defer root.Close()
		}
		if err := t.loadFrom(root); err != nil {
			return fmt.Errorf("tensor %.80q: external data %.80q: %w", t.Name, t.external["location"], err)
		}
		t.external = nil
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

// loadFrom reads the elements of a tensor from a file in a folder.
func (t *Tensor) loadFrom(root *os.Root) error {
	location := t.external["location"]
	if !filepath.IsLocal(location) {
		return errors.New("it is not in the folder of the model: put it there and name it by a relative path")
	}
	n, err := t.elements()
	if err != nil {
		return err
	}
	size := n * int64(types[t.Type].size)
	offset, length := int64(0), size
	for key, to := range map[string]*int64{"offset": &offset, "length": &length} {
		if text, ok := t.external[key]; ok {
			if *to, err = strconv.ParseInt(text, 10, 64); err != nil || *to < 0 {
				return fmt.Errorf("%s %.40q is no number of bytes", key, text)
			}
		}
	}
	if length != size {
		return fmt.Errorf("it has %d bytes, and %v of shape %v takes %d", length, t.Type, t.Dims, size)
	}
	if info, err := root.Stat(location); err == nil && !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	file, err := root.Open(location)
	if err != nil {
		return fmt.Errorf("it cannot be opened in the folder of the model: %w", errors.Unwrap(err))
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case size > info.Size() || offset > info.Size()-size:
		return fmt.Errorf("truncated: %d bytes from %d on, and the file has %d", size, offset, info.Size())
	}
	t.Raw = make([]byte, size)
	_, err = io.ReadFull(io.NewSectionReader(file, offset, size), t.Raw)
	return err
}
