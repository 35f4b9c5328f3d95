package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"tensile/wire"
)

// Journal is the journal of a state folder, for the one controller that has the folder.
type Journal struct {
	path string
	log  func(line string)

	mu sync.Mutex
	contents
	file  *os.File // nil before Follow
	size  int64    // the size of its complete lines
	dir   string   // the folder of the file
	limit int64    // size at which the next file takes its place

	trouble atomic.Pointer[string] // why nothing can be written; nil: it can
}

// spare is how much a file may grow beyond twice what is needed.
const spare = 1 << 20

// Open reads the journal of a folder; there may be none yet. Log gets what was damaged.
func Open(dir string, log func(line string)) (*Journal, error) {
	c, err := read(dir)
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	return &Journal{dir: dir, path: filepath.Join(dir, FileName), log: log, contents: c}, nil
}

// Read returns a journal of all that one in a folder holds, as the text of a new file, and its values by key, also
// while a controller writes to it.
func Read(dir string) (text []byte, values map[string][]byte, err error) {
	c, err := read(dir)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("read the journal: %w", err)
	case !c.there:
		return nil, nil, fmt.Errorf("%s is not there: start the controller of this release first",
			filepath.Join(dir, FileName))
	case c.lost > 0:
		return nil, nil, fmt.Errorf("%s is damaged: start the controller again, which mends it",
			filepath.Join(dir, FileName))
	}
	values = make(map[string][]byte)
	for key, e := range c.entries {
		values[key] = e.value
	}
	return c.encode(), values, nil
}

// Close ends the journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	defer func() { j.file = nil }()
	return errors.Join(j.file.Sync(), j.file.Close())
}

// renew begins a new file.
func (j *Journal) renew() error {
	text := j.encode()
	file, err := replace(j.path, text)
	if err != nil {
		j.limit = j.size + spare
		return fmt.Errorf("write the journal: %w", err)
	}
	if j.file != nil {
		j.file.Close() // all of it was written to the new one
	}
	j.file, j.size, j.lost, j.there = file, int64(len(text)), 0, true
	j.limit = 2*j.size + spare
	return nil
}

// put adds a value and returns it with its number; a value that is there already keeps its own.
func (j *Journal) put(key string, value []byte) ([]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if now, ok := j.entries[key]; ok && now.number > 0 && bytes.Equal(now.value, wire.Numbered(value, now.number)) {
		return now.value, nil // it is tried again
	}
	e := entry{j.last + 1, wire.Numbered(value, j.last+1)}
	return e.value, j.add(key, e)
}

// remove says that a key is deleted.
func (j *Journal) remove(key string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.entries[key]; !ok {
		return nil
	}
	return j.add(key, entry{number: j.last + 1})
}

// add writes a line. The mutex is held.
func (j *Journal) add(key string, e entry) error {
	text := encodeEntry(key, e)
	if _, err := j.file.WriteAt(text, j.size); err != nil {
		_ = j.file.Truncate(j.size) // else the next line is written over the rest
		j.failed(err)
		return fmt.Errorf("write the journal: %w", err)
	}
	j.trouble.Store(nil)
	j.size += int64(len(text))
	if j.last = e.number; e.value == nil {
		delete(j.entries, key)
	} else {
		j.entries[key] = e
	}
	if j.size > j.limit {
		if err := j.renew(); err != nil {
			j.log(err.Error()) // the file before goes on
		}
	}
	return nil
}

// failed says why nothing can be written, when that is new.
func (j *Journal) failed(err error) {
	why := fmt.Sprintf("the controller's state cannot be written: %v", err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		why = fmt.Sprintf("the controller's disk is full: free some space for %s; jobs that train go on", j.dir)
	}
	if before := j.trouble.Swap(&why); before == nil || *before != why {
		j.log(why)
	}
}

// Trouble says in one line why nothing can be written; "": it can, as far as is known. It is tried again with each
// write.
func (j *Journal) Trouble() string {
	if why := j.trouble.Load(); why != nil {
		return *why
	}
	return ""
}

// Follow compares the journal with what the bus has. Values that are missing there, older, or damaged are put back, and
// told; newer ones are taken into the journal. What is then written over the bus that it returns goes into the journal
// first. Settings are the names of objects among [wire.Administration] that may be there.
func (j *Journal) Follow(ctx context.Context, bus wire.Bus, settings ...string) (wire.Bus, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	stored, err := j.storedValues(ctx, bus, settings)
	if err != nil {
		return nil, err
	}
	f := following{Bus: bus, journal: j}
	if j.there {
		err = j.reconcile(ctx, bus, stored)
	} else {
		j.adopt(stored)
	}
	if err == nil {
		err = j.renew()
	}
	if err != nil {
		return nil, err
	}
	return &f, nil
}

// adopt begins with what the bus has. What cannot be read is left to whoever reads it.
func (j *Journal) adopt(stored map[string][]byte) {
	j.entries = make(map[string]entry)
	for key, value := range stored {
		if number, err := wire.NumberOf(value); err == nil {
			j.entries[key], j.last = entry{number, value}, max(j.last, number)
		}
	}
}

// agrees reports whether no value that the bus has is damaged, or older than the journal's.
func (j *Journal) agrees(stored map[string][]byte) bool {
	for key, value := range stored {
		number, err := wire.NumberOf(value)
		mine, kept := j.entries[key]
		if err != nil || kept && (number < mine.number || number == mine.number && !bytes.Equal(value, mine.value)) {
			return false
		}
	}
	return true
}

// reconcile makes the bus and the journal equal.
func (j *Journal) reconcile(ctx context.Context, bus wire.Bus, stored map[string][]byte) error {
	for key, value := range stored {
		number, err := wire.NumberOf(value)
		if err == nil && number == 0 && !bytes.Equal(value, j.entries[key].value) {
			j.log("another program has used the state folder since its journal was written: what it has left " +
				"counts, and the journal is begun anew")
			j.adopt(stored)
			return nil
		}
	}
	whole := j.lost == 0
	if !whole {
		j.log(fmt.Sprintf("%s was damaged: %d of its lines cannot be read, or are missing; what they said is taken "+
			"from %s and from the store", j.path, j.lost, FileName+before))
	}
	last, newer := j.last, 0
	var t history
	var gone []string // what a journal knows that has lost lines, and a store does not that seems whole
	sound, behind, kinds := j.agrees(stored), false, make(map[string]bool)
	for key, value := range stored {
		number, err := wire.NumberOf(value)
		kinds[kindOf(key)], behind = true, behind || err == nil && number > last
	}
	keys := slices.Sorted(maps.Keys(j.entries))
	for key := range stored {
		if _, ok := j.entries[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		mine, kept := j.entries[key]
		value, there := stored[key]
		number, problem := int64(0), error(nil)
		if there {
			number, problem = wire.NumberOf(value)
		}
		quiet := whole && (kept && mine.number == last || key == j.deleted) // the process ended before it was stored
		switch {
		case kept && !there && (behind || !whole) && sound && kinds[kindOf(key)]:
			delete(j.entries, key)
			gone = append(gone, named(key))
			continue
		case kept && !there:
			t.add(quiet, missing, key)
		case kept && bytes.Equal(value, mine.value):
			continue
		case kept && problem != nil, kept && number == mine.number:
			t.add(false, damaged, key)
		case kept && number < mine.number:
			t.add(quiet, older, key)
		case problem != nil:
			continue // nothing is known of it
		case !kept && whole && number <= last:
			t.add(quiet, deleted, key)
			if err := remove(ctx, bus, key); err != nil {
				return err
			}
			continue
		default: // newer than all that the journal has
			j.entries[key], j.last = entry{number, value}, max(j.last, number)
			newer++
			continue
		}
		if err := storeValue(ctx, bus, key, mine.value); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		j.log(fmt.Sprintf("the store does not have the values of %s: that they were deleted counts as among what the "+
			"journal has lost", strings.Join(gone, ", ")))
	}
	if t.logAll(j.log); newer > 0 {
		j.log(fmt.Sprintf("the journal of the state folder did not have the newest %d values of its store, as after a "+
			"loss of power: they count", newer))
	}
	return nil
}
