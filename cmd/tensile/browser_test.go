//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/internal/needs"
	"tensile/wire"
)

// browser is a tab of a Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	messages []string // of the console, and of what went wrong in it
}

// profile is a folder for a Chromium, whose helpers may write to it for a moment after it has ended: too long for
// t.TempDir.
func profile(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "tensile-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100000 {
			if err = os.RemoveAll(folder); err == nil {
				return
			}
		}
		t.Logf("a folder is left behind: %v", err)
	})
	return folder
}

// openBrowser starts a Chromium without a window, which ends with the test.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(needs.Browser(t)), chromedp.NoSandbox,
		chromedp.UserDataDir(profile(t)), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(10*time.Minute)) // a busy machine takes long to start one
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	if end, limited := t.Deadline(); limited {
		ctx, cancel = context.WithDeadline(ctx, end.Add(-reserve))
		t.Cleanup(cancel)
	}
	b := &browser{t: t}
	b.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithBrowserOption(chromedp.WithDialTimeout(0)))
	t.Cleanup(func() {
		cancel()
		chromedp.FromContext(b.ctx).Allocator.Wait() // it writes to its folder up to its end
	})
	chromedp.ListenTarget(b.ctx, func(event any) {
		said := ""
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			said = "console." + string(e.Type)
			for _, a := range e.Args {
				said += fmt.Sprintf(" %s%s", a.Value, a.Description)
			}
		case *runtime.EventExceptionThrown:
			said = e.ExceptionDetails.Error()
		case *cdplog.EventEntryAdded:
			said = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		default:
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.messages = append(b.messages, said)
	})
	b.do(cdplog.Enable())
	return b
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// until waits until an expression is true in the page. While the browser goes from one page to another it may answer
// that the context of scripts is gone: the next page has one of its own, and is asked again.
func (b *browser) until(expression string) {
	b.t.Helper()
	for {
		err := chromedp.Run(b.ctx, chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(0),
			chromedp.WithPollingInterval(50*time.Millisecond)))
		if err == nil {
			return
		}
		const contextGone = -32000 // of the DevTools protocol
		if e := new(cdproto.Error); !errors.As(err, &e) || e.Code != contextGone {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.t.Fatalf("waited for %s: %v; the console: %q", expression, err, b.messages)
		}
	}
}

// press presses a button by the keyboard: what moves on the page meanwhile would have a mouse miss it.
func (b *browser) press(button string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(button, chromedp.ByQuery), chromedp.Focus(button, chromedp.ByQuery),
		chromedp.KeyEvent(kb.Enter))
}

// steer presses a button that has the controller do something, and waits until that has been said to be done.
func (b *browser) steer(button string) {
	b.t.Helper()
	const said = `document.getElementById("said").textContent`
	b.do(chromedp.Evaluate(said+` = ""`, nil))
	b.press(button)
	b.until(`!["", "asking"].includes(` + said + `)`)
	if text := value[string](b, said); text != "done" {
		b.t.Fatalf("%s: the page says %q", button, text)
	}
}

// value is what an expression is in the page.
func value[T any](b *browser, expression string) (v T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, &v))
	return v
}

// quiet wants that the console has said nothing, or nothing but lines with some words, and that nothing on the page is
// a value that there is not.
func (b *browser) quiet(only string) {
	b.t.Helper()
	const none = `(document.body.textContent.match(/.{0,40}(NaN|undefined|\[object).{0,40}/) || [""])[0]`
	if said := value[string](b, none); said != "" {
		b.t.Errorf("the page says %q", said)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		if only == "" || !strings.Contains(m, only) {
			b.t.Errorf("the browser's console: %s", m)
		}
	}
}

const (
	cell      = `document.querySelector("#jobs tbody tr[data-key=lenet]")`
	iteration = `Number(` + cell + `.querySelector(".iteration").textContent.split("/")[0])`
)

// The page opens, shows live what jobs --json says, draws the plan of a job, steers it where its token allows, finds a
// controller again that was started anew, and says nothing to the console; with a wrong token it shows nothing.
func TestPageInBrowser(t *testing.T) {
	long.Only(t)
	t.Parallel()
	b := openBrowser(t)
	c := startCluster(t, 8*graph.MiB)
	c.submit("lenet")
	c.train(nil, "lenet")

	// Looking.
	view := strings.TrimSpace(c.tell("page"))
	b.do(chromedp.Navigate(view))
	b.until(cell + ` && ` + cell + `.textContent.includes("running")`)
	least := c.jobs()["lenet"].Iteration
	b.until(fmt.Sprintf("%s >= %d", iteration, least))
	shown := value[int](b, iteration)
	if now := c.jobs()["lenet"].Iteration; shown > now {
		t.Errorf("the page shows iteration %d, jobs --json %d", shown, now)
	}
	b.until(fmt.Sprintf("%s > %d", iteration, shown)) // by itself
	if in := value[string](b, "location.search"); in != "" {
		t.Errorf("the token stays in the address: %s", in)
	}
	if value[bool](b, `!document.getElementById("budget").hidden`) {
		t.Error("there are buttons for who may only look")
	}
	b.until(cell + `.querySelector(".curve polyline").getAttribute("points").split(" ").length > 1`)
	b.until(`document.querySelector("#memory canvas")`)
	b.until(`document.getElementById("parts").textContent.includes("lenet")`)

	// A job: its loss, log, plan, an iteration that was measured, and storages.
	b.do(chromedp.Click(`#jobs tbody a`, chromedp.ByQuery))
	b.until(`document.querySelector("#loss canvas") && /^iteration \d+: [0-9.]+/.test(` +
		`document.getElementById("lossat").textContent)`)
	b.until(`document.getElementById("log").textContent.includes("trains with layout")`)
	b.until(`/; iteration \d+ measured /.test(document.getElementById("itnote").textContent)`)
	var p livePlan
	document(t, []byte(c.tell("plan", "--job", "lenet", "--json")), &p)
	b.until(fmt.Sprintf(`document.getElementById("plannote").textContent.startsWith("plan %d: ")`, p.Epoch))
	const rows = `document.querySelectorAll("#storages tbody tr").length`
	all := value[int](b, rows)
	// One event, as of a keyboard: chromedp.KeyEvent sends the character apart, whatever the page did with the key.
	b.do(input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithCode("Slash").WithText("/"))
	b.until(`document.activeElement.id === "search"`)
	b.do(chromedp.SendKeys("#search", "conv1 parameter", chromedp.ByQuery))
	b.until(`document.getElementById("search").value === "conv1 parameter"`)
	b.until(fmt.Sprintf("%s > 0 && %s < %d", rows, rows, all))
	b.do(chromedp.Click(`#storages [data-by=name]`, chromedp.ByQuery))
	b.until(`document.querySelector("#storages [aria-sort=ascending]").textContent.startsWith("Storage")`)
	b.quiet("")

	// Steering.
	b.do(chromedp.Navigate(strings.TrimSpace(c.tell("page", "--steer")) + "#/job/lenet"))
	b.steer(`#steer [data-verb=park]`)
	c.in(wire.JobParked, "lenet")
	b.until(`document.getElementById("why").textContent.includes("parked")`)
	b.do(chromedp.KeyEvent("\x1b"))
	b.until(cell + ` && ` + cell + `.textContent.includes("parked")`)
	record := c.jobs()["lenet"]
	if shown := value[int](b, iteration); shown != record.Iteration {
		t.Errorf("the page shows iteration %d, jobs --json %d", shown, record.Iteration)
	}
	b.until(fmt.Sprintf("Number(%s.cells[5].textContent) === Number(Number(%v).toPrecision(4))", cell, *record.Loss))
	b.do(chromedp.Click(`#jobs tbody a`, chromedp.ByQuery))
	b.steer(`#steer [data-verb=resume]`)
	before := c.train(map[string]wire.Record{"lenet": record}, "lenet")
	b.do(chromedp.SetValue(`#steer [name=priority]`, "3", chromedp.ByQuery))
	b.steer(`#steer form button`)
	c.until("priority 3", func(jobs map[string]wire.Record) bool { return jobs["lenet"].Spec.Priority == 3 })
	b.do(chromedp.KeyEvent("\x1b"))
	b.until(cell + `.cells[9].textContent === "3"`)
	b.quiet("")

	// A controller that is started again has the same address, and the same page goes on.
	c.signal(syscall.SIGTERM)
	c.ends(0, "")
	b.until(`document.getElementById("connection").className === "lost"`)
	c = c.restart()
	b.until(`document.getElementById("connection").className === "live"`)
	b.until(fmt.Sprintf("%s > %d", iteration, before["lenet"].Iteration))
	b.quiet("net::ERR_") // of tries while there was nobody

	// Stop asks once more.
	b.do(chromedp.Click(`#jobs tbody a`, chromedp.ByQuery))
	b.press(`#steer [data-verb=stop]`)
	b.until(`document.querySelector("#steer [data-verb=stop]").textContent.endsWith("?")`)
	b.steer(`#steer [data-verb=stop]`)
	c.in(wire.JobStopped, "lenet")
	b.until(`document.getElementById("why").textContent.includes("stopped") && document.getElementById("steer").hidden`)
	b.quiet("net::ERR_")

	// A wrong token, of a browser that had no other.
	wrong, _, _ := strings.Cut(view, "=")
	b.do(network.ClearBrowserCookies(), chromedp.Navigate("about:blank"))
	answer, err := chromedp.RunResponse(b.ctx, chromedp.Navigate(wrong+"=wrong"))
	if err != nil {
		t.Fatal(err)
	}
	text := value[string](b, "document.body.innerText")
	if answer.Status != http.StatusUnauthorized || strings.Contains(text, "lenet") || !strings.Contains(text, "token") {
		t.Errorf("with a wrong token: %d, %s", answer.Status, text)
	}
	c.end()
}
