// Package python has what a PyTorch script imports, as files that a binary carries along.
package python

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

//go:embed tensile/*.py start/*.py
var files embed.FS

// Lay writes the package tensile, and beside it the sitecustomize by which a script joins without a line of its own,
// into a folder below dir that is named after what it holds, and returns that folder, for PYTHONPATH. A folder that is
// there already is as it was written: it gets its name when it is whole.
func Lay(dir string) (string, error) {
	all := map[string][]byte{} // by the path in the folder
	hash := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if path.Dir(name) == "start" {
			name = path.Base(name)
		}
		all[name] = text
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
		return nil
	})
	if err != nil {
		return "", err
	}
	whole := filepath.Join(dir, "python-"+hex.EncodeToString(hash.Sum(nil)[:8]))
	if _, err := os.Stat(whole); err == nil {
		return whole, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(dir, "python-new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	for name, text := range all {
		to := filepath.Join(made, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return "", err
		}
	}
	if err := os.Rename(made, whole); err != nil {
		if _, there := os.Stat(whole); there == nil { // another process was faster
			return whole, nil
		}
		return "", err
	}
	return whole, nil
}
