//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"tensile/graph"
	"tensile/internal/long"
	pages "tensile/observe/page"
	"tensile/observe/web"
	"tensile/wire"
	"tensile/wire/bustest"
)

// strangeNames are allowed for jobs and made to break a page.
var strangeNames = []string{
	`<img src=x onerror=document.title='broken'>`, `"><script>document.title='broken'<`, `a'b"c&amp;d%00 #x?y=z`,
	strings.Repeat("w", 128), "עברית العربية", "__proto__", "constructor",
}

// strangeJobs serves the page of a controller with jobs of these names, in all states, and says where.
func strangeJobs(t *testing.T) string {
	t.Helper()
	bus := bustest.New()
	loss := wire.Loss(0.5)
	a := wire.Answer{Device: "sim:a6000", Budget: 8 * graph.GiB, Trouble: "<b>the disk</b> is full"}
	states := []wire.JobState{wire.JobRunning, wire.JobQueued, wire.JobParked, wire.JobFinished, wire.JobRunning,
		wire.JobRunning,
		wire.JobFailed}
	for i, name := range strangeNames {
		if err := wire.CheckName(name); err != nil {
			t.Fatal(err)
		}
		a.Jobs = append(a.Jobs, wire.Record{Order: int64(i + 1), State: states[i], Iteration: 3, Pace: time.Second,
			Loss: &loss, Claim: graph.MiB, Arena: graph.MiB, Reason: "<i>" + strings.Repeat("x", 300),
			Spec: wire.Spec{Name: name, ID: int64(i + 1), Model: "<u>mlp", Iterations: 10,
				Graph: graph.Digest(strings.Repeat("0", 64))}})
	}
	for i, name := range append([]string{""}, strangeNames...) {
		a.Tenants = append(a.Tenants, wire.TenantState{Name: name, Share: i + 1, Speed: 0.25,
			Behind: time.Duration(i-1) * time.Minute, Served: time.Hour})
	}
	answer := wire.Encode(a)
	if _, err := bus.Serve(wire.ControlSubject, func(_ string, _ []byte, reply func([]byte)) {
		reply(answer)
	}); err != nil {
		t.Fatal(err)
	}
	server, err := web.Listen(web.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0",
		Log: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	page := pages.New(bus)
	page.Mount(server)
	server.Serve()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { page.Run(ctx) })
	t.Cleanup(func() {
		server.Close()
		cancel()
		done.Wait()
	})
	return server.URL(web.Steer)
}

// contrast is the least contrast of texts that are shown against what is behind them, by the formula of WCAG 2, and
// which text that is. Charts are drawn in canvases and not looked at.
const contrast = `(() => {
  const lum = (c) => {
    const v = c.map((x) => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
  };
  const parse = (s) => s.match(/[\d.]+/g).map(Number);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  let least = [99, ""];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !e.checkVisibility() || e.closest(":disabled, .u-legend")) continue;
    const a = lum(parse(getComputedStyle(e).color)), b = lum(behind(e));
    const c = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (c < least[0]) least = [c, e.tagName + "." + e.className + " " + walk.currentNode.data.slice(0, 40)];
  }
  return JSON.stringify(least);
})()`

// fits wants a page that nothing reaches out of to the right.
func (b *browser) fits(where string) {
	b.t.Helper()
	const outside = `document.documentElement.scrollWidth <= innerWidth ? "" : [...document.querySelectorAll("*")].
		filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.tagName + "#" + e.id).join(" ")`
	if out := value[string](b, outside); out != "" {
		b.t.Errorf("%s: the page reaches out of the window by %s", where, out)
	}
}

// readable wants texts that can be read: WCAG 2 asks for 4.5 to 1.
func (b *browser) readable(where string) {
	b.t.Helper()
	var least []any
	if err := json.Unmarshal([]byte(value[string](b, contrast)), &least); err != nil {
		b.t.Fatal(err)
	}
	if ratio := least[0].(float64); ratio < 4.5 {
		b.t.Errorf("%s: the contrast of %v is %.2f", where, least[1], ratio)
	}
}

// named wants a name for all that can be pressed, chosen or filled in, as those hear it who do not see the page.
func (b *browser) named(where string) {
	b.t.Helper()
	var tree struct { // of chromedp's type a newer Chromium has values that it does not know
		Nodes []struct {
			Ignored bool `json:"ignored"`
			Role    struct {
				Value string `json:"value"`
			} `json:"role"`
			Name struct {
				Value any `json:"value"`
			} `json:"name"`
		} `json:"nodes"`
	}
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		return cdp.Execute(ctx, "Accessibility.getFullAXTree", nil, &tree)
	}))
	found := 0
	for _, n := range tree.Nodes {
		switch n.Role.Value {
		case "button", "link", "textbox", "searchbox", "spinbutton", "image", "DisclosureTriangle":
		default:
			continue
		}
		if n.Ignored {
			continue
		}
		found++
		if name, _ := n.Name.Value.(string); strings.TrimSpace(name) == "" {
			b.t.Errorf("%s: a %s has no name", where, n.Role.Value)
		}
	}
	if found == 0 {
		b.t.Errorf("%s: nothing can be pressed", where)
	}
}

// tabs presses Tab until the focus has come round, wants to see it wherever it is, and returns where it was.
func (b *browser) tabs(where string) (stops []string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(`document.activeElement.blur(), scrollTo(0, 0)`, nil))
	for range 200 {
		b.do(chromedp.KeyEvent("\t"))
		var at []string // what has the focus; the outline's style
		b.do(chromedp.Evaluate(`(() => { const e = document.activeElement, box = e.getBoundingClientRect();
			if (e === document.body) return [];
			return [(e.id || e.dataset.verb || e.name || e.textContent).trim(), getComputedStyle(e).outlineStyle,
				box.width > 0 && box.right > 0 && box.left < innerWidth ? "in sight" : "out of sight"]; })()`, &at))
		if len(at) == 0 || len(stops) > 0 && stops[0] == at[0] {
			return stops
		}
		if at[1] == "none" || at[2] != "in sight" {
			b.t.Errorf("%s: the focus on %q cannot be seen: outline %s, %s", where, at[0], at[1], at[2])
		}
		stops = append(stops, at[0])
	}
	b.t.Errorf("%s: the focus does not come round: %q", where, stops)
	return stops
}

// Names of jobs that are made to break a page are shown as they are and break nothing, on a phone as on a desk, in the
// light and in the dark; all can be read, reached by keyboard, and has a name.
func TestPageOfStrangeJobs(t *testing.T) {
	long.Only(t)
	t.Parallel()
	b := openBrowser(t)
	at := strangeJobs(t)
	for _, screen := range []struct {
		name          string
		width, height int64
		scheme        string
	}{{"a phone in the dark", 390, 844, "dark"}, {"a desk in the light", 1280, 900, "light"}} {
		b.do(emulation.SetDeviceMetricsOverride(screen.width, screen.height, 1, screen.width < 500),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: screen.scheme}}),
			chromedp.Navigate("about:blank"), chromedp.Navigate(at))
		b.until(fmt.Sprintf(`document.querySelectorAll("#jobs tbody tr, #past tbody tr").length === %d`,
			len(strangeNames)))
		b.do(chromedp.Evaluate(`document.getElementById("past").open = true`, nil))
		for _, name := range strangeNames {
			quoted, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			there := fmt.Sprintf(`[...document.querySelectorAll(".jobs a")].some((a) => a.textContent === %s)`, quoted)
			if !value[bool](b, there) {
				t.Errorf("%s: there is no job %s", screen.name, name)
			}
		}
		const tenants = `JSON.stringify([...document.querySelectorAll("#tenants tbody tr")].map((tr) =>
			[...tr.cells].map((td) => td.textContent)))`
		var shown [][]string
		if err := json.Unmarshal([]byte(value[string](b, tenants)), &shown); err != nil {
			t.Fatal(err)
		}
		first := []string{"administrator", "1", "0", "0", "0.25", "−1m 0s", "1h 0m"}
		if len(shown) != 1+len(strangeNames) || !slices.Equal(shown[0], first) || shown[1][0] != strangeNames[0] ||
			shown[1][5] != "0" {
			t.Errorf("%s: the tenants are %q", screen.name, shown)
		}
		b.fits(screen.name)
		b.readable(screen.name)
		b.named(screen.name)
		if stops := b.tabs(screen.name); len(stops) < len(strangeNames)+3 { // the budget and its button, too
			t.Errorf("%s: Tab stops at %q alone", screen.name, stops)
		}
		for i, name := range strangeNames {
			quoted, _ := json.Marshal(name)
			b.do(chromedp.Evaluate(fmt.Sprintf(`location.hash = "#/job/" + encodeURIComponent(%s)`, quoted), nil))
			b.until(fmt.Sprintf(`document.getElementById("name").textContent === %s && `+
				`document.querySelector("#jobfacts li")`, quoted))
			b.fits(fmt.Sprintf("%s, job %d", screen.name, i))
		}
		b.readable(screen.name + ", a job")
		b.named(screen.name + ", a job")
		b.do(chromedp.Evaluate(`location.hash = "#/job/__proto__"`, nil)) // which trains
		b.until(`!document.getElementById("job").hidden && !document.getElementById("steer").hidden`)
		stops := strings.Join(b.tabs(screen.name+", a job"), " ")
		if !strings.Contains(stops, "stop") || !strings.Contains(stops, "priority") || !strings.Contains(stops, "log") {
			t.Errorf("%s: Tab stops at %q alone", screen.name, stops)
		}
		const made = `document.querySelectorAll("main img, main script, main u, #trouble b, #why i, #waiting i").length`
		if n := value[int](b, made); n > 0 {
			t.Errorf("%s: %d elements were made of what names and reasons say", screen.name, n)
		}
		if title := value[string](b, "document.title"); strings.Contains(title, "broken") {
			t.Errorf("%s: a script of a name was run", screen.name)
		}
	}
	b.quiet("")
}
