package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"tensile/external"
	"tensile/external/sidecar"
	"tensile/graph"
	"tensile/internal/text"
)

// socketVariable names the variable in which a script finds the number of its end of the connection.
const socketVariable = "TENSILE_SOCKET"

func joinCommand() *cobra.Command {
	var memory, report string
	c := &cobra.Command{
		Use:   "join [flags] -- COMMAND...",
		Short: "Train a PyTorch script within so many bytes of its device",
		Long: `Start a script and plan the iterations of its training, within --memory. The script imports
the package in python/tensile and says tensile.join(model, optimizer); it trains with its own ops, in
its own process, and to the same bits. The first iterations are recorded; what is planned then is
carried out between the ops.

The limit is for what the allocator of PyTorch reserves. What it has beyond the plan (small tensors,
fragments) is measured, and the plan is made lower if both together do not fit.

The script has the terminal. If this process dies, it trains on with the plan that it has; the exit
status is that of the script. The script is planned for alone: it is no job of a controller.`,
		Example: "  tensile join --memory 4GiB -- python train.py",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the command that trains, as in: tensile join --memory 4GiB -- python train.py")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			var limit graph.Bytes
			if memory != "" {
				var err error
				if limit, err = parseBytes("--memory", memory); err != nil {
					return err
				}
			}
			return join(c.Context(), args, limit, report, c.ErrOrStderr())
		},
	}
	c.Flags().SetInterspersed(false)
	c.Flags().StringVar(&memory, "memory", "",
		"bytes that the script may have on its device, such as 4GiB (default: no limit)")
	c.Flags().StringVar(&report, "report", "",
		"write what it came to into this file, as JSON: plan_bytes, reserve_bytes, claim_bytes, touched_bytes and more")
	return c
}

// join starts a command and is its sidecar until it ends.
func join(ctx context.Context, args []string, limit graph.Bytes, report string, stderr io.Writer) error {
	s := &joined{machine: sidecar.NewMachine(limit), stderr: stderr, planned: make(chan sidecar.Planned, 1)}
	ended, err := s.start(args)
	if err != nil {
		return err
	}
	defer close(s.lines)
	defer s.close()
	status := s.serve(ctx, ended)
	if err := s.tell(report); err != nil {
		return err
	}
	var exit *exec.ExitError
	switch {
	case errors.As(status, &exit) && exit.Exited():
		return &exitError{errors.New(""), exit.ExitCode()}
	case status != nil:
		return fmt.Errorf("%s: %w", args[0], status)
	}
	return nil
}

// joined is a script that runs.
type joined struct {
	machine  *sidecar.Machine
	conn     *net.UnixConn
	messages chan heard
	lines    chan []byte // to be written
	planned  chan sidecar.Planned
	stderr   io.Writer
}

// heard is what the script says, or that it says no more.
type heard struct {
	message external.Message
	err     error
}

// start starts the command with one end of a socket pair. The channel has the command's end.
func (s *joined) start(args []string) (<-chan error, error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("make a connection to the script: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "sidecar"), os.NewFile(uintptr(fds[1]), "script")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, fmt.Errorf("make a connection to the script: %w", err)
	}
	s.conn = conn.(*net.UnixConn)
	command := exec.Command(args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.ExtraFiles = []*os.File{theirs} // which the command has as 3
	command.Env = append(os.Environ(), socketVariable+"=3")
	if err := command.Start(); err != nil {
		s.conn.Close()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	s.lines = make(chan []byte, maxLines)
	go func() {
		for line := range s.lines { // what a script that is gone does not read is lost
			if _, err := s.conn.Write(line); err != nil {
				s.conn.Close()
			}
		}
	}()
	s.messages = make(chan heard)
	go func() {
		defer close(s.messages)
		r := external.NewReader(s.conn, external.Script)
		for {
			m, err := r.Next()
			s.messages <- heard{m, err}
			if err != nil {
				return
			}
		}
	}()
	return ended, nil
}

// serve steps the machine until the command has ended and all that it has said was heard.
func (s *joined) serve(ctx context.Context, ended <-chan error) error {
	interrupted := ctx.Done()
	planning, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	messages := s.messages
	var status error
	for messages != nil || ended != nil {
		select {
		case h, open := <-messages:
			switch {
			case !open:
				messages = nil
			case errors.Is(h.err, io.EOF), errors.Is(h.err, net.ErrClosed):
				s.step(planning, sidecar.Input{Closed: true})
			case h.err != nil:
				s.say("what the script says cannot be read: %v: it trains on without us", h.err)
				s.close()
			default:
				s.step(planning, sidecar.Input{Message: h.message})
			}
		case p := <-s.planned:
			s.step(planning, sidecar.Input{Planned: &p})
		case <-interrupted: // a terminal interrupts the script too, which may be in the middle of something
			interrupted = nil
			s.step(planning, sidecar.Input{Stop: true})
		case status = <-ended:
			ended = nil
			// What it has said is read to the end, and no more: a process that it has left behind may have its end of
			// the connection still.
			_ = s.conn.CloseRead() // fails if it is closed, and then nothing is read anyway
		}
	}
	return status
}

// step steps the machine and does what it says.
func (s *joined) step(ctx context.Context, in sidecar.Input) {
	for _, out := range s.machine.Step(in) {
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
	fmt.Fprintln(s.stderr, "tensile:", text.Line(fmt.Sprintf(format, args...), maxError))
}

// tell says what the script came to.
func (s *joined) tell(report string) error {
	sum := s.machine.Summary()
	switch {
	case !s.machine.Joined():
		s.say("the command has not joined: it has to import tensile, and to say tensile.join(model, optimizer)")
	case sum.Planned == 0:
		s.say("%d iterations, none by a plan, touched %s", sum.Iterations, sum.Unplanned)
	case sum.Unplanned == 0: // none was measured
		s.say("%d iterations, %d by a plan: touched %s of %s planned and %s reserve", sum.Iterations, sum.Planned,
			sum.Touched, sum.Plan, sum.Reserve)
	default:
		s.say("%d iterations, %d by a plan: touched %s of %s planned and %s reserve; %s without a plan", sum.Iterations,
			sum.Planned, sum.Touched, sum.Plan, sum.Reserve, sum.Unplanned)
	}
	if report == "" {
		return nil
	}
	body, err := json.MarshalIndent(sum, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(report, append(body, '\n'), 0o644)
}
