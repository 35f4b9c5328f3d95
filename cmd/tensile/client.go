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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tensile/internal/bus"
	"tensile/internal/text"
	"tensile/wire"
)

// registerState registers the folder in which a controller keeps what it knows.
func registerState(c *cobra.Command, state *string) {
	c.Flags().StringVar(state, "state", defaultState(), "folder in which the controller keeps what it knows")
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

// checkState returns the error of a state folder that there cannot be.
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
	return nil
}

// clientFlags say which controller is meant.
type clientFlags struct{ state, url, credentials string }

func (f *clientFlags) register(c *cobra.Command) {
	registerState(c, &f.state)
	c.Flags().StringVar(&f.credentials, "credentials", "", "file of credentials (default: that of the state folder)")
	c.Flags().StringVar(&f.url, "nats", "", "address of the controller (default: the one in the credentials)")
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
		return bus.Credentials{}, fmt.Errorf("%s is for executor %s, not for commands: tensile credentials NAME "+
			"--user makes one that is", path, name)
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

// ask sends a request to the controller.
func ask(ctx context.Context, conn wire.Bus, q wire.Request) (wire.Answer, error) {
	data, err := conn.Ask(ctx, wire.ControlSubject, wire.Encode(q))
	// it connects to its own server a little later
	for tries := 0; errors.Is(err, wire.ErrNobody) && tries < 10 && ctx.Err() == nil; tries++ {
		time.Sleep(200 * time.Millisecond)
		data, err = conn.Ask(ctx, wire.ControlSubject, wire.Encode(q))
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

// with runs a command that needs a controller.
func (f *clientFlags) with(run func(ctx context.Context, conn *bus.Conn, args []string,
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
	c := &cobra.Command{Use: "logs JOB", Short: "Print what a job has logged", Args: needOne("JOB")}
	c.RunE = f.with(func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) error {
		job, err := recordOf(ctx, conn, args[0])
		if err != nil {
			return err
		}
		l := log{out: out}
		stop, err := conn.Follow(ctx, wire.LogSubject("*", args[0]), l.add)
		if err != nil || !follow {
			if err == nil {
				stop()
			}
			return err
		}
		_, err = end(ctx, conn, job)
		stop()
		if ctx.Err() != nil {
			return errQuiet
		} else if err != nil {
			return err
		}
		// The last lines were written before the job was over, but may still have been on their way.
		rest := log{}
		if stop, err = conn.Follow(ctx, wire.LogSubject("*", args[0]), rest.add); err != nil {
			return err
		}
		stop()
		for _, line := range l.missing(rest.lines) {
			fmt.Fprintln(out, text.Shown(line))
		}
		return nil
	})
	f.register(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job is over, or until interrupted")
	return c
}

// log is what was read of a job's log.
type log struct {
	out   io.Writer // may be nil
	lines []string
}

func (l *log) add(line []byte) {
	l.lines = append(l.lines, string(line))
	if l.out != nil {
		fmt.Fprintln(l.out, text.Shown(string(line)))
	}
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
	if err := wire.CheckName(job); err != nil {
		return wire.Record{}, err
	}
	data, err := conn.Get(ctx, wire.RecordKey(job))
	if errors.Is(err, wire.ErrNotFound) {
		return wire.Record{}, fmt.Errorf("there is no job %s: tensile jobs lists them", job)
	} else if err != nil {
		return wire.Record{}, err
	}
	return wire.DecodeAs[wire.Record](data)
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
