package checkpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// identity is the file in a folder that has its Identity.
const identity = "identity"

var isIdentity = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// Identity is a word by which executors know that they share a folder, whatever each calls it. The first to ask draws
// it: it is kept in a file of the folder, which is made if need be. A copy of a folder has the same.
func (f Folder) Identity() (string, error) {
	path := filepath.Join(f.Dir, identity)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := drawIdentity(f.Dir, path); err != nil {
			return "", fmt.Errorf("checkpoints in %s: %w", f.Dir, err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("checkpoints in %s: %w", f.Dir, err)
	}
	word := strings.TrimSpace(string(text))
	if !isIdentity.MatchString(word) {
		return "", fmt.Errorf("%s has no identity of a folder in it: remove it, so that a new one is drawn", path)
	}
	return word, nil
}

// drawIdentity writes a new one, unless another process does so first: then that one's counts.
func drawIdentity(dir, path string) error {
	if err := makeDir(dir); err != nil {
		return err
	}
	beside, err := os.CreateTemp(dir, identity+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name())
	_, err = beside.WriteString(rand.Text() + "\n")
	if err = errors.Join(err, beside.Sync(), beside.Close()); err != nil {
		return err
	}
	if err := os.Link(beside.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}
