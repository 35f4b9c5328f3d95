package top

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/scheduler/explain"
	"tensile/wire"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// screen is a model with what it has asked for.
type screen struct {
	t     *testing.T
	model tea.Model
	asked []wire.Request
}

func newScreen(t *testing.T, width, height int) *screen {
	s := &screen{t: t}
	s.model = New(func(q wire.Request) (wire.Answer, error) {
		s.asked = append(s.asked, q)
		return wire.Answer{}, nil
	}, func() time.Time { return begin }, "", false)
	s.tell(tea.WindowSizeMsg{Width: width, Height: height})
	return s
}

// tell gives the model a message, checks its view, and returns the command that it wants run.
func (s *screen) tell(msg tea.Msg) (cmd tea.Cmd) {
	s.t.Helper()
	s.model, cmd = s.model.Update(msg)
	m := s.model.(Model)
	lines := strings.Split(m.View().Content, "\n")
	if len(lines) != m.height {
		s.t.Errorf("%d lines on a terminal of %d, after %+v", len(lines), m.height, msg)
	}
	for _, line := range lines {
		if ansi.StringWidth(line) > m.width {
			s.t.Errorf("%d columns on a terminal of %d: %q", ansi.StringWidth(line), m.width, line)
		}
	}
	return cmd
}

// press presses keys, and has what they ask for answered.
func (s *screen) press(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		msg := tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		switch k {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "up":
			msg = tea.KeyPressMsg{Code: tea.KeyUp}
		case "pgdown":
			msg = tea.KeyPressMsg{Code: tea.KeyPgDown}
		}
		if cmd := s.tell(msg); cmd != nil {
			cmd()
		}
	}
}

// begin is when the jobs of these tests were submitted.
var begin = time.Unix(1764000000, 0)

// answer is that of a controller of five jobs, so many seconds after the begin.
func answer(second int) wire.Answer {
	loss := func(x float64) *wire.Loss { l := wire.Loss(x); return &l }
	s := float64(second)
	spec := func(name, model, owner string, priority, iterations int) wire.Spec {
		return wire.Spec{Name: name, Model: model, Owner: owner, Priority: priority, Iterations: iterations}
	}
	at := time.Duration(begin.UnixNano())
	return wire.Answer{Device: "sim:a6000", Budget: 8 * graph.GiB, Link: wire.Rates{Out: 25e9, In: 25e9},
		Sharing: wire.Gates, Jobs: []wire.Record{
			{Spec: spec("vgg16", "vgg16", "ada", 1, 2000), State: wire.JobRunning, Iteration: 400 + 6*second,
				Executor: "x1", Claim: 4 * graph.GiB, Base: graph.GiB, Sharing: wire.Gates, Arena: 4 * graph.GiB,
				SlotPeak: 3 * graph.GiB, Pace: time.Duration((160 + 20*math.Sin(s)) * 1e6),
				Loss:      loss(4.6 * math.Exp(-s/20)),
				Submitted: at, Plans: 2, PlanReason: "job resnet50 has come", Speed: 0.52, Gate: 12 * time.Millisecond},
			{Spec: spec("resnet50", "resnet50", "bob", 5, 10000), State: wire.JobRunning, Iteration: 9000 + second,
				Executor: "x2", Claim: 2 * graph.GiB, Base: graph.GiB / 2, Sharing: wire.Gates, Arena: 2 * graph.GiB,
				Pace: 40 * time.Millisecond, Loss: loss(math.NaN()), Submitted: at + 1e9, Plans: 1, Speed: 0.53},
			{Spec: spec("a-network-with-a-name-that-is-long", "mlp", "ada", 1, 10), State: wire.JobQueued,
				Reason:    "waits for 3GiB: it and the running jobs need 11GiB of 8GiB",
				Wait:      wire.Wait{For: wire.WaitMemory, Bytes: 3 * graph.GiB},
				Submitted: at + 2e9},
			{Spec: spec("漢字", "lenet", "", 2, 100), State: wire.JobParked, Park: wire.InMemory, Iteration: 50,
				Submitted: at + 3e9},
			{Spec: spec("over", "lenet", "", 2, 100), State: wire.JobFinished, Iteration: 100, Submitted: at + 4e9,
				Result: &wire.Result{Last: loss(0.125)}},
		}}
}

// hear has the model hear of some seconds.
func (s *screen) hear(seconds int) {
	s.t.Helper()
	for i := range seconds {
		s.tell(answered{Answer: answer(i), At: begin.Add(time.Duration(i+60) * time.Second)})
	}
}

// golden compares the view with a file of testdata, or writes it.
func (s *screen) golden(name string) {
	s.t.Helper()
	text := strings.ReplaceAll(s.model.View().Content, "\x1b", "␛") + "\n"
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if text != string(want) {
		s.t.Errorf("%s:\n%s\nwant\n%s", name, text, want)
	}
}

// The views of two sizes of terminals, with fixed records.
func TestViews(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		s := newScreen(t, size[0], size[1])
		name := fmt.Sprintf("%dx%d-", size[0], size[1])
		s.golden(name + "asking")
		s.hear(30)
		s.golden(name + "jobs")
		s.press("s", "s", "s") // by rate
		s.golden(name + "rate")
		s.press("enter")
		s.golden(name + "open")
		s.press("e")
		e := &explain.Job{Job: "vgg16", Model: "vgg16", Device: "sim:a6000", State: "running", Budget: 8 * graph.GiB,
			Plans: []explain.Alternative{{Budget: 8 * graph.GiB, Priority: 1, Jobs: []explain.Outcome{{Job: "vgg16",
				Arena: 4 * graph.GiB, Iteration: 160 * time.Millisecond, Speed: 0.52, Swapped: 3 * graph.GiB}}}}}
		s.tell(done{Request: wire.Request{Verb: wire.Explain, Job: "vgg16"}, Answer: wire.Answer{Explained: e}})
		s.golden(name + "why")
		s.press("pgdown", "down", "up", "esc", "esc", "x")
		s.golden(name + "stop")
		s.press("n")
		s.tell(answered{Err: errors.New("no controller answers; is it still starting?"), At: begin})
		s.golden(name + "trouble")
	}
}

// With several devices there is a line for each, whose bar has the jobs of that alone, and jobs say where they are.
func TestDevices(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		s := newScreen(t, size[0], size[1])
		a := answer(3)
		device := func(name string, own bool, budget, used graph.Bytes) wire.DeviceState {
			return wire.DeviceState{Own: own, Used: used, Device: wire.Device{Name: name, Budget: budget}}
		}
		a.Devices = []wire.DeviceState{device("lab-a6000", true, 8*graph.GiB, 4*graph.GiB),
			device("another-host-with-a-long-name", false, 3*graph.GiB, 2560*graph.MiB), device("cpu", false, 0, 0)}
		a.Jobs[1].On = a.Devices[1].Name
		s.tell(answered{Answer: a, At: begin.Add(time.Minute)})
		name := fmt.Sprintf("%dx%d-devices", size[0], size[1])
		s.golden(name)
		s.press("down", "enter")
		s.golden(name + "-open")
	}
}

// Keys ask the controller for what they say, about the selected job; a stop alone is confirmed, and a job that is over
// is left alone.
func TestKeys(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.press("p", "x", "e", "down", "enter") // nothing is there yet
	s.hear(1)
	s.press("p", "x", "n", "x", "y", "down", "down", "down", "p", "enter", "e", "esc", "down", "x", "p", "e", "s")
	var got []string
	for _, q := range s.asked {
		got = append(got, strings.TrimSpace(fmt.Sprint(q.Verb, " ", q.Job, " ", q.Place)))
	}
	want := []string{"park vgg16 memory", "stop vgg16", "resume 漢字", "explain 漢字"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("keys have asked for %q, want %q", got, want)
	}
	cmd := s.tell(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	if cmd == nil || fmt.Sprint(cmd()) != fmt.Sprint(tea.Quit()) {
		t.Error("ctrl-c does not quit")
	}
}

// What becomes of a command is said, and an error of it too.
func TestDone(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.hear(1)
	s.tell(done{Request: wire.Request{Verb: wire.Stop}, Answer: wire.Answer{Jobs: answer(0).Jobs[:1]}})
	if view := s.model.View().Content; !strings.Contains(view, "job vgg16 is running") {
		t.Errorf("after a command:\n%s", view)
	}
	s.tell(done{Err: errors.New("job vgg16 belongs to bob")})
	if view := s.model.View().Content; !strings.Contains(view, "job vgg16 belongs to bob") {
		t.Errorf("after an error:\n%s", view)
	}
}

// FuzzView: whatever is pressed on a terminal of whatever size, whatever jobs there are, the view fits it.
func FuzzView(f *testing.F) {
	f.Add(uint8(80), uint8(24), "jjesx", uint8(5), "name", "why")
	f.Add(uint8(1), uint8(1), "ekkp q", uint8(0), "", "")
	f.Add(uint8(10), uint8(3), "jj\x1b s", uint8(40), "漢\x1b[31m", "\t")
	f.Fuzz(func(t *testing.T, width, height uint8, keys string, jobs uint8, name, why string) {
		s := newScreen(t, int(width), int(height))
		for i, k := range keys[:min(len(keys), 50)] {
			a := answer(i)
			for n := range min(int(jobs), 60) {
				r := a.Jobs[n%len(a.Jobs)]
				r.Spec.Name, r.Reason, r.Iteration = fmt.Sprint(name, n), why, r.Iteration*n
				a.Jobs = append(a.Jobs, r)
			}
			a.Jobs = a.Jobs[min(int(jobs), len(a.Jobs)):]
			s.tell(answered{Answer: a, At: begin})
			s.press(string(k), "enter")
			s.tell(done{Request: wire.Request{Verb: wire.Explain, Job: s.model.(Model).selected},
				Answer: wire.Answer{Explained: &explain.Job{Job: name, Reason: why,
					Holders: []explain.Holder{{Job: name}}}}})
		}
	})
}

// What jobs are called and what is said of them cannot break the screen: it keeps its lines and widths, and sends a
// terminal nothing but what it writes by itself.
func TestHostile(t *testing.T) {
	const control = "\x1b[2J\x1b]0;title\a\u009b31m\u202e\r\nnext\tline\x7f"
	names := []string{"<img src=x onerror=alert(1)>", strings.Repeat("w", 128), strings.Repeat("漢", 42),
		"עברית العربية", "e\u0301\u0301\u0301", "%s%n %d"}
	a := answer(1)
	a.Jobs = nil
	for i, name := range names {
		if err := wire.CheckName(name); err != nil {
			t.Fatal(err)
		}
		states := []wire.JobState{wire.JobRunning, wire.JobQueued, wire.JobFailed}
		a.Jobs = append(a.Jobs, wire.Record{Spec: wire.Spec{Name: name, ID: int64(i + 1), Model: "m" + control,
			Owner: "o" + control, Iterations: 10}, State: states[i%3], Reason: "w" + control, PlanReason: "r" +
			control})
	}
	for _, name := range []string{"a" + control, "a\u202eb", "a\u200fb", strings.Repeat("w", 200)} {
		if wire.CheckName(name) == nil {
			t.Errorf("a job may be called %q", name)
		}
	}
	ours := strings.NewReplacer(bold, "", dim, "", reverse, "", plain, "", "\n", "")
	for _, width := range []int{20, 80, 140} {
		s := newScreen(t, width, 24)
		look := func() {
			t.Helper()
			for _, r := range ours.Replace(s.model.(Model).View().Content) {
				if !strconv.IsPrint(r) {
					t.Fatalf("the screen has %q:\n%q", r, s.model.(Model).View().Content)
				}
			}
		}
		s.tell(answered{Answer: a, At: begin})
		for range names {
			look()
			s.press("enter")
			look()
			s.tell(done{Request: wire.Request{Verb: wire.Explain}, Err: errors.New("e" + control)})
			look()
			s.press("esc", "down")
		}
		s.tell(answered{Err: errors.New("e" + control), At: begin})
		look()
	}
}
