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
	lease       string
	log         logFlags
	brings      bringFlags
	access      accessFlags
}

func executorCommand() *cobra.Command {
	var f executorFlags
	c := &cobra.Command{
		Use:   "executor",
		Short: "Train what a controller orders, from this shell or machine",
		Long: `Join a controller and train what it orders, until it lets this executor go. It brings its
device: the controller plans for each device by itself, and places jobs on them. Executors of one
--name share a device; on the host of the controller that is the controller's own, unless --name says
otherwise. While the controller is away the jobs go on with
their plans. The file of credentials comes from tensile credentials NAME where the controller runs;
it is as good as a password.

A signal (Ctrl-C, SIGTERM, SIGHUP) has the jobs leave after the iterations in flight, with a
checkpoint from which they go on elsewhere. Those of which no checkpoints are taken end; if they were
submitted with --save they are saved. A second one ends the executor at once.`,
		Example: "  tensile executor --credentials lab2.json --nats nats://10.0.0.5:4222",
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c.Context(), c.OutOrStdout()) },
	}
	f.device.registerDevice(c)
	f.checkpoints.register(c)
	f.log.register(c)
	f.brings.register(c)
	c.Flags().StringVar(&f.url, "nats", "",
		"address of the controller, such as nats://HOST:4222 (default: the one in the credentials)")
	c.Flags().StringVar(&f.credentials, "credentials", "", "file of credentials")
	c.Flags().StringVar(&f.record, "record", "",
		"write all that the executor is told and answers to this new file, for tensile debug replay")
	registerOrphan(c, &f.orphan)
	f.access.register(c)
	c.Flags().StringVar(&f.access.users, "users", "", "folder with a folder for each user (default: in the default "+
		"state folder)")
	c.Flags().MarkHidden("users")
	c.Flags().StringVar(&f.bound, "bound", "", "end when the standard input ends, and remove this folder then")
	c.Flags().MarkHidden("bound")
	c.Flags().BoolVar(&f.paced, "paced", false,
		"train up to the iteration that the last line of the standard input names, and rest there")
	c.Flags().MarkHidden("paced")
	c.Flags().StringVar(&f.lease, "lease", "",
		"folder for the log of the lease of this device's memory (default: leases in the default state folder)")
	c.Flags().MarkHidden("lease")
	c.Flags().BoolVar(&f.locked, "locked", false, "file 3 is the lock that shows that this executor lives")
	c.Flags().MarkHidden("locked")
	return c
}

// registerOrphan registers how long executors go on without a controller.
func registerOrphan(c *cobra.Command, after *time.Duration) {
	c.Flags().DurationVar(after, "orphan", 24*time.Hour,
		"how long jobs train on without a controller before they leave with a checkpoint (0: for ever)")
}

// errOrphaned ends an executor whose parent has ended.
var errOrphaned = errors.New("the process that started this executor has ended")

func (f *executorFlags) run(ctx context.Context, out io.Writer) error {
	if f.credentials == "" {
		return errors.New("executor: name a file with --credentials; tensile credentials NAME makes one where the " +
			"controller runs")
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
		return fmt.Errorf("executor: there is no file %s; tensile credentials NAME makes one where the controller runs",
			f.credentials)
	} else if err != nil {
		return err
	}
	name, person, ok := bus.UserName(credentials.User)
	if !ok || person {
		return fmt.Errorf("%s is for %s, not for an executor; tensile credentials NAME makes one", f.credentials,
			credentials.User)
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
