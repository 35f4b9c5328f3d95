package bus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Format is the number of the form of a state folder. A release that keeps something there in a form that others would
// misread has another number; what others leave alone, such as a new file, needs none. Folders from before there were
// numbers have form 1.
const Format = 1

// formatFile is the file with the number.
const formatFile = "format"

// CheckFormat returns an error for a state folder of another form. It changes nothing.
func CheckFormat(dir string) error {
	path := filepath.Join(dir, formatFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is no folder yet, or one from before
	} else if err != nil {
		return err
	}
	number, err := strconv.Atoi(strings.TrimSuffix(string(text), "\n"))
	switch {
	case err != nil || number < 1:
		return fmt.Errorf("%s holds no number of a form: put it back from a copy", path)
	case number != Format:
		return fmt.Errorf("state folder %s has form %d, and this release keeps form %d: start the release that made "+
			"it, or name another folder with --state", dir, number, Format)
	}
	return nil
}

// MarkFormat writes the number into a state folder that has none.
func MarkFormat(dir string) error {
	path := filepath.Join(dir, formatFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writePrivate(path, fmt.Appendf(nil, "%d\n", Format))
}

// StateFolderOf returns the state folder in which the file of a path lies, or would be made, whatever links lead there;
// "": it lies in none.
func StateFolderOf(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		_, secret := os.Lstat(filepath.Join(dir, secretFile))
		_, format := os.Lstat(filepath.Join(dir, formatFile))
		switch {
		case secret == nil && format == nil:
			return dir, nil
		case dir == filepath.Dir(dir):
			return "", nil
		}
	}
}
