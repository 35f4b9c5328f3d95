package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/spf13/cobra"

	"tensile/device/lease/process"
	"tensile/device/lifelock"
	"tensile/executor"
	"tensile/executor/agent"
	"tensile/wire/bus"
)

// executorFlags say where an executor works, and for whom.
type executorFlags struct {
	device      planFlags
	url         string
	credentials string
	record      string
	checkpoints folderFlags
	bound       string
	paced       bool
	orphan      time.Duration
	locked      bool
	profile     string
	lease       string
	log         logFlags
	brings      bringFlags
	access      accessFlags
}

func executorCommand() *cobra.Command {
	var f executorFlags
	c := &cobra.Command{
		Use:   "executor",
		Short: "Run an executor that joins a controller with its device",
		Long: `Join a controller with the device of this machine and train the jobs that it assigns, until it releases
this executor. The controller plans for each device separately and places jobs on devices. Executors
with the same --name share a device; on the controller's host this is the controller's own device unless
--name says otherwise. While the controller is away, jobs keep training with their plans. Create the
credentials file with tensile controller credentials NAME on the controller's machine, and keep it as
safe as a password.

On a signal (Ctrl-C, SIGTERM, SIGHUP) jobs checkpoint after the current iteration, and resume
elsewhere. Jobs without checkpoints end; those submitted with --save are saved first. A second signal
ends the executor at once.`,
		Example: "  tensile executor --credentials lab2.json --nats nats://10.0.0.5:4222",
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c.Context(), c.OutOrStdout()) },
	}
	f.device.registerDevice(c)
	f.checkpoints.register(c)
	f.log.register(c)
	f.brings.register(c)
	c.Flags().StringVar(&f.url, "nats", "",
		"controller address, such as nats://HOST:4222 (default: from the credentials file)")
	c.Flags().StringVar(&f.credentials, "credentials", "", "credentials file")
	c.Flags().StringVar(&f.record, "record", "",
		"record all inputs and outputs of the executor in this new file, for tensile debug replay")
	registerOrphan(c, &f.orphan)
	f.access.register(c)
	c.Flags().StringVar(&f.access.users, "users", "",
		"folder with one subfolder per user (default: in the default state folder)")
	c.Flags().MarkHidden("users")
	c.Flags().StringVar(&f.bound, "bound", "", "exit when standard input closes, and remove this folder")
	c.Flags().MarkHidden("bound")
	c.Flags().BoolVar(&f.paced, "paced", false,
		"train up to the iteration given by the last line of standard input, then pause")
	c.Flags().MarkHidden("paced")
	c.Flags().StringVar(&f.lease, "lease", "",
		"folder for the log of this device's memory lease (default: leases in the default state folder)")
	c.Flags().MarkHidden("lease")
	c.Flags().StringVar(&f.profile, "profile", "", "write a profile of processor time to this file")
	c.Flags().MarkHidden("profile")
	c.Flags().BoolVar(&f.locked, "locked", false, "file descriptor 3 is the lock that marks this executor as alive")
	c.Flags().MarkHidden("locked")
	return c
}

// registerOrphan registers how long executors go on without a controller.
func registerOrphan(c *cobra.Command, after *time.Duration) {
	c.Flags().DurationVar(after, "orphan", 24*time.Hour,
		"how long jobs keep training without a controller before they checkpoint and exit (0: forever)")
}

// profileTo begins a profile of the processor time of this process, if a path is given, until end is called.
func profileTo(path string) (end func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { pprof.StopCPUProfile(); file.Close() }, nil
}

// errOrphaned ends an executor whose parent has ended.
var errOrphaned = errors.New("the process that started this executor has ended")

func (f *executorFlags) run(ctx context.Context, out io.Writer) error {
	if f.credentials == "" {
		return errors.New("executor: name a file with --credentials; tensile controller credentials NAME makes " +
			"one where the controller runs")
	}
	if err := f.brings.check(); err != nil {
		return err
	}
	folder, err := f.checkpoints.folder()
	if err != nil {
		return err
	}
	credentials, err := bus.ReadCredentials(f.credentials)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("executor: there is no file %s; tensile controller credentials NAME makes one where "+
			"the controller runs", f.credentials)
	} else if err != nil {
		return err
	}
	name, person, ok := bus.UserName(credentials.User)
	if !ok || person {
		return fmt.Errorf("%s is for %s, not for an executor; tensile controller credentials NAME makes one",
			f.credentials, credentials.User)
	}
	if f.url != "" {
		if err := checkAddress(f.url, credentials); err != nil {
			return err
		}
		credentials.URL = f.url
	}
	log := f.log.logger(os.Stderr).With("executor", name)
	line := lines(log, slog.LevelWarn)
	lock, err := f.lock(name, credentials)
	if held, ok := errors.AsType[*lifelock.HeldError](err); ok {
		return fmt.Errorf("executor %w: end that first, or use other credentials", held)
	} else if err != nil {
		line(fmt.Sprintf("nobody will be told at once if this process dies: %v", err))
	} else {
		defer lock.Release()
	}
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // after an interrupt, until jobs are saved
	defer cancel(nil)
	var until chan int
	if f.paced {
		until = make(chan int, 64) // more than a comparison has blocks
	}
	if f.bound != "" {
		parent := os.Getppid()
		b := bind(os.Stdin, f.bound, until, func() { cancel(errOrphaned) })
		defer func() { b.leave(os.Getppid() != parent) }()
	}
	end, err := profileTo(f.profile)
	if err != nil {
		return err
	}
	defer end()
	d, link, err := openDevice(&f.device)
	if err != nil {
		return err
	}
	defer d.Close()
	log = log.With("device", f.device.device)
	say := f.log.logger(out).With("executor", name, "device", f.device.device)
	var recorder *agent.Recorder
	if f.record != "" {
		file, err := recordTo(f.record)
		if err != nil {
			return err
		}
		defer file.Close()
		recorder = agent.NewRecorder(file, func(err error) { line(fmt.Sprintf("%s: %v", f.record, err)) })
	}
	conn, err := bus.Connect(ctx, credentials, bus.ConnOptions{Log: line})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		return err
	}
	defer conn.Close()
	say.Info(fmt.Sprintf("connected to %s, device %s", credentials.URL, d.Identity()))
	o := agent.Options{Executor: name, Device: d, Host: agent.HostMaker(d), Bus: conn, Log: log, Checkpoints: folder,
		Interrupt: ctx.Done(), Notice: say, Record: recorder, Address: conn.Address(),
		Orphan: f.orphan}
	if f.bound == "" { // else it is of a run, whose jobs are its owner's, and save in the folder that is its own
		if o.Access, err = f.access.access(folder.Dir); err != nil {
			return err
		}
	}
	if !f.locked { // one that a controller has started trains on that one's device
		if o.Brings, err = f.brings.brings(d, &f.device, link); err != nil {
			return err
		}
	}
	if f.paced {
		o.Host = func(observer func(executor.Event)) agent.Host {
			h := executor.NewHost(d, observer)
			h.RestAfter(0)
			go follow(running, h, until)
			return h
		}
	}
	if !f.device.simulated() { // whose memory is this process's own
		leases := hostLeases{logs: cmp.Or(f.lease, leaseLogs(defaultState())), log: line, flags: f.log.args(),
			failed: cancel}
		if f.bound != "" {
			leases.linger = time.Second
		}
		o.Lease = leases.open
		if o.Place, err = process.Place(); err != nil {
			return err
		}
	}
	if lock != nil {
		o.Life, o.Dead, o.Removed = rand.Text(), lock.Dead(), lock.Removed
		if err := lock.Sign(agent.ProcessName(), time.Now(), o.Life); err != nil {
			return err
		}
	}
	err = agent.Run(running, o)
	if _, ok := errors.AsType[*agent.InterruptedError](err); ok {
		return &exitError{err, interruptStatus}
	}
	return err
}

// follow has jobs train up to the last number of iterations that came, and rest there.
func follow(ctx context.Context, h *executor.Host, until <-chan int) {
	for {
		select {
		case n := <-until:
			h.RestAfter(n)
		case <-ctx.Done():
			return
		}
	}
}

// lock takes the lock that shows that this executor lives, unless its parent has taken it.
func (f *executorFlags) lock(name string, c bus.Credentials) (*lifelock.Lock, error) {
	if f.locked {
		const descriptor = 3 // the first that a child inherits beside its streams
		return lifelock.Inherit(descriptor)
	}
	state := defaultState()
	if state == "" {
		return nil, errors.New("neither HOME nor XDG_STATE_HOME is set, so there is no folder for a lock")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	// A home may be shared by hosts, but no lock is. Executors of one name and two controllers have two passwords.
	controller := sha256.Sum256([]byte("executor " + c.Password))
	return lifelock.Take(filepath.Join(state, "locks", host, hex.EncodeToString(controller[:8])), name)
}

// noArguments is the error for a command that takes none.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s: %q is not wanted; see %s --help", c.CommandPath(), args[0], c.CommandPath())
	}
	return nil
}
