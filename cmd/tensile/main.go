// Command tensile trains several networks on one device within a memory budget.
//
// It is the only reader of flags and environment, and connects the packages; see its help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tensile/graph/text"
)

func main() { os.Exit(Main()) }

// errInterrupted ends a command that a signal stopped.
var errInterrupted = errors.New("interrupted")

// bySignal is the signal that ends a command: an errInterrupted.
type bySignal syscall.Signal

func (s bySignal) Error() string { return errInterrupted.Error() }
func (s bySignal) Unwrap() error { return errInterrupted }

// signalOf is the signal that has ended ctx; SIGINT, if it was none.
func signalOf(ctx context.Context) syscall.Signal {
	s, ok := errors.AsType[bySignal](context.Cause(ctx))
	if !ok {
		return syscall.SIGINT
	}
	return syscall.Signal(s)
}

// interruptStatus is the exit status after a signal.
const interruptStatus = 130

// exitError ends a command with an exit status of its own.
type exitError struct {
	error
	status int
}

func (e *exitError) Unwrap() error { return e.error }

// errQuiet ends a command that went on until it was interrupted, as it was meant to be: there is nothing to say.
var errQuiet = &exitError{errors.New(""), interruptStatus}

// doubled is how long a second signal counts as the first: timeout(1), for one, signals a process and then its group.
const doubled = time.Second / 2

// Main runs the command line and returns the exit status.
func Main() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		got := <-signals
		cancel(bySignal(got.(syscall.Signal)))
		time.Sleep(doubled)
		signal.Stop(signals) // a second signal ends the process at once
	}()
	stdout := &output{file: os.Stdout}
	root := root()
	root.SetOut(stdout)
	if c, err := root.ExecuteContextC(ctx); err != nil {
		if line := text.Line(err.Error(), maxError); line != "" {
			fmt.Fprintln(os.Stderr, "tensile:", line)
			stdout.failed(c, line)
		}
		if own, ok := errors.AsType[*exitError](err); ok {
			return own.status
		}
		if errors.Is(err, errInterrupted) {
			return interruptStatus
		}
		return 1
	}
	return 0
}

// maxError is the limit of an error's line in bytes.
const maxError = 1000

func root() *cobra.Command {
	c := group("tensile", "Train more networks than fit on a GPU by planning what stays, what is swapped and what is "+
		"recomputed")
	c.Long = `tensile trains several networks on one device within a memory budget. For each tensor it plans whether
to keep it on the device, swap it to host memory or recompute it. It proves the plan and overlaps its
copies with compute. Losses and weights are bit-identical to those without a plan.`
	c.SilenceUsage, c.SilenceErrors = true, true
	c.Version = versionText()
	c.SetVersionTemplate("tensile {{.Version}}\n")
	c.SetHelpCommand(helpCommand())
	c.SetFlagErrorFunc(flagError)
	c.SetHelpFunc(help)
	c.PersistentFlags().Bool("all", false, "with --help: explain all flags")
	c.PersistentFlags().MarkHidden("all")
	c.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("all") && c.Name() != "help" {
			return fmt.Errorf("--all goes with --help; see %s --help", c.CommandPath())
		}
		return nil
	}
	c.AddCommand(runCommand(), planCommand(), submitCommand(), jobsCommand(), devicesCommand(), topCommand(),
		joinCommand(), poolCommand(), predictorCommand(), simulateCommand(), benchCommand(), executorCommand(),
		executorsCommand(), debugCommand(), leaseCommand())
	addVerbs(c)
	foldFlags(c)
	return c
}

// addVerbs adds the commands that do something to a job, a device, a controller and so on, below these. Each had its
// name to itself once, which goes on being a command.
func addVerbs(root *cobra.Command) {
	type maker = func() *cobra.Command
	for _, noun := range []struct {
		command *cobra.Command
		verbs   []maker
	}{
		{group("job", "Stop, park, resume, wait for, trace or explain jobs, or print their logs"),
			[]maker{stopCommand, parkCommand, resumeCommand, waitCommand, logsCommand, priorityCommand, traceCommand,
				explainCommand}},
		{group("device", "Drain, calibrate or budget a device, or forget an executor on it"),
			[]maker{drainCommand, budgetCommand, forgetCommand, calibrateCommand}},
		{tenantsCommand(), []maker{tenantCommand}},
		{modelsCommand(), []maker{graphCommand, onnxCommand}},
		{controllerCommand(), []maker{pageCommand, credentialsCommand}},
	} {
		root.AddCommand(noun.command)
		for _, verb := range noun.verbs {
			noun.command.AddCommand(verb())
			alone := verb()
			if alone.Name() == "set" { // the share of a tenant
				alone.Use = strings.Replace(alone.Use, "set", "tenant", 1)
			}
			alone.Hidden = true
			root.AddCommand(alone)
		}
	}
}

// group returns a command that does nothing by itself.
func group(use, short string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(c, args)
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
}
