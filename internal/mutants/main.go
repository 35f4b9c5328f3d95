package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// targets are the files that are changed, and the tests that must notice.
var targets = []struct {
	file  string
	tests []string // arguments of go test
}{
	{"plan/proof/validate.go", []string{"./plan", "./plan/proof"}},
	{"plan/residency.go", []string{"./plan", "./plan/proof", "./plan/compile"}},
	{"plan/proof/check.go", []string{"./plan/proof"}},
	{"plan/proof/check_form.go", []string{"./plan/proof"}},
	{"plan/proof/check_order.go", []string{"./plan/proof"}},
	{"plan/proof/check_use.go", []string{"./plan/proof"}},
	{"plan/proof/check_bytes.go", []string{"./plan/proof"}},
	{"plan/proof/check_groups.go", []string{"./plan/proof", "-run",
		"Groups|Divide|Pages|Mutations/(page|group|Base|cut|commands)"}},
	{"plan/compile/contents.go", []string{"./plan/compile", "-run", "Contents"}},
	{"plan/program/pages.go", []string{"./plan/program", "./plan/proof", "-run", "Groups|Divide|Pages"}},
	{"plan/program/lanes.go", []string{"./plan/program", "./plan/proof", "./plan/compile", "./device/sim"}},
	{"plan/program/host.go", []string{"./plan/program", "./plan/proof"}},
	{"plan/proof/prove.go", []string{"./plan/proof", "./plan/compile"}},
	{"plan/compile/fold.go", []string{"./plan/compile", "./plan/proof"}},
	{"plan/program/time.go", []string{"./plan/program", "./plan/compile"}},
	{"peak/peak.go", []string{"./peak"}},
	{"controller/grant.go", []string{"./controller"}},
	{"swapexec/account.go", []string{"./swapexec"}},
	{"scheduler/draft/bounds.go", []string{"./scheduler/draft", "-run", "ZeroStall|WorkingSet|Limits"}},
	{"scheduler/draft/bounds_time.go", []string{"./scheduler/draft", "-run", "Limits"}},
}

//go:embed survivors.txt
var survivors string

// readSurvivors reads the list of survivors: a name per line, and below it, indented, the reason.
func readSurvivors(text string) (map[string]string, error) {
	reasons := make(map[string]string)
	name := ""
	for line := range strings.Lines(text) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			reasons[name] += strings.TrimSpace(line) + " "
		default:
			name = line
			if _, twice := reasons[name]; twice {
				return nil, fmt.Errorf("%s is listed twice", name)
			}
			reasons[name] = ""
		}
	}
	for name, reason := range reasons {
		if reason == "" {
			return nil, fmt.Errorf("%s is listed without a reason", name)
		}
	}
	return reasons, nil
}

func main() {
	jobs := flag.Int("j", runtime.NumCPU(), "changes tried at a time")
	timeout := flag.Duration("timeout", 10*time.Minute, "of the tests of one change")
	flag.Parse()
	reasons, err := readSurvivors(survivors)
	if err == nil {
		err = run(*jobs, *timeout, flag.Args(), reasons)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tries every change of the files that match and fails if one goes unnoticed that is not known to.
func run(jobs int, timeout time.Duration, wanted []string, reasons map[string]string) error {
	type task struct {
		edit
		text  string
		tests []string
	}
	var tasks []task
	for _, target := range targets {
		if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(w string) bool {
			return strings.Contains(target.file, w)
		}) {
			continue
		}
		text, err := os.ReadFile(filepath.FromSlash(target.file))
		if err != nil {
			return err
		}
		edits, err := editsOf(target.file, string(text))
		if err != nil {
			return err
		}
		for _, e := range edits {
			tasks = append(tasks, task{e, string(text), target.tests})
		}
	}
	results := make([]outcome, len(tasks))
	limit := make(chan struct{}, max(jobs, 1))
	var wait sync.WaitGroup
	for i, t := range tasks {
		wait.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			results[i] = try(t.edit, t.text, t.tests, timeout)
			if results[i] == unnoticed {
				fmt.Printf("unnoticed: %s\n", t.edit)
			}
		})
	}
	wait.Wait()
	count := make(map[outcome]int)
	seen := make(map[string]bool)
	fresh, stale := 0, 0
	for i, t := range tasks {
		count[results[i]]++
		name := t.edit.String()
		seen[name] = true
		switch _, listed := reasons[name]; {
		case results[i] == failed:
			fmt.Printf("could not be tried: %s\n", name)
		case results[i] == unnoticed && !listed:
			fmt.Printf("NEW: %s\n", name)
			fresh++
		case results[i] != unnoticed && listed:
			fmt.Printf("STALE, it is noticed: %s\n", name)
			stale++
		}
	}
	for name := range reasons {
		if len(wanted) == 0 && !seen[name] {
			fmt.Printf("STALE, there is no such change: %s\n", name)
			stale++
		}
	}
	fmt.Printf("%d changes: %d noticed, %d unnoticed (%d of them not listed), %d do not compile\n",
		len(tasks)-count[uncompiled], count[noticed], count[unnoticed], fresh, count[uncompiled])
	if fresh+stale+count[failed] > 0 {
		return fmt.Errorf("%d new survivors, %d stale ones listed, %d changes not tried", fresh, stale, count[failed])
	}
	return nil
}

// outcome is what became of a change.
type outcome int

const (
	failed outcome = iota
	noticed
	unnoticed
	uncompiled
)

// try runs tests on a change, the short ones first.
func try(e edit, text string, tests []string, timeout time.Duration) outcome {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return failed
	}
	defer os.RemoveAll(dir)
	original, err := filepath.Abs(filepath.FromSlash(e.file))
	if err != nil {
		return failed
	}
	changed := filepath.Join(dir, "changed.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil || os.WriteFile(changed, []byte(e.apply(text)), 0o666) != nil ||
		os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o666) != nil {
		return failed
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for _, short := range []string{"-short=true", "-short=false"} {
		args := append([]string{"test", "-vet=off", "-failfast", "-timeout=" + timeout.String(), "-overlay",
			filepath.Join(dir, "overlay.json"), short}, tests...)
		out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
		switch {
		case bytes.Contains(out, []byte("[build failed]")):
			return uncompiled
		case err != nil:
			return noticed
		}
	}
	return unnoticed
}
