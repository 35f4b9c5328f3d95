package explain

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"tensile/graph/text"
)

// lines prints lines until one fails.
type lines struct {
	out io.Writer
	err error
}

func (l *lines) add(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.out, format+"\n", args...)
	}
}

// milliseconds is a duration as people compare it.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%.3f ms", float64(d)/1e6) }

// WriteText prints the answer as sentences.
func (j *Job) WriteText(out io.Writer) error {
	l := &lines{out: out}
	of := ""
	if j.Of > 0 {
		of = fmt.Sprintf(" of %d", j.Of)
	}
	is := "is " + j.State
	if j.Over {
		is = map[string]string{"finished": "has finished", "stopped": "was stopped", "failed": "has failed"}[j.State]
	}
	l.add("Job %s (%s on %s) %s, at iteration %d%s.", j.Job, j.Model, j.Device, is, j.Iteration, of)
	if j.Reason != "" {
		l.add("%s", asSentence(j.Reason))
	}
	if j.Remedy != "" {
		l.add("What helps: %s.", j.Remedy)
	}
	j.writePast(l)
	if j.Over {
		return l.err
	}
	j.memory(l)
	j.writePlan(l)
	j.time(l)
	j.plans(l)
	return l.err
}

// asSentence is a text with a capital letter and a full stop.
func asSentence(s string) string {
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

// memory says who has the device's.
func (j *Job) memory(l *lines) {
	of := "There is no budget"
	if j.Budget > 0 {
		of = fmt.Sprintf("The budget is %s", j.Budget)
	}
	line := fmt.Sprintf("%s: %s are taken", of, j.Taken)
	if j.Budget > 0 {
		line += fmt.Sprintf(", %s are free", max(0, j.Budget-j.Taken))
	}
	if j.Shared {
		line += "; jobs share memory, and the largest part counts once"
	}
	if l.add("\n%s.", line); len(j.Holders) == 0 {
		return
	}
	rows := [][]string{{"  WHO", "HAS", "BETWEEN ITERATIONS", "PRIORITY", "STATE"}}
	for _, h := range j.Holders {
		base, priority := "-", "-"
		if j.Shared {
			base = h.Base.String()
		}
		if h.Priority > 0 {
			priority = fmt.Sprint(h.Priority)
		}
		state := cmp.Or(h.State, "-")
		if h.Away {
			state = "perhaps; its executor cannot be reached"
		}
		rows = append(rows, []string{"  " + cmp.Or(h.Job, "(processes)"), h.Bytes.String(), base, priority, state})
	}
	if l.err == nil {
		l.err = text.Table(l.out, rows)
	}
}

// writePlan says what plan the job has.
func (j *Job) writePlan(l *lines) {
	p := j.Has
	if p == nil {
		return
	}
	does := "trains"
	if p.Stands == ToCome {
		does = "is to train"
	}
	if p.isClaim() {
		l.add("\nIt %s without a plan, in %s.", does, &p.Outcome)
		return
	}
	l.add("\nIt %s by plan %d: by the prediction of then it has %s", does, p.Epoch, &p.Outcome)
	p.writeMeans(l)
}

// time says where that of an iteration goes.
func (j *Job) time(l *lines) {
	t := j.Time
	if t == nil {
		return
	}
	by := ""
	if j.Has != nil {
		by = fmt.Sprintf(", by plan %d,", j.Has.Epoch)
	}
	l.add("\nIteration %d%s took %s, %s than its ops take alone (%s):", t.Number, by, milliseconds(t.Iteration),
		compareTimes(t.Iteration, t.Alone), milliseconds(t.Alone))
	for _, part := range []struct {
		d    time.Duration
		what string
	}{
		{t.Alone, "its ops, each once, while no other job runs"},
		{t.Variants, "ops in other variants than the first, against these"},
		{t.Again, "ops that are executed again, to have what was dropped"},
		{t.Beside, "ops against their time alone: jobs beside it, and noise"},
		{t.Stall, "waits for copies (stalls)"},
		{t.Gate, "waits for memory that other jobs have (gates)"},
		{t.Rest, "between steps"},
	} {
		if part.d != 0 {
			l.add("  %12s  %s", milliseconds(part.d), part.what)
		}
	}
	if len(j.Stalls) == 0 {
		return
	}
	l.add("\nThe longest stalls, where that plan runs with the times that these steps took (a replay):")
	for _, s := range j.Stalls {
		l.add("  %12s  %s", milliseconds(s.Stall), s)
	}
	if j.StallsRest > 0 {
		l.add("  %12s  others", milliseconds(j.StallsRest))
	}
}

// compareTimes says by how much a duration is longer than another.
func compareTimes(a, b time.Duration) string {
	switch share := 100 * float64(a-b) / float64(max(1, b)); {
	case share >= 0.05:
		return fmt.Sprintf("%.1f %% more", share)
	case share <= -0.05:
		return fmt.Sprintf("%.1f %% less", -share)
	}
	return "no more"
}

// plans says what other settings would change.
func (j *Job) plans(l *lines) {
	if len(j.Plans) == 0 {
		return
	}
	l.add("\nWhat the planner would do now, by prediction:")
	for i := range j.Plans {
		j.alternative(l, &j.Plans[i], &j.Plans[0])
	}
}

// alternative says what becomes of the job, and of the others.
func (j *Job) alternative(l *lines, a, base *Alternative) {
	head := "as things are"
	if a != base {
		head = settingOf(a, base)
	}
	switch own := a.outcomeOf(j.Job); {
	case own != nil && a.Same && !own.isClaim():
		l.add("  %s, it keeps its plan, and has %s%s", head, own, compareWith(own, base.outcomeOf(j.Job), a == base))
		own.writeMeans(l)
	case own != nil:
		l.add("  %s, it has %s%s", head, own, compareWith(own, base.outcomeOf(j.Job), a == base))
		own.writeMeans(l)
	case len(a.Jobs) == 0:
		l.add("  %s, there is no plan%s", head, becauseClause(a.Error))
	default:
		l.add("  %s, it waits%s", head, becauseClause(a.Error))
	}
	for i := range a.Jobs {
		if o := &a.Jobs[i]; o.Job != j.Job {
			l.add("    %s has %s%s", o.Job, o, compareWith(o, base.outcomeOf(o.Job), a == base))
		}
	}
	for _, name := range a.Waiting {
		if name != j.Job && len(a.Jobs) > 0 {
			l.add("    %s waits", name)
		}
	}
}

func becauseClause(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// settingOf is how an alternative differs from what there is.
func settingOf(a, base *Alternative) string {
	switch more := a.Budget - base.Budget; {
	case a.Priority != base.Priority:
		return fmt.Sprintf("with priority %d instead of %d", a.Priority, base.Priority)
	case base.Budget == 0:
		return fmt.Sprintf("with a budget of %s", a.Budget)
	case more > 0:
		return fmt.Sprintf("with %s more, %s", more, a.Budget)
	default:
		return fmt.Sprintf("with %s less, %s", -more, a.Budget)
	}
}

// isClaim reports whether the job is a script of which the memory alone is known: it has recorded no iteration, or is
// passive.
func (o *Outcome) isClaim() bool { return o.Iteration == 0 }

// String says what memory a job has and what that is worth.
func (o *Outcome) String() string {
	if o.isClaim() {
		return o.Arena.String()
	}
	s := fmt.Sprintf("%s and takes %s an iteration", o.Arena, milliseconds(o.Iteration))
	if o.Speed > 0 {
		s += fmt.Sprintf(" (%.2f of its speed alone)", o.Speed)
	}
	return s
}

// writeMeans says what a plan does to need no more memory.
func (o *Outcome) writeMeans(l *lines) {
	var ways []string
	if o.Swapped > 0 {
		ways = append(ways, fmt.Sprintf("copies %s", o.Swapped))
	}
	if o.Recomputes > 0 {
		ways = append(ways, fmt.Sprintf("executes %d ops again", o.Recomputes))
	}
	if o.Stall > 0 {
		ways = append(ways, fmt.Sprintf("stands still for %s", milliseconds(o.Stall)))
	}
	if len(ways) > 0 {
		l.add("    for that it %s", strings.Join(ways, ", "))
	}
}

// compareWith is by how much a plan is faster or slower than the one that would be made without a change.
func compareWith(o, before *Outcome, same bool) string {
	switch {
	case same:
		return ""
	case before == nil:
		return "; it waits now"
	case *o == *before:
		return ", as now"
	}
	return ", " + compareTimes(o.Iteration, before.Iteration)
}

// WriteText prints the answer as sentences.
func (s *Storage) WriteText(out io.Writer) error {
	l := &lines{out: out}
	l.add("Storage %s of job %s: %s, %s.", s.Storage, s.Job, s.Role, s.Bytes)
	on := "is not on the device"
	if s.Begins {
		on = "is on the device"
	}
	plan := fmt.Sprintf("The job trains by plan %d, by which", s.Epoch)
	switch s.Stands {
	case ToCome:
		plan = fmt.Sprintf("The job is to train by plan %d, by which", s.Epoch)
	case Now:
		plan = "The job has no plan. By the one that would be made now"
	}
	l.add("%s an iteration takes %s by prediction; when it begins the storage %s.\n", plan, milliseconds(s.Iteration),
		on)
	rows := [][]string{{"  WHAT", "STEP", "AT", "TAKES", "MEASURED"}}
	for _, e := range s.Events {
		step, what := fmt.Sprint(e.Step), string(e.What)
		if e.Step < 0 {
			step = "before"
		}
		if e.Op != "" {
			what += " by " + e.Op
		}
		takes, measured := "-", "-"
		if e.What != Dropped {
			takes = milliseconds(e.Takes)
		}
		if e.Measured != nil {
			measured = milliseconds(*e.Measured)
		}
		rows = append(rows, []string{"  " + what, step, milliseconds(e.Start), takes, measured})
	}
	if l.err == nil {
		l.err = text.Table(l.out, rows)
	}
	switch {
	case s.Unsaid:
		l.add("\nThere are no reasons with this plan: its policy does not decide gap by gap.")
	case len(s.Decisions) == 0:
		l.add("\nThe planner leaves it where it is: nothing of it needs to go, or it is not on the device at the peak.")
	case s.Stands == Now:
		l.add("\nWhy, by that plan:")
	default:
		l.add("\nWhy, as the planner said when it made plan %d:", s.Epoch)
	}
	for _, d := range s.Decisions {
		l.add("  %s", d)
	}
	return l.err
}
