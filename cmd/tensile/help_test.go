package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// eachCommand visits a command and all below it.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, below := range c.Commands() {
		eachCommand(below, visit)
	}
}

// The help of each command fits a screen, has ten flags at the most, and few commands have many flags in all.
func TestHelpFits(t *testing.T) {
	most := map[string]int{"tensile run": 25, "tensile plan": 22, "tensile controller": 25}
	for name := range firstFlags {
		if c, _, err := root().Find([]string{name}); err != nil || c.Name() != name {
			t.Errorf("flags of %q matter first: %v", name, err)
		}
	}
	eachCommand(root(), func(c *cobra.Command) {
		c.InitDefaultHelpFlag()
		var out strings.Builder
		c.SetOut(&out)
		help(c, nil)
		if !fitsScreen(out.String()) {
			t.Errorf("%s --help has %d lines:\n%s", c.CommandPath(), strings.Count(out.String(), "\n"), out.String())
		}
		for _, name := range firstFlags[c.Name()] {
			if f := c.Flags().Lookup(name); c.Parent() == c.Root() && (f == nil || f.Hidden) {
				t.Errorf("%s has no flag --%s, which matters first", c.CommandPath(), name)
			}
		}
		n := len(visibleFlags(c)) - 1 // but for --help
		if limit, limited := most[c.CommandPath()]; limited && n > limit {
			t.Errorf("%s has %d flags, more than %d", c.CommandPath(), n, limit)
		}
	})
}

// sampleOf is a value that a flag takes and does not have.
func sampleOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64", "uint64":
		return "3"
	case "float64":
		return "0.5"
	case "duration":
		return "1m0s"
	case "bool":
		return "true"
	}
	switch f.Name {
	case "log-level":
		return "warn"
	case "log-format":
		return "json"
	}
	return "x"
}

// Each part of a list can be given as a part and, as ever, by its own flag, in every command that has it.
func TestLists(t *testing.T) {
	lists := make(map[string]bool)
	parts := 0
	var paths [][2]string // the command and the flag
	eachCommand(root(), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, ok := f.Value.(*folded); ok {
				paths = append(paths, [2]string{c.CommandPath(), f.Name})
				lists[f.Name] = true
			}
		})
	})
	find := func(path string) *cobra.Command {
		c, _, err := root().Find(strings.Fields(path)[1:])
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, at := range paths {
		for _, key := range find(at[0]).Flags().Lookup(at[1]).Value.(*folded).keys {
			listed, alone := find(at[0]), find(at[0])
			part := listed.Flags().Lookup(at[1]).Value.(*folded).parts[key]
			sample := sampleOf(part)
			item := key + "=" + sample
			if part.NoOptDefVal != "" {
				item = key
			}
			if err := listed.ParseFlags([]string{"--" + at[1], item}); err != nil {
				t.Errorf("%s --%s %s: %v", at[0], at[1], item, err)
			}
			if err := alone.ParseFlags([]string{"--" + part.Name + "=" + sample}); err != nil {
				t.Errorf("%s --%s=%s: %v", at[0], part.Name, sample, err)
			}
			got, want := part.Value.String(), alone.Flags().Lookup(part.Name).Value.String()
			if got != want || got != sample || !part.Changed {
				t.Errorf("%s --%s %s sets %q, --%s %q", at[0], at[1], item, got, part.Name, want)
			}
			parts++
		}
	}
	for _, f := range folds {
		if !lists[f.flag] {
			t.Errorf("no command has --%s", f.flag)
		}
	}
	if parts < 50 {
		t.Errorf("%d parts of lists were seen", parts)
	}
}

// A list keeps the flag's own value, says which parts there are, and where the value of one is wrong names that.
func TestListsOwn(t *testing.T) {
	c, _, err := root().Find([]string{"plan"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ParseFlags([]string{"--policy", "tensile,work=7,none-live", "--job", "a"}); err != nil {
		t.Fatal(err)
	}
	if p, w := c.Flags().Lookup("policy").Value.String(), c.Flags().Lookup("planning-work").Value.String(); p !=
		"tensile,none-live" || w != "7" {
		t.Errorf("policy %s, work %s", p, w)
	}
	away, _, err := root().Find([]string{"controller"})
	if err != nil {
		t.Fatal(err)
	}
	const urls = "nats://a:4222,nats://u:p=w@b:4222"
	err = away.ParseFlags([]string{"--nats", urls})
	if got := away.Flags().Lookup("nats").Value.String(); err != nil || got != urls {
		t.Errorf("URLs %s, error %v", got, err)
	}
	for _, test := range []struct{ flag, value, want string }{
		{"with", "size=3", `there is no "size": give a list of batch=INT, image=INT`},
		{"policy", "tensile,works=3", `there is no "works": give a list of work=INT`},
		{"with", "lr", "give lr=FLOAT64"},
		{"with", "lr=fast", `--lr "fast": give a number such as 0.1`},
		{"ablate", "everything", `there is no "everything": give a list of reorder, free-swaps`},
	} {
		err := c.ParseFlags([]string{"--" + test.flag, test.value})
		if err == nil || !strings.Contains(flagError(c, err).Error(), test.want) {
			t.Errorf("--%s %s: %v", test.flag, test.value, flagError(c, err))
		}
	}
}

// Every command line in README and docs names a command and flags that there are.
func TestCommandsInDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile("(?m)^ {4}(?:\\$ )?(?:bin/)?tensile ([^|>&#\n]*)|`tensile ([^`|>&#\n]*)`")
	seen := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", " "), -1) {
			words := strings.Fields(m[1] + m[2])
			if len(words) == 0 || words[0] == "checkpoint" { // with which a file begins
				continue
			}
			c, rest, err := root().Find(words)
			if err == nil && c == c.Root() && !strings.HasPrefix(words[0], "-") {
				err = fmt.Errorf("there is no command %s", words[0])
			}
			if err == nil {
				c.InitDefaultHelpFlag()
				err = c.ParseFlags(rest)
			}
			if err != nil && !errors.Is(err, pflag.ErrHelp) {
				t.Errorf("%s: tensile %s: %v", filepath.Base(page), strings.Join(words, " "), err)
			}
			seen++
		}
	}
	if seen < 100 {
		t.Errorf("only %d command lines were found", seen)
	}
}
