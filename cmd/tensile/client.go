package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tensile/graph/text"
	"tensile/wire"
	"tensile/wire/bus"
)

// registerState registers the folder in which a controller keeps what it knows.
func registerState(c *cobra.Command, state *string) {
	c.Flags().StringVar(state, "state", defaultState(), "state folder of the controller")
}

func defaultState() string {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "tensile")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "" // which checkState refuses
	}
	return filepath.Join(home, ".local", "state", "tensile")
}

// checkState returns the error of a state folder that there cannot be, or that is of another form.
func checkState(state string) error {
	info, err := os.Stat(state)
	switch {
	case state == "":
		return errors.New("neither HOME nor XDG_STATE_HOME is set: name a folder with --state")
	case err == nil && !info.IsDir():
		return fmt.Errorf("--state %s is a file: name a folder", state)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("--state %s lies below a file: name a folder", state)
	}
	return bus.CheckFormat(state)
}

// clientFlags say which controller is meant.
type clientFlags struct{ state, url, credentials string }

func (f *clientFlags) register(c *cobra.Command) {
	registerState(c, &f.state)
	c.Flags().StringVar(&f.credentials, "credentials", "", "credentials file (default: the one in the state folder)")
	c.Flags().StringVar(&f.url, "nats", "", "controller address (default: from the credentials file)")
}

// read reads the credentials.
func (f *clientFlags) read() (bus.Credentials, error) {
	path := f.credentials
	if path == "" {
		if err := checkState(f.state); err != nil {
			return bus.Credentials{}, err
		}
		path = filepath.Join(f.state, clientFile)
	}
	credentials, err := bus.ReadCredentials(path)
	if err != nil {
		if f.credentials == "" {
			err = noController(f.state, err)
		}
		return bus.Credentials{}, err
	}
	if name, person, ok := bus.UserName(credentials.User); ok && !person {
		return bus.Credentials{}, fmt.Errorf("%s is for executor %s, not for commands: tensile controller "+
			"credentials NAME --user makes one that is", path, name)
	}
	if f.url != "" {
		if err := checkAddress(f.url, credentials); err != nil {
			return bus.Credentials{}, err
		}
		credentials.URL = f.url
	}
	return credentials, nil
}

// connect connects to the controller.
func (f *clientFlags) connect(ctx context.Context) (*bus.Conn, error) {
	credentials, err := f.read()
	if err != nil {
		return nil, err
	}
	return bus.Connect(ctx, credentials, bus.ConnOptions{})
}

// noController explains that no controller has left its credentials in a folder.
func noController(state string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no controller runs on the state folder %s: start one with tensile controller, or name "+
			"another with --state", state)
	}
	return err
}

// ask asks the controller, for all jobs page by page.
func ask(ctx context.Context, conn wire.Bus, q wire.Request) (wire.Answer, error) {
	if q.Verb == wire.Jobs {
		return wire.AskJobs(func(q wire.Request) (wire.Answer, error) { return askOnce(ctx, conn, q) })
	}
	return askOnce(ctx, conn, q)
}

// askOnce sends a request to the controller.
func askOnce(ctx context.Context, conn wire.Bus, q wire.Request) (wire.Answer, error) {
	if err := wire.Check(q); err != nil {
		return wire.Answer{}, fmt.Errorf("%s: %w", q.Verb, err)
	}
	text := wire.Encode(q)
	if len(text) > wire.MaxMessage {
		return wire.Answer{}, fmt.Errorf("%s: the request has %d bytes, and %d at most: its graphs are too large; "+
			"submit fewer jobs at once", q.Verb, len(text), wire.MaxMessage)
	}
	data, err := conn.Ask(ctx, wire.ControlSubject, text)
	// it connects to its own server a little later
	for tries := 0; errors.Is(err, wire.ErrNobody) && tries < 10 && ctx.Err() == nil; tries++ {
		time.Sleep(200 * time.Millisecond)
		data, err = conn.Ask(ctx, wire.ControlSubject, text)
	}
	if ctx.Err() != nil {
		return wire.Answer{}, context.Cause(ctx)
	}
	if errors.Is(err, wire.ErrNobody) {
		return wire.Answer{}, errors.New("no controller answers; is it still starting?")
	} else if err != nil {
		return wire.Answer{}, err
	}
	a, err := wire.DecodeAs[wire.Answer](data)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// withController runs a command that needs a controller.
func (f *clientFlags) withController(run func(ctx context.Context, conn *bus.Conn, args []string,
	out io.Writer) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		conn, err := f.connect(c.Context())
		if err != nil {
			return err
		}
		defer conn.Close()
		return run(c.Context(), conn, args, c.OutOrStdout())
	}
}

func logsCommand() *cobra.Command {
	var f clientFlags
	var follow bool
	c := &cobra.Command{Use: "logs JOB", Short: "Print the log of a job", Args: needOne("JOB")}
	c.RunE = f.withController(func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) (err error) {
		defer func() {
			if follow && ctx.Err() != nil {
				err = errQuiet
			}
		}()
		jobs, err := recordsOf(ctx, conn, args[0])
		if err != nil {
			return err
		}
		out = &lineWriter{out: out} // logs of replicas go on at the same time
		logs := make([]log, len(jobs))
		stops := make([]func(), len(jobs))
		for i := range jobs {
			if logs[i].out = out; len(jobs) > 1 {
				logs[i].of = jobs[i].Spec.Name + ": "
			}
			stop, err := wire.FollowLog(ctx, conn, jobs[i].Spec.Name, logs[i].add)
			if err != nil {
				return err
			}
			stops[i] = sync.OnceFunc(stop)
			defer stops[i]()
		}
		if !follow {
			return nil
		}
		for i, job := range jobs {
			_, err = end(ctx, conn, job)
			if stops[i](); err == nil {
				err = logs[i].rest(ctx, conn, job.Spec.Name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	f.register(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing until the job ends")
	return c
}

// lineWriter is a writer for several that write whole lines.
type lineWriter struct {
	lock sync.Mutex
	out  io.Writer
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.out.Write(line)
}

// log is what was read of a job's log.
type log struct {
	out   io.Writer // nil: lines are not printed
	of    string    // begins each line
	lines []string
}

func (l *log) add(line []byte) {
	l.lines = append(l.lines, string(line))
	if l.out != nil {
		fmt.Fprintln(l.out, l.of+text.Shown(string(line)))
	}
}

// rest prints the last lines of a job that is over: they were written before, but may still be on their way.
func (l *log) rest(ctx context.Context, conn *bus.Conn, job string) error {
	var whole log
	stop, err := wire.FollowLog(ctx, conn, job, whole.add)
	if err != nil {
		return err
	}
	stop()
	for _, line := range l.missing(whole.lines) {
		l.add([]byte(line))
	}
	return nil
}

// missing are the lines at the end of all that were not read: all begins with a line that was, unless the log keeps
// fewer.
func (l *log) missing(all []string) []string {
	for n := min(len(l.lines), len(all)); n > 0; n-- {
		if slices.Equal(l.lines[len(l.lines)-n:], all[:n]) {
			return all[n:]
		}
	}
	return all
}

// recordOf is what the controller knows of a job.
func recordOf(ctx context.Context, conn wire.Bus, job string) (wire.Record, error) {
	all, err := recordsOf(ctx, conn, job)
	if err == nil && len(all) > 1 {
		return wire.Record{}, fmt.Errorf("job %s has %d replicas: name one of them, such as %s", job, len(all),
			all[0].Spec.Name)
	} else if err != nil {
		return wire.Record{}, err
	}
	return all[0], nil
}

// recordsOf is what the controller knows of a job, or of the replicas that are called so together. Of both it is what
// is not over, or came last, as in the controller.
func recordsOf(ctx context.Context, conn wire.Bus, job string) ([]wire.Record, error) {
	if err := wire.CheckName(job); err != nil {
		return nil, err
	}
	get := func(name string) (wire.Record, error) {
		data, err := conn.Get(ctx, wire.RecordKey(name))
		if err != nil {
			return wire.Record{}, err
		}
		return wire.DecodeAs[wire.Record](data)
	}
	r, err := get(job)
	if errors.Is(err, wire.ErrNotFound) || err == nil && r.State.Over() {
		switch first, none := get(job + "@0"); {
		case err != nil:
			r, err = first, none
		case none == nil && first.Spec.Replica.Of > 0 && first.Hides(&r):
			r = first
		}
	}
	all := []wire.Record{r}
	for n := 1; err == nil && r.Spec.Name != job && n < r.Spec.Replica.Of; n++ {
		if r, err = get(fmt.Sprintf("%s@%d", job, n)); err == nil {
			all = append(all, r)
		}
	}
	if errors.Is(err, wire.ErrNotFound) {
		return nil, fmt.Errorf("there is no job %s: tensile jobs lists them", job)
	}
	return all, err
}

// needJobs is the error for a command line that names no job.
func needJobs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: name a JOB: tensile jobs lists them", c.CommandPath())
	}
	return nil
}

// needOne returns the error for a command line that does not name one thing.
func needOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s: give one %s, not %d; see %s --help", c.CommandPath(), what, len(args),
				c.CommandPath())
		}
		return nil
	}
}
