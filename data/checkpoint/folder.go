package checkpoint

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tensile/data/rooted"
	"tensile/graph"
)

// Folder keeps the checkpoints of jobs. Several processes may use one, also on several machines; an incarnation of a
// job writes one file at a time.
type Folder struct {
	Dir   string
	Quota graph.Bytes // Maximum total size of the files in it; 0: no limit.
	Disk  Disk        // nil: the file system
}

// Written is a checkpoint that is there now.
type Written struct {
	File  string // below Dir
	Bytes graph.Bytes
}

// Found is what there is of a job.
type Found struct {
	State  *State  // the newest whole one; nil: there is none
	Is     Written // that
	Passed []Passed
}

// Passed is a newer file that could not be taken.
type Passed struct {
	File string // below Dir
	Err  error
}

const (
	extension  = ".safetensors"
	begun      = ".begun"   // ends the name of the empty file that says that an incarnation has begun
	unfinished = ".writing" // ends the name of a file that is being written
)

// entry is one of the files of a job.
type entry struct {
	name        string
	bytes       graph.Bytes
	incarnation int64
	iteration   int
	ending      string
}

// newer orders checkpoints, the newest first. An incarnation begins at the newest checkpoint of those before it, so
// that what these still write is older than what it writes.
func newer(a, b entry) int {
	return cmp.Or(cmp.Compare(b.incarnation, a.incarnation), cmp.Compare(b.iteration, a.iteration))
}

// parse reads a file's name; ok is false for those of others.
func parse(e Entry) (_ entry, ok bool) {
	for _, ending := range [...]string{extension, begun, extension + unfinished} {
		numbers, found := strings.CutSuffix(e.Name, ending)
		if !found || e.Dir {
			continue
		}
		first, second, both := strings.Cut(numbers, "-")
		incarnation, err := strconv.ParseUint(first, 10, 63)
		if err != nil || both == (ending == begun) {
			return entry{}, false
		}
		iteration, err := strconv.ParseUint(cmp.Or(second, "0"), 10, 62)
		return entry{e.Name, e.Bytes, int64(incarnation), int(iteration), ending}, err == nil
	}
	return entry{}, false
}

func (f Folder) disk() Disk {
	if f.Disk == nil {
		return files{}
	}
	return f.Disk
}

// jobDir is the folder of a job.
func jobDir(job string, id int64) string { return fmt.Sprintf("%s-%d", job, id) }

// name is that of a checkpoint below Dir.
func (s *State) name() string {
	return filepath.Join(jobDir(s.Job, s.ID), fmt.Sprintf("%d-%d%s", s.Incarnation, s.Iteration, extension))
}

// entries are the files of a job.
func (f Folder) entries(job string, id int64) ([]entry, error) {
	list, err := f.disk().List(filepath.Join(f.Dir, jobDir(job, id)))
	var entries []entry
	for _, e := range list {
		if parsed, ok := parse(e); ok {
			entries = append(entries, parsed)
		}
	}
	return entries, err
}

// checkpoints are the files among entries that claim to be checkpoints of incarnations up to one, the newest first.
func checkpoints(entries []entry, incarnation int64) []entry {
	of := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
		return e.ending != extension || e.incarnation > incarnation
	})
	slices.SortFunc(of, newer)
	return of
}

// Write writes a checkpoint. When it is there, older ones of its job go, but for the newest keep, itself included,
// those of newer incarnations, and those of at least from iterations. If it cannot be written all stay. An error says
// what to do.
func (f Folder) Write(s *State, keep, from int) (Written, error) {
	w, err := f.write(s, keep, from)
	if err != nil {
		return Written{}, fmt.Errorf("checkpoint %s: %w", filepath.Join(f.Dir, s.name()), plain(err))
	}
	return w, nil
}

// plain is what is behind an error of the file system, whose path is that of a file that is being written.
func plain(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}

func (f Folder) write(s *State, keep, from int) (Written, error) {
	entries, err := f.entries(s.Job, s.ID)
	if err != nil {
		return Written{}, err
	}
	for _, e := range entries {
		left := e.ending == extension+unfinished && e.incarnation <= s.Incarnation // by a process that was killed
		if left || e.ending == begun && e.incarnation < s.Incarnation {
			if err := f.remove(s, e); err != nil {
				return Written{}, err
			}
		}
	}
	older := checkpoints(entries, s.Incarnation)
	if f.Quota > 0 {
		if older, err = f.room(s, older, from); err != nil {
			return Written{}, err
		}
	}
	path := filepath.Join(f.Dir, s.name())
	n, err := f.put(path, s)
	if err != nil {
		return Written{}, err
	}
	older = slices.DeleteFunc(older, func(e entry) bool { return e.name == filepath.Base(path) })
	for _, e := range older[min(len(older), max(0, keep-1)):] {
		if e.iteration >= from {
			continue
		}
		if err := f.remove(s, e); err != nil {
			return Written{}, fmt.Errorf("it is written, but an older one cannot be removed: %w", err)
		}
	}
	return Written{s.name(), graph.Bytes(n)}, nil
}

// bytes is about how large the file is: what its tensors have.
func (s *State) bytes() graph.Bytes {
	n := len(s.Losses)
	for _, t := range s.Tensors {
		n += len(t.Data)
	}
	return graph.Bytes(n) * graph.ElementBytes
}

// counter counts bytes.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// put writes a file beside and gives it its name.
func (f Folder) put(path string, s *State) (int64, error) {
	d := f.disk()
	beside := path + unfinished
	file, err := d.Create(beside)
	if err != nil {
		return 0, err
	}
	var size counter
	buffered := bufio.NewWriterSize(file, 1<<20)
	err = s.encode(io.MultiWriter(buffered, &size))
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = d.Rename(beside, path)
	}
	if err != nil {
		if problem := d.Remove(beside); problem != nil && !errors.Is(problem, fs.ErrNotExist) {
			err = errors.Join(err, problem)
		}
		return 0, err
	}
	return int64(size), nil
}

// remove removes a file of a job. It may have gone.
func (f Folder) remove(s *State, e entry) error {
	err := f.disk().Remove(filepath.Join(f.Dir, jobDir(s.Job, s.ID), e.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// room sees to it that a checkpoint fits the quota: with the oldest ones of its job removed, down to the newest whole
// one, if need be. It returns what is left of these.
func (f Folder) room(s *State, older []entry, from int) (left []entry, err error) {
	bytes := s.bytes()
	used, err := f.used()
	if err != nil || used+bytes <= f.Quota {
		return older, err
	}
	whole := slices.IndexFunc(older, func(e entry) bool {
		_, err := f.read(filepath.Join(jobDir(s.Job, s.ID), e.name))
		return err == nil
	})
	for last := len(older) - 1; whole >= 0 && last > whole && used+bytes > f.Quota; last-- {
		if older[last].iteration >= from {
			continue
		}
		if err := f.remove(s, older[last]); err != nil {
			return nil, err
		}
		used -= older[last].bytes
		older = slices.Delete(older, last, last+1)
	}
	if used+bytes > f.Quota {
		return nil, fmt.Errorf("it takes %s, and %s of the quota of %s for %s are taken: raise --checkpoint-quota, "+
			"or remove folders of jobs that are over", bytes, used, f.Quota, f.Dir)
	}
	return older, nil
}

// used counts the bytes of all files.
func (f Folder) used() (sum graph.Bytes, err error) {
	dirs, err := f.disk().List(f.Dir)
	if err != nil {
		return 0, err
	}
	for _, dir := range dirs {
		list, err := f.disk().List(filepath.Join(f.Dir, dir.Name))
		if err != nil && dir.Dir {
			return 0, err
		}
		for _, e := range list {
			sum += e.Bytes
		}
	}
	return sum, nil
}

// Newest returns the newest whole checkpoint of a job, of incarnations up to one. A file that cannot be read, or is
// damaged, or is not its own, is passed over: own returns why it is not; nil: all are. The error is that the folder
// cannot be read.
func (f Folder) Newest(job string, id, incarnation int64, own func(*State) error) (Found, error) {
	return f.find(job, id, incarnation, own, func(entry) bool { return true })
}

// Exactly is Newest among the checkpoints taken after exactly that many iterations.
func (f Folder) Exactly(job string, id, incarnation int64, iteration int, own func(*State) error) (Found, error) {
	return f.find(job, id, incarnation, own, func(e entry) bool { return e.iteration == iteration })
}

func (f Folder) find(job string, id, incarnation int64, own func(*State) error, wanted func(entry) bool) (Found,
	error) {
	const tries = 5
	for again := 1; ; again++ {
		found, moving, err := f.newest(job, id, incarnation, own, wanted)
		if err != nil {
			return Found{}, fmt.Errorf("checkpoints in %s: %w", filepath.Join(f.Dir, jobDir(job, id)), plain(err))
		}
		if !moving || again == tries {
			return found, nil
		}
	}
}

// newest is find once; moving reports that a file went away meanwhile, so that there is a newer one.
func (f Folder) newest(job string, id, incarnation int64, own func(*State) error, wanted func(entry) bool) (
	found Found, moving bool, err error) {
	entries, err := f.entries(job, id)
	if err != nil {
		return Found{}, false, err
	}
	for _, e := range checkpoints(entries, incarnation) {
		if !wanted(e) {
			continue
		}
		name := filepath.Join(jobDir(job, id), e.name)
		s, err := f.read(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return found, true, nil
		case err == nil && s.name() != name:
			err = fmt.Errorf("it is checkpoint %s under another name", s.name())
		case err == nil && own != nil:
			err = own(s)
		}
		if err != nil {
			found.Passed = append(found.Passed, Passed{name, plain(err)})
			continue
		}
		found.State, found.Is = s, Written{name, e.bytes}
		return found, false, nil
	}
	return found, false, nil
}

// read reads a checkpoint of the folder.
func (f Folder) read(name string) (*State, error) {
	file, err := f.disk().Open(filepath.Join(f.Dir, name))
	if err != nil {
		return nil, err
	}
	return read(file)
}

func read(file Opened) (*State, error) {
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	return decode(file, size)
}

// Read reads the checkpoint at a path.
func Read(in *rooted.Files, path string) (*State, error) {
	var s *State
	file, err := in.Open(path)
	if err == nil {
		s, err = read(opened{file})
	}
	if errors.Is(err, errNone) {
		return nil, fmt.Errorf("checkpoint %s: %w: take the tensors of such a file by --weights", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", path, plain(err))
	}
	return s, nil
}

// Begin says that an incarnation of a job has begun, if there are files of others: from now on older ones do not Remove
// what it may need.
func (f Folder) Begin(job string, id, incarnation int64) error {
	if entries, err := f.entries(job, id); err == nil && len(entries) == 0 {
		return nil
	}
	file, err := f.disk().Create(filepath.Join(f.Dir, jobDir(job, id), fmt.Sprint(incarnation, begun)))
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err == nil:
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("checkpoints in %s: %w", filepath.Join(f.Dir, jobDir(job, id)), plain(err))
	}
	return nil
}

// Remove removes all of a job that is over, in the view of an incarnation: nothing if a newer one has begun.
func (f Folder) Remove(job string, id, incarnation int64) error {
	dir := filepath.Join(f.Dir, jobDir(job, id))
	entries, err := f.entries(job, id)
	if err != nil || len(entries) == 0 || slices.ContainsFunc(entries, func(e entry) bool {
		return e.incarnation > incarnation
	}) {
		return err
	}
	for _, e := range entries {
		err = errors.Join(err, f.remove(&State{Job: job, ID: id}, e))
	}
	if err == nil {
		err = f.disk().Remove(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("checkpoints in %s: %w", dir, err)
	}
	return nil
}
