package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tensile/models/task"
)

// helpCommand prints the help of a command, or fails if there is none.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []cobra.Completion,
			_ cobra.ShellCompDirective) {
			if of, _, err := c.Root().Find(args); err == nil {
				for _, sub := range of.Commands() {
					names = append(names, sub.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(of, rest)
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// unknownCommand is the error for words that name no command below c.
func unknownCommand(c *cobra.Command, words []string) error {
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(words[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q: is %s meant? %s --help lists all", words[0], strings.Join(near, " or "),
			c.CommandPath())
	}
	return fmt.Errorf("unknown command %q: %s --help lists all", words[0], c.CommandPath())
}

// screenLines and screenColumns are what the help of a command fits without --all.
const screenLines, screenColumns = 24, 100

// mostFirst is how many flags such a help explains.
const mostFirst = 10

// firstFlags are the flags that matter first, of commands with more than fit.
var firstFlags = map[string][]string{
	"run": {"budget", "batch", "image", "iterations", "compare", "device", "data", "save", "checkpoint",
		"max-overhead"},
	"plan":       {"budget", "batch", "image", "device", "policy", "explain", "frontier", "svg", "job", "json"},
	"submit":     {"batch", "image", "iterations", "priority", "name", "data", "save", "checkpoint", "wait", "state"},
	"controller": {"budget", "device", "state", "listen", "http", "preempt"},
	"executor":   {"nats", "credentials", "device", "budget", "name", "checkpoints", "quotas", "allow"},
}

// flagGroups are the groups in which --help --all lists flags.
var flagGroups = []struct {
	title string
	flags []string
}{
	{"Networks and data", []string{"batch", "image", "with", "passes", "data", "weights", "replicas"}},
	{"Memory", []string{"budget", "memory", "max-overhead", "memory-sharing", "host-memory", "max-swap-rate", "quotas",
		"allow"}},
	{"Devices and latencies", []string{"device", "predictor", "processes"}},
	{"Plans", []string{"policy", "priority", "ablate", "learning", "preempt", "frontier", "job", "script"}},
	{"Training", []string{"iterations", "checkpoint", "from", "save", "restart", "compare", "anyway", "name"}},
	{"Connections", []string{"state", "credentials", "nats", "listen", "http", "timeouts", "orphan"}},
}

// help prints what a command does and its flags: all of it if that was asked for or fits a screen, else the flags that
// matter first.
func help(c *cobra.Command, _ []string) {
	text := wholeHelp(c)
	if all, _ := c.Flags().GetBool("all"); !all && !fitsScreen(text) {
		text = firstHelp(c)
	}
	fmt.Fprint(c.OutOrStdout(), text)
}

func fitsScreen(text string) bool {
	lines := strings.SplitAfter(text, "\n")
	return len(lines) <= screenLines+1 && !slices.ContainsFunc(lines, func(l string) bool {
		return len(l) > screenColumns+1
	})
}

// wholeHelp has the flags of a command in groups, each list with its parts.
func wholeHelp(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", cmp.Or(c.Long, c.Short))
	fmt.Fprint(&b, "\nUsage:\n")
	if c.Runnable() {
		fmt.Fprintf(&b, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", c.CommandPath())
	}
	writeExamples(&b, c)
	writeCommands(&b, c, func(*cobra.Command) bool { return true })
	for _, group := range groupsOf(c) {
		fmt.Fprintf(&b, "\n%s:\n%s", group.title, group.flags.FlagUsagesWrapped(screenColumns))
	}
	return b.String()
}

func writeExamples(b *strings.Builder, c *cobra.Command) {
	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n%s\n", c.Example)
	}
}

func writeCommands(b *strings.Builder, c *cobra.Command, shown func(*cobra.Command) bool) {
	if !c.HasAvailableSubCommands() {
		return
	}
	fmt.Fprint(b, "\nCommands:\n")
	for _, below := range c.Commands() {
		if (below.IsAvailableCommand() || below.Name() == "help") && shown(below) {
			fmt.Fprintf(b, "  %-*s %s\n", below.NamePadding(), below.Name(),
				firstWords(below.Short, screenColumns-below.NamePadding()-len("   ")))
		}
	}
}

type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// groupsOf are the flags of a command in groups. Few need none.
func groupsOf(c *cobra.Command) (groups []flagGroup) {
	title := make(map[string]string)
	for _, g := range flagGroups {
		for _, name := range g.flags {
			title[name] = g.title
		}
		groups = append(groups, flagGroup{g.title, pflag.NewFlagSet("", pflag.ContinueOnError)})
	}
	all := visibleFlags(c)
	groups = append(groups, flagGroup{"Output and others", pflag.NewFlagSet("", pflag.ContinueOnError)})
	if len(all) <= mostFirst {
		title, groups[len(groups)-1].title = nil, "Flags"
	}
	for _, f := range all {
		shown := *f
		if v, ok := f.Value.(*folded); ok {
			shown.Usage, shown.DefValue = withDefault(f)+v.help(), ""
		}
		at := slices.IndexFunc(groups[:len(groups)-1], func(g flagGroup) bool { return g.title == title[f.Name] })
		if at < 0 {
			at = len(groups) - 1
		}
		groups[at].flags.AddFlag(&shown)
	}
	return slices.DeleteFunc(groups, func(g flagGroup) bool { return !g.flags.HasFlags() })
}

// help says what the parts of a list are.
func (v *folded) help() string {
	var b strings.Builder
	for i, form := range v.forms() {
		fmt.Fprintf(&b, "\n- %s: %s", form, withDefault(v.parts[v.keys[i]]))
	}
	return b.String()
}

// withDefault is the usage text of a flag with its default, if it has one that says something.
func withDefault(f *pflag.Flag) string {
	if slices.Contains([]string{"", "0", "false"}, f.DefValue) {
		return f.Usage
	}
	return fmt.Sprintf("%s (default %s)", f.Usage, f.DefValue)
}

// visibleFlags are the flags that the help of a command explains.
func visibleFlags(c *cobra.Command) (all []*pflag.Flag) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all = append(all, f)
		}
	})
	return all
}

// firstHelp is the short form of what a command does, with the flags that matter first.
func firstHelp(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.Short)
	if c.HasParent() {
		fmt.Fprintf(&b, "\nUsage:\n  %s\n", c.UseLine())
	}
	writeExamples(&b, c)
	writeCommands(&b, c, func(below *cobra.Command) bool {
		return below.Name() != "help" && below.Name() != "completion"
	})
	first := firstFlags[c.Name()]
	var shown []*pflag.Flag
	width := 0
	for _, f := range visibleFlags(c) {
		if first == nil && len(shown) < mostFirst && f.Name != "help" && f.Name != "version" ||
			slices.Contains(first, f.Name) {
			shown = append(shown, f)
			width = max(width, len(f.Name))
		}
	}
	slices.SortStableFunc(shown, func(a, b *pflag.Flag) int {
		return cmp.Compare(slices.Index(first, a.Name), slices.Index(first, b.Name))
	})
	if len(shown) > 0 {
		fmt.Fprint(&b, "\nFlags:\n")
	}
	for _, f := range shown {
		fmt.Fprintf(&b, "  --%-*s  %s\n", width, f.Name, firstWords(f.Usage, screenColumns-width-6))
	}
	fmt.Fprintf(&b, "\n%s --help --all explains all.\n", c.CommandPath())
	return b.String()
}

// firstWords are the words of a usage text before its first details, or as many as fit.
func firstWords(usage string, width int) string {
	for _, end := range []string{"; ", " (default", ": "} {
		if before, _, _ := strings.Cut(usage, end); strings.Contains(before, " ") {
			usage = before
		}
	}
	if len(usage) <= width {
		return usage
	}
	return usage[:strings.LastIndexByte(usage[:width-len("...")], ' ')] + " ..."
}

// complete has a shell complete a flag with these values.
func complete(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values,
		cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(fmt.Sprintf("cmd/tensile: %v", err)) // there is no such flag
	}
}

// flagError says what is wrong with a flag and where to read on.
func flagError(c *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	for ok {
		inner, part := errors.AsType[*pflag.InvalidValueError](errors.Unwrap(invalid))
		if !part {
			break
		}
		invalid, err = inner, inner
	}
	if script := slices.IndexFunc(c.Flags().Args(), task.IsScript); !ok && script >= 0 {
		return fmt.Errorf("%w; what %s itself takes goes after --; see %s --help", err, c.Flags().Args()[script],
			c.CommandPath())
	} else if !ok {
		return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
	}
	want := map[string]string{
		"int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0 on",
		"float64": "a number such as 0.1", "duration": "a time such as 10s or 2m", "bool": "true or false",
	}[invalid.GetFlag().Value.Type()]
	switch {
	case errors.Is(err, strconv.ErrRange):
		want = "a smaller number"
	case want == "":
		return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
	}
	return fmt.Errorf("--%s %q: give %s; see %s --help", invalid.GetFlag().Name, invalid.GetValue(), want,
		c.CommandPath())
}
