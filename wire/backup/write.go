package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tensile/wire"
	"tensile/wire/bus"
	"tensile/wire/journal"
)

// Names of the first and the last part, and what others begin with.
const (
	headName = "tensile-backup"
	endName  = "end"
	inState  = "state/"
	inBucket = "object/"
)

// header is the first part.
type header struct {
	Format int `json:"format"`
}

// own are the files of a state folder that are copied as they are, where there are any.
var own = []string{"secret", "credentials.json", "ca.pem", "address", "http.json"}

// checkpoints is the name of their folder in a state folder, executors that of the files of executors.
const (
	checkpoints = "checkpoints"
	executors   = "executors"
)

// writer writes parts.
type writer struct {
	tar *tar.Writer
	sum hash.Hash

	damaged []error
}

// writePart writes one part.
func (w *writer) writePart(name string, size int64, from io.Reader) error {
	err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600})
	if err != nil {
		return err
	}
	addToSum(w.sum, name, size)
	n, err := io.Copy(io.MultiWriter(w.tar, w.sum), from)
	if err == nil && n < size {
		err = fmt.Errorf("%s became shorter while it was read", name)
	}
	return err
}

func (w *writer) text(name string, text []byte) error {
	return w.writePart(name, int64(len(text)), strings.NewReader(string(text)))
}

// addToSum adds to a sum what a part is called, and how large it is.
func addToSum(sum hash.Hash, name string, size int64) { fmt.Fprintf(sum, "%s\x00%d\x00", name, size) }

// Write writes a backup of the state folder of a controller that runs and is asked for its objects. It says which of
// them are damaged and left out: their jobs are held, before and after.
func Write(ctx context.Context, to io.Writer, state string, from wire.Bus) (damaged []error, err error) {
	w := &writer{tar: tar.NewWriter(to), sum: sha256.New()}
	err = w.writeAll(ctx, state, from)
	return w.damaged, err
}

func (w *writer) writeAll(ctx context.Context, state string, from wire.Bus) error {
	text, values, err := journal.Read(state)
	if err != nil {
		return err
	}
	head, err := json.Marshal(header{bus.Format})
	if err != nil {
		panic(fmt.Sprintf("backup: its header cannot be written as JSON: %v", err))
	}
	if err := w.text(headName, head); err != nil {
		return err
	}
	if err := w.text(inState+journal.FileName, text); err != nil {
		return err
	}
	names := own
	locks, _ := filepath.Glob(filepath.Join(state, executors, "*.lock")) // fails for no such pattern
	for _, lock := range locks {
		names = append(names[:len(names):len(names)], filepath.Join(executors, filepath.Base(lock)))
	}
	for _, name := range names {
		if err := w.file(state, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := w.objects(ctx, from, state, values); err != nil {
		return err
	}
	if err := w.text(endName, hex.AppendEncode(nil, w.sum.Sum(nil))); err != nil {
		return err
	}
	return w.tar.Close()
}

// file copies a file of the state folder; the error is [fs.ErrNotExist] if there is none.
func (w *writer) file(state, name string) error {
	f, err := os.Open(filepath.Join(state, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.writePart(inState+filepath.ToSlash(name), info.Size(), io.LimitReader(f, info.Size()))
}

// objects copies what records name.
func (w *writer) objects(ctx context.Context, from wire.Bus, state string, values map[string][]byte) error {
	done := make(map[string]bool)
	object := func(bucket, name string) error {
		as := inBucket + path.Join(bucket, name)
		if done[as] {
			return nil
		}
		done[as] = true
		data, err := from.Load(ctx, bucket, name)
		switch {
		case errors.Is(err, wire.ErrNotFound):
			return nil
		case err != nil && (ctx.Err() != nil || errors.Is(err, wire.ErrAway) ||
			errors.Is(err, context.DeadlineExceeded)):
			return err
		case err != nil:
			w.damaged = append(w.damaged, err)
			return nil
		}
		return w.text(as, data)
	}
	if err := w.file(state, filepath.Join(checkpoints, "identity")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !strings.HasPrefix(key, "record.") {
			continue
		}
		r, err := wire.DecodeAs[wire.Record](values[key])
		if err != nil {
			return fmt.Errorf("%s in the journal: %w", key, err)
		}
		s := &r.Spec
		err = object(wire.Lessons, wire.LearntObject(r.Device))
		if r.State.Over() {
			if err = errors.Join(err, object(wire.Results, wire.ResultObject(s.Name, s.ID))); err != nil {
				return err
			}
			continue
		}
		err = errors.Join(err, object(wire.Graphs, wire.GraphObject(s.Graph)),
			object(wire.Graphs, wire.RecordedObject(s.Graph)))
		for epoch, last := r.Epochs(); epoch <= last && r.Executor != ""; epoch++ {
			err = errors.Join(err, object(wire.Bucket(r.Executor), wire.LayoutObject(s.Name, s.ID, epoch)))
		}
		if err = errors.Join(err, w.checkpoints(state, fmt.Sprintf("%s-%d", s.Name, s.ID))); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints copies those of a job. Its executor may write newer ones meanwhile, and remove older ones: then these are
// copied, too.
func (w *writer) checkpoints(state, job string) error {
	const tries = 100
	done := make(map[string]bool)
	for range tries {
		found, _ := filepath.Glob(filepath.Join(literalPattern(state), checkpoints, literalPattern(job),
			"*.safetensors"))
		gone := false
		for _, file := range found {
			name := filepath.Join(checkpoints, job, filepath.Base(file))
			if done[name] {
				continue
			}
			err := w.file(state, name)
			if gone = gone || errors.Is(err, fs.ErrNotExist); gone {
				break
			} else if err != nil {
				return err
			}
			done[name] = true
		}
		if !gone {
			return nil
		}
	}
	return fmt.Errorf("checkpoints of job %s come and go too quickly to be copied: try again", job)
}

// literalPattern is a pattern of a path alone.
func literalPattern(path string) string {
	return strings.NewReplacer("\\", "\\\\", "*", "\\*", "?", "\\?", "[", "\\[").Replace(path)
}
