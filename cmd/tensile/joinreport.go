package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"tensile/executor/sidecar"
	"tensile/graph"
	"tensile/graph/text"
)

// joinReport is what --report writes of a command: the summary of the first of its processes that joined, by their
// numbers, and those of the others.
type joinReport struct {
	Schema int `json:"schema"` // 1: the fields below; another number is for one that has another meaning
	processReport
	Others []processReport `json:"others,omitempty"`

	processes []processReport // all of them, by their numbers
}

// processReport is of one process.
type processReport struct {
	Name string `json:"name,omitempty"`
	sidecar.Summary
	number int
}

// add adds the summary of a process that has joined.
func (r *joinReport) add(name string, number int, s sidecar.Summary) {
	r.processes = append(r.processes, processReport{name, s, number})
	slices.SortFunc(r.processes, func(a, b processReport) int { return cmp.Compare(a.number, b.number) })
	r.processReport, r.Others = r.processes[0], r.processes[1:]
}

// exit is what the end of the command, by its first word, is for ours.
func (r *joinReport) exit(command string, status error) error {
	unmet := func(p processReport) bool { return p.Unmet != "" }
	if status == nil && slices.ContainsFunc(r.processes, unmet) {
		return &exitError{errors.New(""), unmetStatus}
	}
	return exitOf(command, status)
}

// write writes the report into a file, if one is named.
func (r *joinReport) write(path string) error {
	if path == "" {
		return nil
	}
	r.Schema = 1
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(body, '\n'), 0o644)
}

// table writes a table of the processes. How much slower the first one was is not measured without a run to compare.
func (r *joinReport) table(out io.Writer, slower string) error {
	rows := [][]string{{"PROCESS", "ITERATIONS", "PLANNED", "BY", "NEEDS", "LIMIT", "PLAN", "TOUCHED", "SAVED",
		"SLOWER BY"}}
	bytes := func(b graph.Bytes) string {
		if b == 0 {
			return "-"
		}
		return text.Bytes(b)
	}
	for _, p := range r.processes {
		saved, touched := "-", p.Touched
		if part, ok := savedBy(p.Summary); ok {
			saved = text.Percent(part)
		}
		if p.Planned == 0 {
			touched = p.Unplanned
		}
		rows = append(rows, []string{p.Name, strconv.Itoa(p.Iterations), strconv.Itoa(p.Planned), p.way(),
			bytes(p.Need), bytes(p.Limit), bytes(p.Largest), bytes(touched), saved, slower})
		slower = "-"
	}
	return text.Table(out, rows)
}

// tell tells people what became of the processes.
func (r *joinReport) tell(stderr io.Writer) error {
	if len(r.processes) == 0 {
		_, err := fmt.Fprintln(stderr, "tensile: the command has not joined: no optimizer of PyTorch 2 has made a "+
			"step in it (python -I and -S hide Tensile)")
		return err
	}
	err := r.table(stderr, "-")
	for _, p := range r.processes {
		for _, line := range p.lines() {
			if len(r.processes) > 1 {
				line = p.Name + ": " + line
			}
			fmt.Fprintln(stderr, "tensile:", text.Line(line, maxError))
		}
	}
	return err
}

// lines say why iterations had no plan, and how often a limit was not kept.
func (p *processReport) lines() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case p.Planned > 0 && p.Planned == p.Iterations:
	case p.Passive != "":
		say("iterations without a plan: %s", p.Passive)
	case p.Unmet != "":
		say("iterations without a plan: %s", p.Unmet)
	case p.Why != "":
		say("the first iteration without a plan, after the recorded ones: %s", p.Why)
	case p.Planned == 0:
		say("it has ended before a plan was in force: that takes some eight steps")
	}
	if p.Over > 0 {
		say("iterations that had more than the limit of %s: %d", p.Limit, p.Over)
	}
	return lines
}

// way is how plans were played: by hooks of what autograd saves, by a look at each op, or by both.
func (p *processReport) way() string {
	switch p.Hooks {
	case 0:
		if p.Planned+p.Retried == 0 {
			return "-"
		}
		return "ops"
	case p.Planned + p.Retried:
		return "hooks"
	}
	return "both"
}

// savedBy is the part of what an iteration needs that the plan has saved; where the iterations by it were too few to be
// measured, that is what it was made for.
func savedBy(s sidecar.Summary) (part float64, ok bool) {
	if s.Planned == 0 || s.Need == 0 {
		return 0, false
	}
	return max(0, 1-float64(cmp.Or(s.Touched, s.Largest))/float64(s.Need)), true
}
