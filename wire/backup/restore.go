package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"tensile/wire"
	"tensile/wire/bus"
	"tensile/wire/journal"
)

// errDamaged is returned for a file that was a backup.
var errDamaged = errors.New("it is cut or damaged: take another one")

// maxText is more than any part has that is read whole.
const maxText = max(wire.MaxLayout, 1<<30)

// parts calls back with each part between the first and the last. When it has returned nil, all of it is what was
// written.
func parts(from io.Reader, each func(name string, size int64, from io.Reader) error) error {
	r, sum := tar.NewReader(from), sha256.New()
	for first := true; ; first = false {
		h, err := r.Next()
		if first && (err != nil || h.Name != headName || h.Size > maxText) {
			return errors.New("it is no backup of a controller: give a file that tensile controller backup has written")
		}
		if err != nil || h.Typeflag != tar.TypeReg {
			return errDamaged
		}
		if h.Name == endName {
			want, err := io.ReadAll(io.LimitReader(r, sha256.Size*2+1))
			if err != nil || string(want) != hex.EncodeToString(sum.Sum(nil)) {
				return errDamaged
			}
			return nil
		}
		addToSum(sum, h.Name, h.Size)
		counted := io.TeeReader(r, sum)
		if first {
			text, err := io.ReadAll(counted)
			var head header
			if err != nil || json.Unmarshal(text, &head) != nil {
				return errDamaged
			}
			if head.Format != bus.Format {
				return fmt.Errorf("it is of a state folder of form %d, and this release keeps form %d: restore it "+
					"with the release that made it", head.Format, bus.Format)
			}
			continue
		}
		if err := each(h.Name, h.Size, counted); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, counted); err != nil { // what it has left
			return errDamaged
		}
	}
}

// check reads all of a backup.
func check(from io.Reader) error {
	there := make(map[string]bool)
	err := parts(from, func(name string, _ int64, _ io.Reader) error {
		_, inState := strings.CutPrefix(name, inState)
		if !filepath.IsLocal(name) || path.Clean(name) != name || there[name] ||
			!inState && strings.Count(name, "/") != 2 {
			return errDamaged
		}
		there[name] = true
		return nil
	})
	if err == nil && !there[inState+journal.FileName] {
		err = errDamaged
	}
	return err
}

// Restore makes a state folder of a backup, which it reads twice: nothing is made of one that is not whole. The folder
// is not to be there, or to be empty; it is made beside, and gets its name when all of it is there.
func Restore(ctx context.Context, from io.ReadSeeker, state string) (err error) {
	if err := check(from); err != nil {
		return err
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := checkEmpty(state); err != nil {
		return err
	}
	parent := filepath.Dir(filepath.Clean(state))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	beside, err := os.MkdirTemp(parent, "."+filepath.Base(state)+".restore-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(beside))
		}
	}()
	if err := unpack(ctx, from, beside); err != nil {
		return err
	}
	if err := syscall.Rename(beside, state); err != nil { // os.Rename takes no empty folder's place
		return fmt.Errorf("make state folder %s: %w: name a folder that is no mount point, and that nobody uses", state,
			err)
	}
	return nil
}

// checkEmpty returns the error of a folder in which there is something.
func checkEmpty(state string) error {
	list, err := os.ReadDir(state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(list) > 0:
		return fmt.Errorf("state folder %s is not empty: end what uses it and move it away, or name another with "+
			"--state", state)
	}
	return nil
}

// unpack makes a state folder of all parts.
func unpack(ctx context.Context, from io.Reader, state string) error {
	var server *bus.Server // begins when the files are there
	var conn *bus.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
		if server != nil {
			server.Close()
		}
	}()
	begin := func() (err error) {
		if server, err = bus.Start(bus.Options{Dir: state}); err == nil {
			conn, err = server.Connect(ctx, bus.ConnOptions{})
		}
		return err
	}
	err := parts(from, func(name string, size int64, from io.Reader) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if file, ok := strings.CutPrefix(name, inState); ok {
			return unpackFile(filepath.Join(state, filepath.FromSlash(file)), from)
		}
		if size > maxText {
			return errDamaged
		}
		text, err := io.ReadAll(from)
		if err == nil && conn == nil {
			err = begin()
		}
		if err != nil {
			return err
		}
		names := strings.Split(name, "/")
		return conn.Store(ctx, names[1], names[2], text)
	})
	if err == nil && conn == nil {
		err = begin()
	}
	if err != nil {
		return err
	}
	kept, err := journal.Open(state, func(string) {}) // all of it is missing in the store
	if err != nil {
		return err
	}
	defer kept.Close()
	if _, err := kept.Follow(ctx, conn); err != nil {
		return err
	}
	return makeLocks(state)
}

func unpackFile(path string, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close())
}

// makeLocks makes the lock of each executor that the controller has started, also of one that had none yet: nobody
// holds it, and so the executor has ended.
func makeLocks(state string) error {
	_, values, err := journal.Read(state)
	if err != nil {
		return err
	}
	for key, value := range values {
		if !strings.HasPrefix(key, "record.") {
			continue
		}
		r, err := wire.DecodeAs[wire.Record](value)
		if err != nil {
			return err
		}
		if r.State.Over() || r.Spec.Script || !wire.Owned(r.Executor) {
			continue
		}
		name := filepath.Join(state, executors, r.Executor+".lock")
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			if err := unpackFile(name, strings.NewReader("")); err != nil {
				return err
			}
		}
	}
	return nil
}
