package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tensile/graph/text"
	"tensile/wire"
)

// detached is a sidecar without a terminal, as tensile submit SCRIPT starts it: a tensile join whose output, and its
// script's, go into a file, of which each line goes into the job's log. The file is the script's own stdout, so that
// the script outlives the sidecar. The zero value is a sidecar that has a terminal.
type detached struct {
	log      string // The file.
	restarts int    // How often the script may be started again.
	again    int    // How often it was.

	told  bool          // Whoever has submitted the job knows that it is.
	taken bool          // The controller has taken the present job.
	at    int64         // How much of the file was read.
	stop  chan struct{} // Closed when the script has ended.
	read  sync.WaitGroup
}

// toldAt is the descriptor at which a detached sidecar finds the pipe into which it writes that the job is submitted.
const toldAt = 3

func (d *detached) register(c *cobra.Command) {
	c.Flags().StringVar(&d.log, "detached", "", "")
	c.Flags().IntVar(&d.restarts, "restart", 0, "")
	for _, name := range []string{"detached", "restart"} {
		if err := c.Flags().MarkHidden(name); err != nil {
			panic(err) // no such flag
		}
	}
}

// begun tells who has submitted the job that it is.
func (d *detached) begun(line string) {
	d.taken = true
	if d.log == "" || d.told {
		return
	}
	d.told = true // from now on the descriptor may be another file's
	if pipe := os.NewFile(toldAt, "submit"); pipe != nil {
		_, _ = pipe.WriteString(line) // whoever waits may be gone
		pipe.Close()
	}
}

// follow hands each line that comes into the file to log, until the script has ended.
func (d *detached) follow(log func(line string)) {
	if d.log == "" {
		return
	}
	f, err := os.Open(d.log)
	d.at = max(0, d.at-retold)
	cut := d.at > 0 // within a line
	if err == nil {
		_, err = f.Seek(d.at, io.SeekStart)
	}
	if err != nil {
		log(fmt.Sprintf("what the script prints cannot be read: %v", err))
		return
	}
	d.stop = make(chan struct{})
	d.read.Go(func() {
		defer f.Close()
		look := time.NewTicker(time.Second / 4)
		defer look.Stop()
		var rest []byte
		for last := false; ; {
			more, err := io.ReadAll(f)
			rest = append(rest, more...)
			d.at += int64(len(more))
			for {
				line, after, ok := bytes.Cut(rest, []byte("\n"))
				if !ok && !(last && len(rest) > 0) && len(rest) < maxLogged {
					break
				}
				if !cut {
					log(text.Line(string(line), maxLogged))
				}
				cut, rest = false, after
			}
			if last || err != nil {
				return
			}
			select {
			case <-look.C:
			case <-d.stop:
				last = true
			}
		}
	})
}

// maxLogged is the limit of a line of the log in bytes, and retold how much of what was printed before a script is
// started again its log begins with: a job's log is its own, and why the former one has failed stands there.
const (
	maxLogged = 4000
	retold    = 64 << 10
)

// ended reads the log to its end when the script has ended, and says in the error of a failed script whether it starts
// again.
func (d *detached) ended(err error) error {
	if d.log == "" {
		return err
	}
	if d.stop != nil {
		close(d.stop)
		d.read.Wait()
		d.stop = nil
	}
	if err == nil {
		return nil
	}
	if full := d.full(); full != nil {
		err = fmt.Errorf("%w; what it prints finds no room: %w", err, full)
	}
	switch {
	case d.restarts > 0:
		return fmt.Errorf("%w; it is started again", err)
	case d.again > 0:
		return fmt.Errorf("%w; it has failed at all %d starts, and is not started again", err, d.again+1)
	}
	return fmt.Errorf("%w; it is not started again (submit it with --restart N)", err)
}

// full returns an error if the disk has no room for more of the log: then why a script has failed may not stand there.
func (d *detached) full() error {
	f, err := os.OpenFile(d.log, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	const keepSize, block = 1, 4096 // blocks beyond the end are the file's, which stays as long as it is
	about, err := f.Stat()
	if err == nil {
		err = syscall.Fallocate(int(f.Fd()), keepSize, about.Size(), block)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &fs.PathError{Op: "write", Path: d.log, Err: err}
	}
	return nil // other errors are of file systems that cannot tell
}

// longestPause is the longest that a script that has failed waits until it is started again, and longestAway how long
// it waits for a controller that is away.
const (
	longestPause = time.Minute
	longestAway  = 5 * time.Minute
)

// jobs has the script be one job after the other, until one of them has not failed, or as often as it may.
func (f *joinFlags) jobs(ctx context.Context, args []string, stderr io.Writer) error {
	d := &f.detached
	if d.restarts < 0 {
		return fmt.Errorf("--restart %d: give 0 or more", d.restarts)
	}
	if d.log != "" {
		syscall.CloseOnExec(toldAt)
	}
	var waited time.Duration // for a controller
	for pause := time.Second; ; pause = min(2*pause, longestPause) {
		d.taken = false
		err := f.job(ctx, args, stderr)
		_, failed := errors.AsType[*exitError](err) // the script's own end
		switch {
		case ctx.Err() != nil:
			return err
		case failed && d.restarts > 0:
			d.restarts, d.again, waited = d.restarts-1, d.again+1, 0
		case err != nil && d.again > 0 && !d.taken && waited < longestAway:
			fmt.Fprintf(stderr, "tensile: it cannot be started again now, and is tried again in %s: %v\n", pause, err)
			waited += pause
		default:
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// keptLogs is how many files of logs stay, and keptBytes how many bytes they may have together, beside those of scripts
// that run.
const (
	keptLogs  = 100
	keptBytes = 1 << 30
)

// sweepLogs removes the oldest files of a folder beyond so many, and beyond so many bytes, that are not in use.
func sweepLogs(dir string, most int, bytes int64) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if about, err := e.Info(); err == nil { // else another process has removed it
			files = append(files, about)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for i, about := range files {
		if bytes -= about.Size(); i < most && bytes >= 0 {
			continue
		}
		f, err := os.Open(filepath.Join(dir, about.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil { // else it is in use
			err = os.Remove(f.Name())
		}
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// submit starts a sidecar that has the script be a job, in the present folder and environment, and returns when the job
// is submitted. It outlives this process and its terminal, and is nobody's executor but the script's.
func (s *pythonScript) submit(c *cobra.Command, out io.Writer) error {
	flags, name := []string{"join"}, s.name()
	c.Flags().Visit(func(f *pflag.Flag) {
		flags = append(flags, "--"+f.Name+"="+f.Value.String())
		if f.Name == "name" {
			name = f.Value.String()
		}
	})
	if err := wire.CheckName(name); err != nil {
		return s.refuse("--name: %w", err)
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	state := defaultState()
	if state == "" {
		return s.refuse("neither HOME nor XDG_STATE_HOME is set, so that there is no folder for its log")
	}
	dir := filepath.Join(state, "scripts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s.refuse("a folder for its log: %v", err)
	}
	log, err := os.CreateTemp(dir, name+"-*.log")
	if err != nil {
		return s.refuse("a file for its log: %v", err)
	}
	defer log.Close()
	// The lock shows that the file is in use: the sidecar and its script inherit it with the file.
	if err := syscall.Flock(int(log.Fd()), syscall.LOCK_SH); err != nil {
		return s.refuse("a file for its log: %v", err)
	}
	if err := sweepLogs(dir, keptLogs, keptBytes); err != nil {
		return s.refuse("files of former logs: %v", err)
	}
	heard, told, err := os.Pipe()
	if err != nil {
		return err
	}
	defer heard.Close()
	command := exec.Command(binary, slices.Concat(flags, []string{"--detached=" + log.Name(), "--"}, s.words())...)
	command.Stdout, command.Stderr, command.ExtraFiles = log, log, []*os.File{told}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = command.Start()
	told.Close()
	if err != nil {
		return errors.Join(err, os.Remove(log.Name()))
	}
	line, err := io.ReadAll(heard)
	if len(line) == 0 {
		status := command.Wait()
		said, _ := os.ReadFile(log.Name()) // what there is
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		why := strings.TrimPrefix(lines[len(lines)-1], "tensile: ")
		return errors.Join(s.refuse("%s", cmp.Or(why, fmt.Sprintf("its sidecar: %v", cmp.Or(status, err)))),
			os.Remove(log.Name()))
	}
	_, err = fmt.Fprintf(out, "%s; what it prints is in tensile job logs %s, and in %s\n", line, name, log.Name())
	return err
}
