package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tensile/data/rooted"
)

// inFolders are the files of weights that folders of transformers and others have, the one that is taken first.
var inFolders = []string{"model.safetensors", "model" + safetensorsIndex, "pytorch_model.bin",
	"pytorch_model.bin.index.json", metadataDCP}

const safetensorsIndex = ".safetensors.index.json"

// loadFolder loads the weights in a folder.
func loadFolder(in *rooted.Files, dir string) (File, error) {
	for _, name := range inFolders {
		path := filepath.Join(dir, name)
		if info, err := in.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if name == metadataDCP {
			return loadDCP(in, dir)
		}
		return Load(in, path)
	}
	return File{}, fmt.Errorf("read weights %s: is a folder without any of %s: name a file of weights", dir,
		strings.Join(inFolders, ", "))
}

// loadIndex loads the tensors of a model in several files, which an index lists.
func loadIndex(in *rooted.Files, path string) (File, error) {
	var listed struct {
		Files map[string]string `json:"weight_map"`
	}
	_, err := open(in, path, func(r io.ReaderAt, size int64) (File, error) {
		if size > maxHeader {
			return File{}, fmt.Errorf("has %d bytes, of which an index may have %d", size, maxHeader)
		}
		err := json.NewDecoder(io.NewSectionReader(r, 0, size)).Decode(&listed)
		if err == nil && len(listed.Files) == 0 {
			err = fmt.Errorf("has no weight_map")
		}
		if err != nil {
			err = fmt.Errorf("is no index of a model in several files: %w: save the model again", err)
		}
		return File{}, err
	})
	if err != nil {
		return File{}, err
	}
	wanted := make(map[string]map[string]bool) // names by file
	for name, file := range listed.Files {
		if !filepath.IsLocal(file) {
			return File{}, fmt.Errorf("read weights %s: tensor %s is in %s, which is not in the folder of the index: "+
				"put it there", path, quote(name), quote(file))
		}
		if wanted[file] == nil {
			wanted[file] = make(map[string]bool)
		}
		wanted[file][name] = true
	}
	var all File
	for _, file := range slices.Sorted(maps.Keys(wanted)) {
		listed := filepath.Join(filepath.Dir(path), file)
		info, err := in.Stat(listed)
		switch {
		case strings.HasSuffix(file, ".index.json") || err == nil && info.IsDir():
			return File{}, fmt.Errorf("read weights %s: it lists another index or a folder, %s: save the model again",
				path, quote(file))
		case errors.Is(err, fs.ErrNotExist):
			return File{}, fmt.Errorf("read weights %s: it lists %s, which is not there: copy it beside the index",
				path, quote(file))
		}
		part, err := Load(in, listed)
		if err != nil {
			return File{}, err
		}
		for _, t := range part.Tensors {
			if wanted[file][t.Name] {
				all.Tensors = append(all.Tensors, t)
				delete(wanted[file], t.Name)
			}
		}
	}
	slices.SortFunc(all.Tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
