package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// ablation marks the flags that only those need who measure the planner's parts.
const ablation = "ablation"

// ablations marks flags of a command; its help lists them apart.
func ablations(c *cobra.Command, names ...string) {
	for _, name := range names {
		f := c.Flags().Lookup(name)
		f.Hidden = true
		f.Annotations = map[string][]string{ablation: nil}
	}
}

// usage prints the usage of a command, and below it its ablations.
func usage(c *cobra.Command, rest func(*cobra.Command) error) error {
	if err := rest(c); err != nil {
		return err
	}
	apart := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Annotations[ablation]; ok {
			shown := *f
			shown.Hidden = false
			apart.AddFlag(&shown)
		}
	})
	if !apart.HasFlags() {
		return nil
	}
	_, err := fmt.Fprintf(c.OutOrStderr(), "\nAblations, for measurements:\n%s", apart.FlagUsages())
	return err
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
	if script := slices.IndexFunc(c.Flags().Args(), isScript); !ok && script >= 0 {
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
