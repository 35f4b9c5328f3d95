package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"tensile/controller/memory"
	"tensile/graph/text"
	"tensile/observe/report"
	"tensile/wire"
)

// Asker asks the controller.
type Asker func(wire.Request) (wire.Answer, error)

// Model is what is shown. The zero value shows nothing: see New.
type Model struct {
	// ask sends requests to the controller.
	ask Asker
	// now is the clock.
	now func() time.Time
	// mine is the owner whose jobs are shown with onlyMe.
	mine string
	// onlyMe says that only those are shown.
	onlyMe bool

	// width and height are the terminal's.
	width, height int
	// answer is the newest answer to the verb jobs.
	answer wire.Answer
	// at is when it came.
	at time.Time
	// trouble is why the newest request for the jobs failed; "": it did not.
	trouble string
	// device is the share of the budget that was used, over time.
	device trail
	// jobs are the histories of the jobs, by name.
	jobs map[string]*history

	// order is the index in orders by which jobs are sorted.
	order int
	// selected is the name of the selected job.
	selected string
	// open says that this job alone is shown.
	open bool
	// pane are the lines that are shown of it.
	pane []string
	// scroll is the first of these lines that is visible.
	scroll int
	// confirm is a request that the user is asked to confirm; nil: there is none.
	confirm *wire.Request
	// note is what became of the newest command.
	note string
}

// history is what a job has done since the view began.
type history struct{ rate, loss trail }

// trail is a series of numbers, oldest first.
type trail []float64

// maxTrail is how many samples of a series are kept: a wide terminal's.
const maxTrail = 240

func (t *trail) add(x float64) {
	if *t = append(*t, x); len(*t) > maxTrail {
		*t = slices.Delete(*t, 0, len(*t)-maxTrail)
	}
}

// New returns a model without jobs. now is the time of day; owner, if only is set, is whose jobs are shown.
func New(ask Asker, now func() time.Time, owner string, only bool) Model {
	return Model{ask: ask, now: now, mine: owner, onlyMe: only, width: 80, height: 24, jobs: make(map[string]*history)}
}

// answered is the controller's answer to a request for the jobs.
type answered struct {
	Answer wire.Answer
	Err    error
	At     time.Time
}

// done is what became of another request.
type done struct {
	Request wire.Request
	Answer  wire.Answer
	Err     error
}

// due says that the jobs are to be asked for again.
type due struct{}

// every is the time between two answers of the controller.
const every = time.Second

// Init asks for the jobs.
func (m Model) Init() tea.Cmd { return m.poll() }

func (m Model) poll() tea.Cmd {
	ask, now := m.ask, m.now
	return func() tea.Msg {
		a, err := ask(wire.Request{Verb: wire.Jobs})
		return answered{a, err, now()}
	}
}

func (m Model) do(q wire.Request) tea.Cmd {
	ask := m.ask
	return func() tea.Msg {
		a, err := ask(q)
		return done{q, a, err}
	}
}

// Update takes a message.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(1, msg.Width), max(1, msg.Height)
	case answered:
		m.setJobs(msg)
		return m, tea.Tick(every, func(time.Time) tea.Msg { return due{} })
	case due:
		return m, m.poll()
	case done:
		m.done(msg)
		return m, nil
	case tea.KeyPressMsg:
		return m.key(msg.String())
	}
	return m, nil
}

// setJobs replaces the jobs by those of a new answer.
func (m *Model) setJobs(a answered) {
	if m.trouble = ""; a.Err != nil {
		m.trouble = text.Shown(a.Err.Error())
		return
	}
	m.answer, m.at = a.Answer, a.At
	m.device.add(usedShare(&a.Answer))
	there := make(map[string]bool)
	for i := range a.Answer.Jobs {
		r := &a.Answer.Jobs[i]
		r.Reason, r.PlanReason, r.Spec.Model, r.Spec.Owner = text.Shown(r.Reason), text.Shown(r.PlanReason),
			text.Shown(r.Spec.Model),
			text.Shown(r.Spec.Owner)
		there[r.Spec.Name] = true
		h := m.jobs[r.Spec.Name]
		if h == nil {
			h = new(history)
			m.jobs[r.Spec.Name] = h
		}
		h.rate.add(perSecond(r))
		if r.Loss != nil {
			h.loss.add(float64(*r.Loss))
		}
	}
	for name := range m.jobs {
		if !there[name] {
			delete(m.jobs, name)
		}
	}
	if m.record() == nil {
		m.open, m.pane, m.confirm = false, nil, nil
		if list := m.list(); len(list) > 0 {
			m.selected = list[0].Spec.Name
		}
	}
}

// usedShare returns the share of the budget that is used; without a budget, bytes.
func usedShare(a *wire.Answer) float64 {
	used, _ := report.UsedBudget(a)
	budget, _ := report.Budgets(memory.Devices(a))
	return float64(used) / float64(max(1, budget))
}

// perSecond is how many iterations a job does in a second; 0: it does not train.
func perSecond(r *wire.Record) float64 {
	if r.Pace <= 0 || r.State != wire.JobRunning {
		return 0
	}
	return 1 / r.Pace.Seconds()
}

// done takes what became of a request.
func (m *Model) done(d done) {
	q := d.Request
	switch {
	case d.Err != nil:
		m.note = text.Shown(d.Err.Error())
	case q.Verb == wire.Explain && d.Answer.Explained != nil && m.open && q.Job == m.selected:
		var b strings.Builder
		_ = d.Answer.Explained.WriteText(&b) // a builder takes all
		m.pane, m.scroll, m.note = strings.Split(strings.TrimRight(b.String(), "\n"), "\n"), 0, ""
		for i, line := range m.pane {
			m.pane[i] = text.Shown(line)
		}
	case q.Verb == wire.Explain:
		m.note = ""
	default:
		for _, r := range d.Answer.Jobs {
			m.note = "job " + r.Spec.Name + " is " + string(r.State)
		}
	}
}

// orders are the ways to sort jobs.
var orders = []struct {
	name    string
	compare func(a, b *wire.Record) int
}{
	{"submission", func(*wire.Record, *wire.Record) int { return 0 }},
	{"name", func(a, b *wire.Record) int { return strings.Compare(a.Spec.Name, b.Spec.Name) }},
	{"state", func(a, b *wire.Record) int { return strings.Compare(string(a.State), string(b.State)) }},
	{"rate", func(a, b *wire.Record) int { return cmp.Compare(perSecond(b), perSecond(a)) }},
	{"memory", func(a, b *wire.Record) int { return cmp.Compare(report.ArenaInForce(b), report.ArenaInForce(a)) }},
	{"priority", func(a, b *wire.Record) int { return cmp.Compare(b.Spec.Priority, a.Spec.Priority) }},
}

// list are the jobs that are shown, in their order.
func (m *Model) list() []*wire.Record {
	var list []*wire.Record
	for i := range m.answer.Jobs {
		if r := &m.answer.Jobs[i]; !m.onlyMe || r.Spec.Owner == m.mine {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, orders[m.order].compare)
	return list
}

// record is that of the selected job; nil: it is not there.
func (m *Model) record() *wire.Record {
	for _, r := range m.list() {
		if r.Spec.Name == m.selected {
			return r
		}
	}
	return nil
}

// key takes a key.
func (m Model) key(k string) (tea.Model, tea.Cmd) {
	if q := m.confirm; q != nil {
		if m.confirm = nil; k == "y" {
			m.note = ""
			return m, m.do(*q)
		}
		m.note = "nothing was done"
		return m, nil
	}
	m.note = ""
	r := m.record()
	switch k {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "esc", "backspace", "left":
		if m.pane != nil {
			m.pane = nil
		} else {
			m.open = false
		}
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-max(1, m.height/2))
	case "pgdown", "space":
		m.move(max(1, m.height/2))
	case "s":
		m.order = (m.order + 1) % len(orders)
	case "enter", "right":
		m.open = r != nil
	}
	if r == nil || r.State.Over() {
		return m, nil
	}
	q := wire.Request{Job: r.Spec.Name}
	switch k {
	case "e":
		q.Verb, m.open, m.note = wire.Explain, true, "asking why ..."
		return m, m.do(q)
	case "p":
		if q.Verb = wire.Resume; r.State != wire.JobParked && r.State != wire.JobParking {
			q.Verb, q.Place = wire.Park, wire.InMemory
		}
		return m, m.do(q)
	case "x":
		q.Verb = wire.Stop
		m.confirm = &q
	}
	return m, nil
}

// move selects another job, or scrolls what is shown of one.
func (m *Model) move(by int) {
	if m.open {
		m.scroll = max(0, min(m.scroll+by, len(m.pane)-1))
		return
	}
	list := m.list()
	if len(list) == 0 {
		return
	}
	at := slices.IndexFunc(list, func(r *wire.Record) bool { return r.Spec.Name == m.selected })
	m.selected = list[max(0, min(at+by, len(list)-1))].Spec.Name
}
