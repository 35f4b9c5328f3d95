package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/controller"
	"tensile/device"
	"tensile/executor/agent"
	"tensile/graph"
	"tensile/observe/web"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies"
	"tensile/wire"
	"tensile/wire/bus"
	"tensile/wire/journal"
	"tensile/wire/leader"
)

// controllerFlags describe a controller that runs on.
type controllerFlags struct {
	plan   planFlags
	state  string
	listen string
	http   string // Address of the page; "off" disables it.
	public bool   // /metrics needs no token.
	share  bool
	tls    bool
	alpha  float64
	drift  float64
	keep   int
	record string

	servers   serverFlags // External NATS servers; without URLs the server runs in this process.
	executors string      // File with the login of executors there.

	silence, giveUp time.Duration
	orphan          time.Duration
	preempt         bool
	inForce         bool // --memory-sharing was not given: running jobs keep theirs.
	quota           folderFlags
	access          accessFlags
	log             logFlags
	bound           bool // The controller ends with the process that started it.
}

// anyPort is where a controller listens unless told otherwise: at a port that is free at its first start.
const anyPort = "127.0.0.1:0"

// lastName is the file in a state folder with what a controller was told last before it ended by a panic.
const lastName = "panic.jsonl"

// minSilence is a few heartbeats.
const minSilence = 3 * time.Second

func controllerCommand() *cobra.Command {
	var f controllerFlags
	c := &cobra.Command{
		Use:   "controller",
		Short: "Run a controller: accept jobs, plan them together and have executors train them",
		Long: `Run a controller until it is stopped: it accepts jobs from tensile submit, plans all of them together
and has executors train them. All of its state is in the state folder. When it exits, for whatever
reason, executors keep training with their plans, and a controller started again on the same folder
takes over jobs and plans.`,
		Example: "  tensile controller --budget 8GiB &\n  tensile submit resnet50 vgg16 --image 32 --iterations 1000",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.bound {
				return f.runBound(c.Context(), c.InOrStdin(), c.OutOrStdout())
			}
			return f.run(c.Context(), c.OutOrStdout())
		},
	}
	f.plan.registerDevice(c)
	c.Flags().Lookup("device").Usage += "; none: those alone that executors bring"
	f.plan.registerPolicy(c)
	f.plan.registerReplan(c)
	c.Flags().BoolVar(&f.plan.noMoves, "no-moves", false,
		"never migrate running jobs to other devices")
	f.plan.registerSharing(c, "gates on devices with paged arenas, else none")
	f.plan.latency.register(c)
	registerState(c, &f.state)
	f.quota.registerQuota(c)
	f.access.register(c)
	f.log.register(c)
	c.Flags().StringVar(&f.plan.budget, "budget", "",
		"device memory for all jobs: a size such as 8GiB (default: as set by tensile device budget, else no limit)")
	f.plan.host.register(c)
	c.Flags().StringVar(&f.listen, "listen", anyPort,
		"address to listen on; port 0 picks a free port and keeps it across restarts")
	c.Flags().StringVar(&f.http, "http", anyPort,
		"address of the web page; port 0 picks a free port and keeps it across restarts; off disables it")
	c.Flags().BoolVar(&f.public, "metrics-open", false,
		"serve /metrics without a token to anyone who can reach --http; it exposes names of jobs and owners")
	c.Flags().BoolVar(&f.tls, "tls", false,
		"encrypt connections with a certificate generated in the state folder")
	c.Flags().BoolVar(&f.share, "share", false, "run all jobs in one executor process (default with --device sim)")
	isolate := c.Flags().Bool("isolate", false,
		"run each job in its own executor process (default except with --device sim)")
	c.Flags().Float64Var(&f.alpha, "alpha", 0.3,
		"smoothing factor for measured operator latencies: weight of the newest value")
	c.Flags().Float64Var(&f.drift, "threshold", 0.1,
		"relative change of a job's latency that triggers replanning")
	c.Flags().IntVar(&f.keep, "keep", 200, "number of finished jobs to keep listed (0: keep all)")
	c.Flags().DurationVar(&f.silence, "silence", 15*time.Second,
		"heartbeat timeout after which an executor is considered unreachable")
	c.Flags().DurationVar(&f.giveUp, "give-up", 5*time.Minute,
		"how long jobs wait for an unreachable executor before they restart elsewhere")
	registerOrphan(c, &f.orphan)
	c.Flags().BoolVar(&f.preempt, "preempt", false,
		"park lower-priority jobs that have run for a minute if a waiting job does not fit otherwise; they resume "+
			"later")
	c.Flags().StringVar(&f.servers.urls, "nats", "",
		"comma-separated addresses of external NATS servers to use instead of the built-in one; if several "+
			"controllers share them, they elect a leader")
	f.servers.register(c)
	c.Flags().StringVar(&f.executors, "nats-executors", "",
		"login file for executors started here and scripts that join, on external NATS servers (default: the one "+
			"from --nats-auth; scripts cannot join)")
	c.Flags().StringVar(&f.record, "record", "",
		"record all inputs and outputs of the controller in this new file, for tensile debug replay")
	c.Flags().BoolVar(&f.bound, "bound", false,
		"exit with all executors when standard input closes, and remove the state folder")
	c.Flags().MarkHidden("bound")
	c.PreRunE = func(*cobra.Command, []string) error {
		f.inForce = !c.Flags().Changed("memory-sharing")
		if f.share && *isolate {
			return errors.New("--share and --isolate exclude each other")
		}
		for _, own := range []string{"listen", "tls"} {
			if f.servers.urls != "" && c.Flags().Changed(own) {
				return fmt.Errorf("--%s is for a server in this process: with --nats leave it out", own)
			}
		}
		if f.servers.urls == "" && (f.servers.auth != "" || f.servers.ca != "" || f.executors != "") {
			return errors.New("--nats-auth, --nats-ca and --nats-executors are for external servers: name these " +
				"with --nats")
		}
		f.share, f.plan.apart = f.share || f.plan.simulated() && !*isolate, *isolate
		return nil
	}
	c.AddCommand(backupCommand(), restoreCommand())
	return c
}

// runBound is run until the standard input ends, as it does when the process at its other end is killed. Neither
// executors nor the state folder outlive it.
func (f *controllerFlags) runBound(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(f.state)) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, in) // however it ends
		cancel(errInterrupted)
	}()
	return f.run(ctx, out)
}

func (f *controllerFlags) run(ctx context.Context, out io.Writer) error {
	if !(f.alpha > 0 && f.alpha <= 1) {
		return fmt.Errorf("--alpha %v: give more than 0, up to 1", f.alpha)
	}
	if !(f.drift > 0) {
		return fmt.Errorf("--threshold %v: give a fraction above 0, such as 0.1", f.drift)
	}
	if f.keep < 0 {
		return fmt.Errorf("--keep %d: give 0 or more", f.keep)
	}
	if f.silence < minSilence {
		return fmt.Errorf("--silence %v: executors are heard once a second: give %v or more", f.silence, minSilence)
	}
	if f.giveUp < f.silence {
		return fmt.Errorf("--give-up %v: give --silence, %v, or more", f.giveUp, f.silence)
	}
	if err := policies.Check(f.plan.policy); err != nil {
		return err
	}
	if err := f.plan.checkParts(); err != nil {
		return err
	}
	if err := checkState(f.state); err != nil {
		return err
	}
	switch {
	case f.http == noPage && f.public:
		return errors.New("--metrics-open: with --http off there are no metrics: leave one of the two out")
	case f.http != noPage:
		if err := web.Check(f.http); err != nil {
			return err
		}
	}
	if _, err := f.quota.folder(); err != nil {
		return err
	}
	if err := f.access.check(f.state); err != nil {
		return err
	}
	var budget graph.Bytes
	if f.plan.budget != "" {
		if _, percent, _ := parsePercent(f.plan.budget); percent {
			return fmt.Errorf("--budget %s: a controller's budget is a size, as jobs come later: 8GiB", f.plan.budget)
		}
		var err error
		if budget, err = parseBytes("--budget", f.plan.budget); err != nil {
			return err
		}
		if budget < graph.KiB {
			return fmt.Errorf("--budget %s: %d bytes are enough for no job: give a unit, such as 8GiB", f.plan.budget,
				int64(budget))
		}
	}
	host, err := f.plan.host.limit(f.plan.simulated())
	if err != nil {
		return err
	}
	log := f.log.logger(out).With("device", f.plan.device)
	warn := lines(log, slog.LevelWarn)
	own, err := f.open(budget)
	if err != nil {
		return err
	}
	defer own.close()
	server, err := f.hub(warn)
	if err != nil {
		return err
	}
	defer server.Close()
	external := f.servers.urls != ""
	page := new(page)
	var kept *journal.Journal
	if !external { // else there is a page in each term, and the servers see to what they store
		if kept, err = journal.Open(f.state, warn); err != nil {
			return err
		}
		defer kept.Close()
		if page, err = f.openPage(warn); err != nil {
			return err
		}
		defer page.close()
		path := filepath.Join(f.state, clientFile)
		if err := bus.WriteCredentials(path, server.Credentials(bus.Client)); err != nil {
			return err
		}
		defer os.Remove(path) // nobody answers any more
	}
	var recorder *controller.Recorder
	if f.record != "" {
		file, err := recordTo(f.record)
		if err != nil {
			return err
		}
		defer file.Close()
		recorder = controller.NewRecorder(file, func(err error) { log.Warn(f.record, "err", err) })
	}
	describer := &describer{own: own.device}
	defer describer.close()
	executors := newChildren(server, f.state, &f.plan, f.bound)
	executors.flags = append(executors.flags, "--orphan", f.orphan.String())
	if f.bound {
		defer executors.end(false)
	}
	for _, dir := range f.access.allow {
		executors.flags = append(executors.flags, "--allow", dir)
	}
	if f.access.quota != "" {
		executors.flags = append(executors.flags, "--user-quota", f.access.quota)
	}
	executors.flags = append(executors.flags, f.log.args()...)
	if f.quota.quota != "" {
		executors.flags = append(executors.flags, "--checkpoint-quota", f.quota.quota)
	}
	o := controller.Options{Config: f.plan.controllerConfig(budget), PlanDevice: own.on, Log: log,
		Describe: describer.describe,
		Launcher: controller.Launcher{Launch: executors.launch, Lives: executors.lives, Forgotten: executors.forget},
		Ready: func() {
			log.Info(fmt.Sprintf("controller of %s at %s, state in %s", own.name, server.URL(), f.state))
			page.ready(lines(log, slog.LevelInfo), f.state, f.terminal(out))
			log.Info("latencies before anything was measured: " + own.latencies)
			if f.plan.context > 0 {
				log.Info(fmt.Sprintf("this process and every executor take %s of the device's memory each, by opening "+
					"it; that comes off the budget", f.plan.context))
			}
		}}
	o.HostMemory, o.NoDevice, o.Name = host, own.device == nil, deviceName(f.plan.device)
	o.Credentials = func(executor string) string {
		text, err := json.Marshal(server.Credentials(bus.Executor(executor)))
		if err != nil {
			panic(fmt.Sprintf("tensile: credentials cannot be written as JSON: %v", err))
		}
		return string(text)
	}
	if external && f.executors == "" {
		o.Credentials = nil // a user would be let in as the controller
	}
	o.Config.Lease = leaseName(server)
	o.Trouble, o.Full, o.Record, o.KeepSharing, o.Kill = server.Trouble, server.Full, recorder, f.inForce,
		executors.kill
	if kept != nil {
		o.Trouble = func() string { return cmp.Or(server.Trouble(), kept.Trouble()) }
	}
	o.Last = filepath.Join(f.state, lastName)
	o.Silence, o.GiveUp, o.Preempt = f.silence, f.giveUp, f.preempt
	o.OneExecutor, o.Alpha, o.Threshold, o.Limited, o.KeepJobs = f.share, f.alpha, f.drift, own.limited, f.keep
	if external {
		err = f.control(ctx, server, o, f.terminal(out))
	} else if err = page.mount(ctx, server, f, &o); err == nil {
		err = control(ctx, server, kept, o)
	}
	if !errors.Is(err, errInterrupted) {
		return err
	}
	if external {
		log.Info("the controller ends; executors go on with their plans, and another controller of these servers " +
			"takes over")
		return nil
	}
	if !f.bound {
		log.Info("the controller ends; executors go on with their plans until it is started again on this state folder")
	}
	return nil
}

// ownDevice is the device of a controller's process.
type ownDevice struct {
	device    device.Device // nil: it has none
	on        planner.Device
	name      string
	latencies string // Source of the latencies.
	limited   bool   // its link is
}

func (o *ownDevice) close() {
	if o.device != nil {
		o.device.Close()
	}
}

// open opens the controller's own device, if it is to have one.
func (f *controllerFlags) open(budget graph.Bytes) (o *ownDevice, err error) {
	if f.plan.device == noDevice {
		if budget > 0 {
			return nil, fmt.Errorf("--budget: %w", errNoDevice)
		}
		if f.plan.sharing.open { // on devices that can back a part of an arena
			f.plan.sharing.Sharing = wire.Gates
		}
		return &ownDevice{name: "the devices that executors bring", latencies: "roofline, by what executors say of " +
			"their devices"}, nil
	}
	d, link, err := openDevice(&f.plan)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	f.plan.link = link.flag()
	if err := f.plan.checkSharing(d); err != nil {
		return nil, err
	}
	if f.plan.sharing.open && f.plan.mayGate(d) {
		f.plan.sharing.Sharing = wire.Gates
	}
	f.plan.latency.ours = anyLives(executorsIn(f.state))
	latencies, err := f.plan.findModel(d, false)
	if err != nil {
		return nil, err
	}
	return &ownDevice{d, f.plan.describeDevice(d), d.Name(), latencies, link.rate > 0}, nil
}

// terminal is the terminal at which somebody reads what the controller says; nil: there is none, or what it says is for
// programs.
func (f *controllerFlags) terminal(out io.Writer) io.Writer {
	if f.log.format == jsonLog || !isTerminal(out) {
		return nil
	}
	return out
}

// hub starts the server of this process, or finds those of others.
func (f *controllerFlags) hub(log func(string)) (hub, error) {
	if f.servers.urls != "" {
		return f.openServers()
	}
	return f.serve(log)
}

// serve starts the server at the address that it had before, where executors look for it, unless another was asked for.
func (f *controllerFlags) serve(log func(string)) (*bus.Server, error) {
	path := filepath.Join(f.state, "address")
	o := bus.Options{Dir: f.state, Listen: f.listen, TLS: f.tls, Log: log}
	if before, err := os.ReadFile(path); err == nil && f.listen == anyPort {
		_, port, err := net.SplitHostPort(string(before))
		if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
			return nil, fmt.Errorf("%s holds no address such as 127.0.0.1:4222: remove it, or give --listen", path)
		}
		o.Listen = string(before)
	}
	server, err := bus.Start(o)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(server.URL())
	if err == nil {
		err = os.WriteFile(path, []byte(address.Host), 0o600)
	}
	if err != nil {
		server.Close()
		return nil, err
	}
	return server, nil
}

// control is a controller on a server of this process. What it stores is kept in a journal, too, unless that is nil.
func control(ctx context.Context, server hub, kept *journal.Journal, o controller.Options) error {
	options := bus.ConnOptions{}
	if o.Log != nil {
		options.Log = lines(o.Log, slog.LevelWarn)
	}
	conn, err := server.Connect(ctx, options)
	if err != nil {
		return err
	}
	defer conn.Close()
	if kept == nil {
		return controller.Run(ctx, conn, o)
	}
	followed, err := kept.Follow(ctx, conn, wire.TenantsObject, wire.SettingsObject(o.PlanDevice.Identity))
	if err != nil {
		return fmt.Errorf("compare the journal with the store: %w", err)
	}
	return controller.Run(ctx, followed, o)
}

// control is a controller on external servers, whenever it leads. Its page is there then, at an address that
// controllers of one state folder share.
func (f *controllerFlags) control(ctx context.Context, server hub, o controller.Options, terminal io.Writer) error {
	warn := lines(o.Log, slog.LevelWarn)
	conn, err := server.Connect(ctx, bus.ConnOptions{Log: warn})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := os.MkdirAll(f.state, 0o700); err != nil {
		return err
	}
	if err := bus.MarkFormat(f.state); err != nil {
		return err
	}
	// It stays: another controller may answer.
	if err := bus.WriteCredentials(filepath.Join(f.state, clientFile), server.Credentials(bus.Client)); err != nil {
		return err
	}
	return leader.Run(ctx, conn, leader.Config{ID: rand.Text(), Where: agent.ProcessName(), Lease: rand.Text()}, o.Log,
		func(ctx context.Context, bus wire.Bus, as wire.Leadership) error {
			o.Log.Info(fmt.Sprintf("this controller leads, in term %d", as.Term))
			led := o
			led.Config.Lease = as.Lease
			o.Record = nil // which is of one controller's life: the first
			shown, err := f.openPage(warn)
			if err != nil {
				o.Log.Warn("no page is served", "err", err)
				shown = new(page)
			}
			defer shown.close()
			led.Ready = func() { o.Ready(); shown.ready(lines(o.Log, slog.LevelInfo), f.state, terminal) }
			if err := shown.mount(ctx, server, f, &led); err != nil {
				return err
			}
			for {
				err := controller.Run(ctx, bus, led)
				if ctx.Err() != nil || !errors.Is(err, wire.ErrAway) && !errors.Is(err, context.DeadlineExceeded) {
					return err
				}
				o.Log.Warn("trying again", "err", err) // a stream has no leader at the moment
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
}

// controllerConfig is what a controller plans by.
func (f *planFlags) controllerConfig(budget graph.Bytes) controller.Config {
	return controller.Config{Budget: budget, MemorySharing: f.sharing.Sharing, Context: f.context, Policy: f.policy,
		Options: f.planning(), NoReplan: f.noReplan, NoMoves: f.noMoves}
}

// checkAddress returns the error of a --nats that cannot be that of the controller of these credentials.
func checkAddress(address string, c bus.Credentials) error {
	if c.External {
		return checkServers(address)
	}
	u, err := url.Parse(address)
	secure := strings.HasPrefix(c.URL, "tls://")
	switch {
	case err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.Path != "" ||
		u.RawQuery != "":
		return fmt.Errorf("--nats %q: give an address such as nats://HOST:4222, or tls://HOST:4222 for a controller "+
			"with --tls", address)
	case secure && u.Scheme == "nats":
		return fmt.Errorf("--nats %s: the controller takes encrypted connections alone: give tls://%s", address, u.Host)
	case !secure && u.Scheme == "tls":
		return fmt.Errorf("--nats %s: the controller was started without --tls: give nats://%s", address, u.Host)
	}
	return checkPort(u)
}

// clientFile is the file of credentials of the command line in a state folder, there while a controller runs.
const clientFile = "client.json"
