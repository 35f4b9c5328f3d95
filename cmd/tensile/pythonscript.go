package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tensile/models/external"
	"tensile/models/task"
)

// scriptHelp explains SCRIPT in the help texts.
const scriptHelp = "SCRIPT is a PyTorch 2 script that ends in .py; what follows -- is its own."

// pythonScript is a script of PyTorch as a source of work.
type pythonScript struct {
	path   string
	args   []string
	python string // The interpreter.
}

// neverStarted is the exit status of a command whose script never started.
const neverStarted = 2

// scriptOf returns the script that a command line names; nil: it names none. Only flags that a script takes may be
// given with one, and without one none that are for scripts alone.
func scriptOf(c *cobra.Command, args []string, takes func(flag string) bool, alone ...string) (*pythonScript, error) {
	own := args
	if n := c.ArgsLenAtDash(); n >= 0 {
		own = args[:n]
	}
	at := slices.IndexFunc(own, task.IsScript)
	if at < 0 {
		for _, name := range alone {
			if c.Flags().Changed(name) {
				return nil, fmt.Errorf("--%s is for a script of PyTorch, and none is named: leave it out", name)
			}
		}
		return nil, nil
	}
	s := &pythonScript{path: own[at], args: args[len(own):]}
	if len(own) > 1 {
		return nil, s.refuse("it is one of %d names: give a script alone, and what is for it after --", len(own))
	}
	var err error
	visitGiven(c.Flags(), func(f *pflag.Flag) {
		if err == nil && !takes(f.Name) {
			err = s.refuse("--%[1]s is not for a script: leave it out, or give it to the script after --, as in: "+
				"tensile %[2]s %[3]s -- --%[1]s", f.Name, c.Name(), s.path)
		}
	})
	if err != nil {
		return nil, err
	}
	if about, err := os.Stat(s.path); err != nil {
		return nil, s.refuse("%v", reason(err))
	} else if about.IsDir() {
		return nil, s.refuse("it is a folder")
	}
	return s, s.findPython()
}

// refuse is the error of a script that does not start.
func (s *pythonScript) refuse(format string, args ...any) error {
	return &exitError{fmt.Errorf("%s: %w", s.path, fmt.Errorf(format, args...)), neverStarted}
}

// askTorch prints the release of PyTorch that a Python has, "?" if it does not say, and nothing if it has none.
const askTorch = `
import sys
del sys.path[0]  # the working folder, whose files may have the names of modules
import importlib.metadata, importlib.util
if importlib.util.find_spec("torch"):
    try:
        print(importlib.metadata.version("torch"))
    except Exception:
        print("?")
`

// findPython finds the interpreter: the one beside this program, which pip has put there, or else the first in PATH.
func (s *pythonScript) findPython() error {
	self, err := os.Executable()
	if err == nil {
		s.python, err = exec.LookPath(filepath.Join(filepath.Dir(self), "python3"))
	}
	if err != nil {
		if s.python, err = exec.LookPath("python3"); err != nil {
			return s.refuse("there is no python3 in PATH: activate the environment that has PyTorch")
		}
	}
	release, err := exec.Command(s.python, "-c", askTorch).Output()
	text := strings.TrimSpace(string(release))
	if err != nil {
		return s.refuse("%s does not run: %v", s.python, err)
	}
	if text == "" {
		return s.refuse("%s has no PyTorch: install torch, or activate the environment that has it", s.python)
	}
	var major, minor int
	if n, _ := fmt.Sscanf(text, "%d.%d", &major, &minor); n == 2 && (major < 2 || major == 2 && minor < 6) {
		return s.refuse("%s has PyTorch %s: take 2.6 or later", s.python, text)
	}
	return nil
}

func (s *pythonScript) words() []string { return append([]string{s.python, s.path}, s.args...) }

// name is the name of the script's job.
func (s *pythonScript) name() string { return nameOf(s.words()[1:2]) }

// record starts the script and has it end when it has recorded an iteration, which it writes as the file of a recorded
// graph. What the script prints goes to stderr.
func (s *pythonScript) record(ctx context.Context, to io.Writer) error {
	j, err := scriptCommand{args: s.words(), stdout: os.Stderr}.startJoining()
	if err != nil {
		return s.refuse("%v", err)
	}
	ending := context.AfterFunc(ctx, func() { _ = j.process.Signal(syscall.SIGTERM) }) // it may have ended
	defer ending()
	recorded := errors.New("no optimizer has made a step in it, so that there is no graph")
	if conn, ok := <-j.door.Joined(); ok {
		recorded = s.listen(conn, to)
		conn.Close()
	}
	for other := range j.door.Joined() {
		other.Close()
	}
	status := <-j.ended
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case recorded == nil:
		return nil
	case status != nil:
		return exitOf(s.path, status)
	}
	return fmt.Errorf("%s: %w", s.path, recorded)
}

// recorded records the script's graph into a file of its name below dir, and returns that.
func (s *pythonScript) recorded(ctx context.Context, dir string) (string, error) {
	file, err := os.Create(filepath.Join(dir, s.name()+".json"))
	if err != nil {
		return "", err
	}
	return file.Name(), errors.Join(s.record(ctx, file), file.Close())
}

// ofNetworks reports whether a flag describes networks, which a recorded graph is not described by.
func ofNetworks(flag string) bool {
	var w workloadFlags
	c := &cobra.Command{}
	w.register(c)
	w.registerReplicas(c)
	return c.Flags().Lookup(flag) != nil
}

// listen writes the first graph that the script records, has it end then, and hears it out.
func (s *pythonScript) listen(conn *net.UnixConn, to io.Writer) error {
	r := external.NewReader(conn, external.Script)
	why, done := "it ended before two iterations did the same, so that there is no graph", false
	for {
		m, err := r.Next()
		if err != nil && done {
			return nil
		} else if err != nil {
			return errors.New(why)
		}
		switch m := m.(type) {
		case external.Hello:
			err = errors.Join(tell(to, m), tell(conn, external.Plan{Number: 1})) // a plan for nothing yet
		case external.Recorded:
			if done {
				break
			}
			done = true
			m.Graph.Name = s.name()
			fmt.Fprintf(os.Stderr, "tensile: %s: an iteration of %d ops and %d storages is recorded\n", s.path,
				len(m.Graph.Ops), len(m.Graph.Storages))
			err = errors.Join(tell(to, m), tell(conn, external.Stop{}))
		case external.Passive:
			why = m.Why
		}
		if err != nil {
			return err
		}
	}
}

// tell writes a message.
func tell(to io.Writer, m external.Message) error {
	line, err := external.Encode(m)
	if err == nil {
		_, err = to.Write(line)
	}
	return err
}

// memoryIsBudget lets --budget be called --memory, as tensile join has it, and has its help say so.
func memoryIsBudget(flags *pflag.FlagSet) {
	flags.Lookup("budget").Usage += "; also called --memory"
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "memory" {
			name = "budget"
		}
		return pflag.NormalizedName(name)
	})
}
