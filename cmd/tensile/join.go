package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"tensile/executor/sidecar"
	"tensile/graph/text"
	"tensile/models/external"
)

func joinCommand() *cobra.Command {
	var f joinFlags
	c := &cobra.Command{
		Use:   "join [flags] -- COMMAND...",
		Short: "Train a PyTorch script as a job of a controller, or alone within a memory limit",
		Long: `Start a PyTorch script (2.6 or later) and plan the memory of its training. The script needs no change:
the first optimizer whose model is trained joins. To choose another one, the script imports tensile and calls
tensile.join(model, optimizer). It trains with its own ops, in its own process, with bit-identical
results. Its first iterations are captured; later iterations run with a plan that is carried out between
the ops.

If a controller runs, each process of the command that trains becomes one of its jobs: NAME, NAME-1 and so
on, by LOCAL_RANK where that is set. The command starts when its initial memory is free: --memory, or a
quarter of the controller's budget. What was captured is then planned together with the other jobs, and
the script may get more or less memory. It takes no checkpoints, is not restarted and does not migrate;
tensile job stop and tensile job park act at the end of an iteration. To stop NAME stops the whole command.

If no controller runs on the default state folder, and neither --name nor --priority nor a flag that
selects a controller is given, the script is planned alone, within --memory.

Memory is what PyTorch's allocator reserves. What it reserves beyond the plan (small tensors,
fragments) is measured, and the plan is reduced if both together do not fit.

The script uses this terminal. If this process dies, the script keeps training with its current plan.
The exit status is the script's, or 128 plus the number of the signal that ended it or this process. If no
plan fits into --memory, the script ends before its next step with status 75, unless --anyway is given.
A --memory in bytes is a limit from the first iteration on.`,
		Example: "  tensile join --memory 4GiB -- python train.py\n" +
			"  tensile join --name encoder --priority 2 -- python train.py",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the command that trains, as in: tensile join --memory 4GiB -- python train.py")
			}
			return nil
		},
	}
	f.client.register(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		t, err := parseTerms("--memory", f.memory, f.anyway)
		if err != nil {
			return err
		}
		means := slices.ContainsFunc([]string{"name", "priority", "state", "credentials", "nats"}, c.Flags().Changed)
		_, err = os.Stat(filepath.Join(f.client.state, clientFile))
		if !means && f.detached.log == "" && errors.Is(err, fs.ErrNotExist) {
			return join(c.Context(), scriptCommand{args: args}, t, f.report, c.ErrOrStderr())
		}
		if t.Share > 0 || f.anyway {
			return errors.New("--memory in percent and --anyway are for a script that is planned for alone: of a job " +
				"the controller says what it may have; give --memory as a size, such as 4GiB, and leave out --anyway")
		}
		return afterSignal(c.Context(), f.jobs(c.Context(), args, c.ErrOrStderr()))
	}
	c.Flags().SetInterspersed(false)
	c.Flags().StringVar(&f.name, "name", "", "job name (default: name of the script)")
	c.Flags().IntVar(&f.priority, "priority", 1, "job priority: its weight relative to other jobs")
	c.Flags().StringVar(&f.memory, "memory", "",
		"device memory limit, such as 4GiB; for a job of a controller it holds until the first iteration is captured "+
			"(default: a quarter of the budget); without a controller it always holds and may be a percentage of "+
			"what an iteration needs (default: no limit)")
	c.Flags().BoolVar(&f.anyway, "anyway", false, anywayHelp)
	c.Flags().StringVar(&f.report, "report", "", reportHelp)
	f.detached.register(c)
	return c
}

const (
	anywayHelp = "of a script: keep training without a limit if no plan fits, instead of exiting with status 75"
	reportHelp = "of a script: write a JSON report to this file: need_bytes, plan_bytes, touched_bytes and more"
)

// parseTerms reads within what a script is to train: a flag and its text, a size or a percentage.
func parseTerms(flag, memory string, anyway bool) (t sidecar.Terms, err error) {
	percent, share, err := parseShare(flag, memory)
	switch {
	case err != nil:
		return t, err
	case share:
		t.Share = percent / 100
	case memory != "":
		if t.Limit, err = parseBytes(flag, memory); err != nil {
			return t, err
		}
	}
	t.Anyway = anyway
	return t, nil
}

// join starts a command and is the sidecar of each of its processes that joins, until the command ends.
func join(ctx context.Context, command scriptCommand, t sidecar.Terms, report string, stderr io.Writer) error {
	r, status, err := serveCommand(ctx, command, t, stderr)
	if err != nil {
		return err
	}
	if err := errors.Join(r.tell(stderr), r.write(report)); err != nil {
		return err
	}
	return afterSignal(ctx, r.exit(command.args[0], status))
}

// afterSignal is the end of a command for ours, which may have been told to end by a signal: one that has done so, and
// well, has ended by that.
func afterSignal(ctx context.Context, err error) error {
	if ctx.Err() == nil || err != nil && !errors.Is(err, errInterrupted) {
		return err
	}
	return &exitError{cmp.Or(err, errors.New("")), 128 + int(signalOf(ctx))}
}

// serveCommand is join without what becomes of the report and of the command's end, which is status.
func serveCommand(ctx context.Context, command scriptCommand, t sidecar.Terms, stderr io.Writer) (r *joinReport,
	status, err error) {
	j, err := command.startJoining()
	if err != nil {
		return nil, nil, err
	}
	r = &joinReport{}
	var processes []*joined
	var of numbers
	var serving sync.WaitGroup
	var listening atomic.Int32
	defer j.passOn(ctx, func() bool { return listening.Load() > 0 })()
	for conn := range j.door.Joined() {
		p := newJoined(conn, t, stderr)
		p.command, p.numbers, p.listening = nameOf(command.args), &of, &listening
		processes = append(processes, p)
		serving.Go(func() { p.serve(ctx) })
	}
	status = <-j.ended
	for _, p := range processes {
		// What it has said is read to the end, and no more: a process that it has left behind may have its end of the
		// connection still.
		_ = p.conn.CloseRead() // fails if it is closed, and then nothing is read anyway
	}
	serving.Wait()
	for _, p := range processes {
		if p.machine.Joined() {
			r.add(processName(p.command, p.number), p.number, p.machine.Summary())
		}
	}
	return r, status, nil
}

// unmetStatus is the exit status of a script that has ended since it cannot be within its limit: EX_TEMPFAIL of
// sysexits.h.
const unmetStatus = 75

// exitOf is what the end of a command is for ours.
func exitOf(command string, status error) error {
	var exit *exec.ExitError
	switch {
	case errors.As(status, &exit) && exit.Exited():
		return &exitError{errors.New(""), exit.ExitCode()}
	case errors.As(status, &exit): // as a shell has it
		signal := exit.Sys().(syscall.WaitStatus).Signal()
		return &exitError{fmt.Errorf("%s: %w", command, status), 128 + int(signal)}
	case status != nil:
		return fmt.Errorf("%s: %w", command, status)
	}
	return nil
}

// joined is a process that has joined.
type joined struct {
	command string   // Its name.
	numbers *numbers // Of its processes.
	number  int
	machine *sidecar.Machine
	// listening counts those that can be told to end, and listens says that this one is counted.
	listening *atomic.Int32
	listens   bool
	conn      *net.UnixConn
	lines     chan []byte // Lines to write.
	planned   chan sidecar.Planned
	stderr    io.Writer
}

// heard is what the script says, or that it says no more.
type heard struct {
	message external.Message
	err     error
}

func newJoined(conn *net.UnixConn, t sidecar.Terms, stderr io.Writer) *joined {
	return &joined{machine: sidecar.NewMachine(t), conn: conn, lines: make(chan []byte, maxLines),
		planned: make(chan sidecar.Planned, 1), stderr: stderr}
}

// serve steps the machine until all that the process has said was heard.
func (s *joined) serve(ctx context.Context) {
	defer close(s.lines)
	defer s.close()
	go func() {
		for line := range s.lines { // what a script that is gone does not read is lost
			if _, err := s.conn.Write(line); err != nil {
				s.conn.Close()
			}
		}
	}()
	messages := make(chan heard)
	go func() {
		defer close(messages)
		r := external.NewReader(s.conn, external.Script)
		for {
			m, err := r.Next()
			messages <- heard{m, err}
			if err != nil {
				return
			}
		}
	}()
	interrupted := ctx.Done()
	planning, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	for {
		select {
		case h, open := <-messages:
			switch {
			case !open:
				return
			case errors.Is(h.err, io.EOF), errors.Is(h.err, net.ErrClosed), errors.Is(h.err, syscall.ECONNRESET):
				s.step(planning, sidecar.Input{Closed: true})
			case h.err != nil:
				s.say("what the script says cannot be read: %v: it trains on without us", h.err)
				s.close()
			default:
				if hello, first := h.message.(external.Hello); first && !s.machine.Joined() {
					s.number = s.numbers.next(hello)
				}
				s.step(planning, sidecar.Input{Message: h.message})
			}
		case p := <-s.planned:
			s.step(planning, sidecar.Input{Planned: &p})
		case <-interrupted: // a terminal interrupts the script too, which may be in the middle of something
			interrupted = nil
			s.step(planning, sidecar.Input{Stop: true})
		}
	}
}

// step steps the machine and does what it says.
func (s *joined) step(ctx context.Context, in sidecar.Input) {
	outputs := s.machine.Step(in)
	switch now := s.machine.Listens(); {
	case now && !s.listens:
		s.listening.Add(1)
	case !now && s.listens:
		s.listening.Add(-1)
	}
	s.listens = s.machine.Listens()
	for _, out := range outputs {
		switch {
		case out.Note != "":
			s.say("%s", out.Note)
		case out.Fail != nil:
			s.say("%v: the script trains on without us", out.Fail)
			s.close()
		case out.Plan != nil:
			go func() { s.planned <- sidecar.Make(ctx, out.Plan) }()
		case out.Send != nil:
			s.send(out.Send)
		}
	}
}

// maxLines is how many lines wait for a script that does not read: more than any has reason to.
const maxLines = 1 << 10

// send puts a message in line. The script reads between iterations, and may be writing meanwhile.
func (s *joined) send(m external.Message) {
	line, err := external.Encode(m)
	if err == nil {
		select {
		case s.lines <- line:
			return
		default:
			err = errors.New("it does not read")
		}
	}
	s.say("the script cannot be told: %v", err)
	s.close()
}

func (s *joined) close() { s.conn.Close() }

func (s *joined) say(format string, args ...any) {
	sayOf(s.stderr, s.command, s.number, fmt.Sprintf(format, args...))
}

// sayOf writes a line of a process of a command, which begins with its name unless it is the first.
func sayOf(stderr io.Writer, command string, number int, line string) {
	if number > 0 {
		line = processName(command, number) + ": " + line
	}
	fmt.Fprintln(stderr, "tensile:", text.Line(line, maxError))
}
