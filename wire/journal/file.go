package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// FileName is the name of the file in a state folder.
const FileName = "journal"

// before ends the name of the file that was there before.
const before = ".before"

// head is the key of the first line.
const head = "journal"

// entry is a value with the number of its write.
type entry struct {
	number int64
	value  []byte // nil: deleted
}

// heading is the value of the first line.
type heading struct {
	Entries int `json:"entries"`
}

// encodeEntry returns a write as a line of the file.
func encodeEntry(key string, e entry) []byte {
	rest := fmt.Appendf(nil, "%d %s", e.number, key)
	if e.value != nil {
		rest = append(append(rest, ' '), e.value...)
	}
	sum := sha256.Sum256(rest)
	return append(append(hex.AppendEncode(nil, sum[:]), ' '), append(rest, '\n')...)
}

// parse reads a line without its end. It is false for what was not written so.
func parse(text []byte) (key string, e entry, ok bool) {
	digest, rest, _ := bytes.Cut(text, []byte(" "))
	sum := sha256.Sum256(rest)
	if string(digest) != hex.EncodeToString(sum[:]) {
		return "", entry{}, false
	}
	number, rest, _ := bytes.Cut(rest, []byte(" "))
	name, value, valued := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if e = (entry{number: n}); valued {
		e.value = value
	}
	return string(name), e, err == nil && len(name) > 0
}

// contents are what a file says.
type contents struct {
	entries map[string]entry
	last    int64  // number of the newest write
	deleted string // its key if it was a deletion
	lost    int    // lines, at least, that cannot be read or are missing
	there   bool
}

// readFile replays a file over what is known without it.
func readFile(path string, known map[string]entry) (c contents, err error) {
	c.entries = maps.Clone(known)
	if c.entries == nil {
		c.entries = make(map[string]entry)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	} else if err != nil {
		return c, err
	}
	c.there = true
	var first *entry
	var whole heading
	seen, later, bad := 0, int64(0), 0
	for len(text) > 0 {
		one, rest, ended := bytes.Cut(text, []byte("\n"))
		if text = rest; !ended {
			break // it was being written when the process or the machine ended
		}
		key, e, ok := parse(one)
		switch {
		case !ok:
			bad++
			continue
		case key == head && first == nil && json.Unmarshal(e.value, &whole) == nil:
			first = &e
		case first != nil && e.number > first.number:
			later++
		default:
			seen++
		}
		if c.last = max(c.last, e.number); key == head {
			continue
		}
		if c.deleted = ""; e.value == nil {
			c.deleted = key
			delete(c.entries, key)
		} else if e.number >= c.entries[key].number {
			c.entries[key] = e
		}
	}
	if first == nil {
		c.lost = max(bad, 1)
	} else {
		c.lost = max(bad, whole.Entries-seen+int(c.last-first.number-later))
	}
	return c, nil
}

// read is what the files of a folder say together. Lost are lines of the newer one.
func read(dir string) (contents, error) {
	path := filepath.Join(dir, FileName)
	c, err := readFile(path, nil)
	if err != nil || c.lost == 0 && c.there {
		return c, err
	}
	older, err := readFile(path+before, nil)
	if err != nil {
		return c, err
	}
	if !c.there && !older.there {
		return c, nil
	}
	lost := max(c.lost, 1)
	c, err = readFile(path, older.entries)
	c.last, c.lost, c.there = max(c.last, older.last), lost, true
	return c, err
}

// encode is a file that says all of that.
func (c *contents) encode() []byte {
	keys := slices.SortedFunc(maps.Keys(c.entries), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.entries[a].number, c.entries[b].number), strings.Compare(a, b))
	})
	text, err := json.Marshal(heading{len(keys)})
	if err != nil {
		panic(fmt.Sprintf("journal: its heading cannot be written as JSON: %v", err))
	}
	all := encodeEntry(head, entry{c.last, text})
	for _, key := range keys {
		all = append(all, encodeEntry(key, c.entries[key])...)
	}
	return all
}

// replace writes a new file, whose predecessor becomes the one before, and returns it.
func replace(path string, text []byte) (_ *os.File, err error) {
	const beside, link = ".new", ".link"
	f, err := os.OpenFile(path+beside, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(path+beside))
		}
	}()
	if _, err = f.Write(text); err != nil {
		return nil, err
	}
	if err = f.Sync(); err != nil {
		return nil, err
	}
	// At no moment is there no file: the one before gets its second name first.
	_ = os.Remove(path + link) // the link may be left by a process that was killed
	if err = os.Link(path, path+link); err == nil {
		err = os.Rename(path+link, path+before)
		_ = os.Remove(path + link) // both may have been one file
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err = os.Rename(path+beside, path); err != nil {
		return nil, err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return f, folder.Sync()
}
