package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tensile/executor/sidecar"
	"tensile/graph/text"
)

// observation is what python/tensile/observe.py has seen of a run.
type observation struct {
	Losses     []*string `json:"losses"`
	Steps      []int64   `json:"steps_ns"` // When each step of an optimizer ended.
	Optimizers []struct {
		Name    string            `json:"optimizer"`
		Steps   int               `json:"steps"`
		Tensors map[string]string `json:"tensors"` // SHA-256 of the bytes, by name.
		Unread  []string          `json:"unread"`  // Names of those whose bytes could not be read.
	} `json:"optimizers"`
}

// observeVariable names the variable in which a script finds the file for its observation.
const observeVariable = "TENSILE_OBSERVE"

// compare trains the script twice, each time in a process of its own: as it is, and by plans on these terms. Both are
// to have the same losses, parameters and optimizer state. Of the second run a report is written into a file, if it has
// a name.
func (s *pythonScript) compare(ctx context.Context, t sidecar.Terms, report string, out, stderr io.Writer) error {
	dir, err := os.MkdirTemp("", "tensile-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(stderr, "tensile: run 1 of 2: %s without a plan\n", s.path)
	plain, err := s.observeAlone(ctx, filepath.Join(dir, "plain"))
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "tensile: run 2 of 2: %s by plans\n", s.path)
	file := filepath.Join(dir, "planned")
	command := scriptCommand{args: s.words(), env: []string{observeVariable + "=" + file}}
	r, status, err := serveCommand(ctx, command, t, stderr)
	if err == nil {
		err = context.Cause(ctx) // it has not trained to its end, which may be no failure
	}
	if err != nil {
		return err
	}
	if err := r.write(report); err != nil {
		return err
	}
	if err := r.exit(s.path, status); err != nil {
		return err
	}
	planned, err := s.observation(file)
	if err != nil {
		return err
	}
	if len(r.processes) == 0 {
		r.add(s.name(), 0, sidecar.Summary{})
	}
	if err := r.table(out, slower(plain, planned)); err != nil {
		return err
	}
	differ := plain.differs(planned)
	switch {
	case differ == "" && r.Planned == 0:
		_, err := fmt.Fprintf(out, "no iteration had a plan: %s have the same bits in two runs without one\n", plain)
		return err
	case differ == "":
		_, err := fmt.Fprintf(out, "identical: %s have the same bits with the plan and without\n", plain)
		return err
	}
	fmt.Fprintf(stderr, "tensile: %s differs: %s; once more without a plan, to see whether it repeats itself\n", s.path,
		differ)
	again, err := s.observeAlone(ctx, filepath.Join(dir, "again"))
	if err != nil {
		return err
	}
	if itself := plain.differs(again); itself != "" {
		return fmt.Errorf("%s does not repeat itself without a plan either: %s; set its seeds, and what else differs "+
			"from run to run, to compare it", s.path, itself)
	}
	return fmt.Errorf("%s has other bits by plans: %s; please report this with the script", s.path, differ)
}

// observeAlone trains the script as it is.
func (s *pythonScript) observeAlone(ctx context.Context, file string) (*observation, error) {
	process, ended, err := scriptCommand{args: s.words(), env: []string{observeVariable + "=" + file}}.start(func() {})
	if err != nil {
		return nil, s.refuse("%v", err)
	}
	ending := context.AfterFunc(ctx, func() { _ = process.Signal(syscall.SIGTERM) }) // it may have ended
	defer ending()
	status := <-ended
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := exitOf(s.path, status); err != nil {
		return nil, err
	}
	return s.observation(file)
}

// observation reads what was seen of a run.
func (s *pythonScript) observation(file string) (*observation, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: nothing was seen of its training: it has not imported torch, or has ended without "+
			"Python's own end", s.path)
	}
	var o observation
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("%s: what was seen of its training: %w", s.path, err)
	}
	if len(o.Optimizers) == 0 {
		return nil, fmt.Errorf("%s: no optimizer has made a step in it, so that there is nothing to compare", s.path)
	}
	return &o, nil
}

// String says what was seen.
func (o *observation) String() string {
	tensors, unread := 0, []string(nil)
	for _, opt := range o.Optimizers {
		tensors += len(opt.Tensors)
		unread = append(unread, opt.Unread...)
	}
	what := fmt.Sprintf("%d losses and %d parameters and tensors of optimizer state", len(o.Losses), tensors)
	if len(unread) > 0 {
		what += fmt.Sprintf(" (beside %d that could not be read, such as %s)", len(unread), unread[0])
	}
	return what
}

// differs says what of two runs differs first; "": nothing.
func (o *observation) differs(p *observation) string {
	same := func(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
	for i := range min(len(o.Losses), len(p.Losses)) {
		if !same(o.Losses[i], p.Losses[i]) {
			a, b := lossText(o.Losses[i], 9), lossText(p.Losses[i], 9)
			if a == b {
				a, b = lossText(o.Losses[i], -1), lossText(p.Losses[i], -1)
			}
			return fmt.Sprintf("loss %d of %d is %s and %s", i+1, len(o.Losses), a, b)
		}
	}
	if len(o.Losses) != len(p.Losses) {
		return fmt.Sprintf("there are %d and %d losses", len(o.Losses), len(p.Losses))
	}
	if len(o.Optimizers) != len(p.Optimizers) {
		return fmt.Sprintf("%d and %d optimizers have made steps", len(o.Optimizers), len(p.Optimizers))
	}
	for i, a := range o.Optimizers {
		b := p.Optimizers[i]
		if a.Name != b.Name || a.Steps != b.Steps {
			return fmt.Sprintf("optimizer %d is %s with %d steps, and %s with %d", i+1, a.Name, a.Steps, b.Name,
				b.Steps)
		}
		if maps.Equal(a.Tensors, b.Tensors) {
			continue
		}
		var names []string
		for _, tensors := range []map[string]string{a.Tensors, b.Tensors} {
			for name := range tensors {
				if a.Tensors[name] != b.Tensors[name] && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		return fmt.Sprintf("at the end %d of %d parameters and tensors of optimizer state have other bytes, such as "+
			"%s of %s", len(names), len(a.Tensors), names[0], a.Name)
	}
	return ""
}

// lossText is a loss for people, with this number of digits; -1: all.
func lossText(hex *string, digits int) string {
	if hex == nil {
		return "several numbers"
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(*hex), 64)
	if err != nil {
		return *hex
	}
	return strconv.FormatFloat(v, 'g', digits, 64)
}

// slower compares the medians of the times from step to step in the second halves of both runs, in which plans are in
// force where there are any.
func slower(plain, planned *observation) string {
	a, b := plain.median(), planned.median()
	if a <= 0 || b <= 0 {
		return "-"
	}
	return text.Percent(b.Seconds()/a.Seconds() - 1)
}

func (o *observation) median() time.Duration {
	var steps []int64
	for i := len(o.Steps)/2 + 1; i < len(o.Steps); i++ {
		steps = append(steps, o.Steps[i]-o.Steps[i-1])
	}
	if len(steps) == 0 {
		return 0
	}
	slices.Sort(steps)
	return time.Duration(steps[len(steps)/2])
}
