package simtest

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"tensile/data/checkpoint"
	"tensile/graph"
)

// disk is a folder that all executors see. It may be full, and what was written before a process died may be torn.
type disk struct {
	rng   *rand.Rand
	files map[string]*bytes.Buffer
	calm  *bool
}

var errFull = errors.New("no space left on device")

// full reports whether something can not be done just now.
func (d *disk) full() bool { return !*d.calm && d.rng.IntN(30) == 0 }

func (d *disk) List(dir string) ([]checkpoint.Entry, error) {
	var entries []checkpoint.Entry
	folders := make(map[string]bool)
	for _, path := range slices.Sorted(maps.Keys(d.files)) {
		rest, below := strings.CutPrefix(path, dir+string(filepath.Separator))
		if !below {
			continue
		}
		name, _, deep := strings.Cut(rest, string(filepath.Separator))
		if deep && !folders[name] {
			folders[name] = true
			entries = append(entries, checkpoint.Entry{Name: name, Dir: true})
		} else if !deep {
			entries = append(entries, checkpoint.Entry{Name: name, Bytes: graph.Bytes(d.files[path].Len())})
		}
	}
	return entries, nil
}

func (d *disk) Create(path string) (checkpoint.File, error) {
	if d.full() {
		return nil, errFull
	}
	d.files[path] = new(bytes.Buffer)
	return writing{d, d.files[path]}, nil
}

type writing struct {
	d *disk
	*bytes.Buffer
}

func (w writing) Write(b []byte) (int, error) {
	if w.d.full() {
		n, _ := w.Buffer.Write(b[:len(b)/2])
		return n, errFull
	}
	return w.Buffer.Write(b)
}
func (writing) Sync() error  { return nil }
func (writing) Close() error { return nil }

func (d *disk) Open(path string) (checkpoint.Opened, error) {
	f := d.files[path]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	return reading{bytes.NewReader(bytes.Clone(f.Bytes()))}, nil
}

type reading struct{ *bytes.Reader }

func (r reading) Size() (int64, error) { return r.Reader.Size(), nil }
func (reading) Close() error           { return nil }

func (d *disk) Rename(from, to string) error {
	if d.full() || d.files[from] == nil {
		return errFull
	}
	d.files[to] = d.files[from]
	delete(d.files, from)
	return nil
}

func (d *disk) Remove(path string) error {
	if d.files[path] == nil {
		return fs.ErrNotExist
	}
	delete(d.files, path)
	return nil
}

// damage flips a bit of a file, or cuts it short.
func (d *disk) damage() {
	paths := slices.Sorted(maps.Keys(d.files))
	if len(paths) == 0 {
		return
	}
	f := d.files[paths[d.rng.IntN(len(paths))]]
	switch {
	case f.Len() == 0:
	case d.rng.IntN(2) == 0:
		f.Bytes()[d.rng.IntN(f.Len())] ^= 1 << d.rng.IntN(8)
	default:
		f.Truncate(d.rng.IntN(f.Len()))
	}
}
