package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"tensile/executor/sidecar"
	"tensile/graph/text"
)

// joinReport is what --report writes of a command: the summary of the first of its processes that joined, and those of
// the others.
type joinReport struct {
	Schema int `json:"schema"` // 1: the fields below; another number is for one that has another meaning
	sidecar.Summary
	Others []sidecar.Summary `json:"others,omitempty"`
}

// add adds the summary of the next process.
func (r *joinReport) add(s sidecar.Summary) {
	if r.Schema == 0 {
		r.Schema, r.Summary = 1, s
	} else {
		r.Others = append(r.Others, s)
	}
}

// exit is what the end of the command, by its first word, is for ours.
func (r *joinReport) exit(command string, status error) error {
	unmet := func(s sidecar.Summary) bool { return s.Unmet != "" }
	if status == nil && (unmet(r.Summary) || slices.ContainsFunc(r.Others, unmet)) {
		return &exitError{errors.New(""), unmetStatus}
	}
	return exitOf(command, status)
}

// write writes the report into a file, if one is named.
func (r *joinReport) write(path string) error {
	if path == "" {
		return nil
	}
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(body, '\n'), 0o644)
}

// summaryLines tell people what became of a process.
func summaryLines(s sidecar.Summary, joined bool) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case !joined:
		say("the command has not joined: no optimizer of PyTorch 2 has made a step in it (python -I and -S hide " +
			"Tensile; with PyTorch 1 the script has to say tensile.join(model, optimizer))")
		return lines
	case s.Planned == 0 && s.Unplanned == 0: // none was measured
		say("%d iterations, none by a plan", s.Iterations)
	case s.Planned == 0:
		say("%d iterations, none by a plan, touched %s", s.Iterations, s.Unplanned)
	case s.Touched == 0:
		say("%d iterations, %d by a plan of %s; what they touched was not measured yet", s.Iterations, s.Planned,
			s.Plan)
	case s.Unplanned == 0:
		say("%d iterations, %d by a plan: touched %s of %s planned and %s reserve", s.Iterations, s.Planned, s.Touched,
			s.Plan, s.Reserve)
	default:
		say("%d iterations, %d by a plan: touched %s of %s planned and %s reserve; %s without a plan", s.Iterations,
			s.Planned, s.Touched, s.Plan, s.Reserve, s.Unplanned)
	}
	if part, ok := savedBy(s); ok && part > 0 {
		say("an iteration needs %s: the plan saves %s", s.Need, text.Percent(part))
	}
	if s.Why != "" && s.Planned < s.Iterations {
		say("the first iteration without a plan, after the recorded ones: %s", s.Why)
	}
	if s.Over > 0 {
		say("iterations that had more than the limit of %s: %d", s.Limit, s.Over)
	}
	return lines
}

// savedBy is the part of what an iteration needs that the plan has saved; where the iterations by it were too few to be
// measured, that is what it was made for.
func savedBy(s sidecar.Summary) (part float64, ok bool) {
	if s.Planned == 0 || s.Need == 0 {
		return 0, false
	}
	return max(0, 1-float64(cmp.Or(s.Touched, s.Plan))/float64(s.Need)), true
}
