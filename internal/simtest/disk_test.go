package simtest

import (
	"bytes"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tensile/checkpoint"
	"tensile/graph"
)

// disk is a checkpoint.Disk in memory, which all processes of a world see.
type disk map[string][]byte // by path

func (d disk) List(dir string) ([]checkpoint.Entry, error) {
	found := make(map[string]checkpoint.Entry)
	for path, content := range d {
		rest, below := strings.CutPrefix(path, dir+"/")
		if !below {
			continue
		}
		if name, _, deeper := strings.Cut(rest, "/"); deeper {
			found[name] = checkpoint.Entry{Name: name, Dir: true}
		} else {
			found[name] = checkpoint.Entry{Name: name, Bytes: graph.Bytes(len(content))}
		}
	}
	var list []checkpoint.Entry
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[name])
	}
	return list, nil
}

func (d disk) Create(path string) (checkpoint.File, error) {
	if _, there := d[path]; there {
		return nil, fs.ErrExist
	}
	d[path] = nil
	return &diskFile{d, path}, nil
}

func (d disk) Open(path string) (checkpoint.Opened, error) {
	content, there := d[path]
	if !there {
		return nil, fs.ErrNotExist
	}
	return diskReader{bytes.NewReader(content)}, nil
}

func (d disk) Rename(from, to string) error {
	d[to] = d[from]
	delete(d, from)
	return nil
}

func (d disk) Remove(path string) error {
	delete(d, path)
	return nil
}

type diskFile struct {
	d    disk
	path string
}

func (f *diskFile) Write(b []byte) (int, error) {
	f.d[f.path] = append(f.d[f.path], b...)
	return len(b), nil
}

func (f *diskFile) Sync() error  { return nil }
func (f *diskFile) Close() error { return nil }

type diskReader struct{ *bytes.Reader }

func (r diskReader) Size() (int64, error) { return r.Reader.Size(), nil }
func (r diskReader) Close() error         { return nil }

// tear damages a checkpoint: it is cut short, or a bit of it is another. It reports whether there was one.
func (w *world) tear() bool {
	var paths []string
	for _, path := range slices.Sorted(maps.Keys(w.disk)) {
		if filepath.Ext(path) == ".safetensors" && len(w.disk[path]) > 0 {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return false
	}
	path := paths[w.rng.IntN(len(paths))]
	content := slices.Clone(w.disk[path])
	if at := w.rng.IntN(len(content)); w.rng.IntN(2) == 0 {
		content = content[:at]
	} else {
		content[at] ^= 1 << w.rng.IntN(8)
	}
	w.disk[path] = content
	return true
}
