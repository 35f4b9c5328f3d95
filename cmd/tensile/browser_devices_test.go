//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tensile/graph"
	"tensile/internal/long"
)

// The page of a controller with several devices lists them as devices --json does, shows the memory of the one that is
// chosen, with the jobs of that alone, and says of each job where it is.
func TestDevicesInBrowser(t *testing.T) {
	long.Only(t)
	t.Parallel()
	b := openBrowser(t)
	c := newLab(t, 6*graph.MiB, "--silence", "3s")
	c.brings("large", "4MiB")
	c.brings("small", "3MiB")
	for _, device := range []string{"large", "small"} {
		c.submit("lenet", "--name", "on-"+device, "--device", device)
	}
	c.train(nil, "on-large", "on-small")
	b.do(chromedp.Navigate(strings.TrimSpace(c.tell("page", "--steer"))))
	b.until(`document.querySelectorAll("#devices tbody tr").length === 2`)
	for _, device := range []string{"small", "large"} {
		row := fmt.Sprintf(`document.querySelector("#devices tr[data-key=%s]")`, device)
		b.do(chromedp.Click(fmt.Sprintf(`#devices tr[data-key=%s] button`, device), chromedp.ByQuery))
		b.until(row + `.querySelector("[aria-pressed=true]")`)
		b.until(fmt.Sprintf(`document.getElementById("of").textContent === " of %s"`, device))
		const legend = `document.getElementById("parts").textContent`
		b.until(fmt.Sprintf(`%s.includes("on-%s") && !%s.includes("on-%s")`, legend, device, legend,
			map[string]string{"small": "large", "large": "small"}[device]))
		job := fmt.Sprintf(`document.querySelector("#jobs tr[data-key=on-%s]")`, device)
		b.until(fmt.Sprintf(`%s.cells[0].textContent === "on-%son device %s"`, job, device, device))
		d := c.devices()[device]
		mib := fmt.Sprintf("%.2f MiB", float64(d.Used)/(1<<20))
		b.until(fmt.Sprintf(`%s.cells[2].textContent.endsWith("of %d.00 MiB") && %s.cells[3].textContent === "1"`, row,
			d.Budget>>20, row))
		if shown := value[string](b, row+`.cells[2].textContent`); d.Used == c.devices()[device].Used &&
			shown != mib+fmt.Sprintf(" of %d.00 MiB", d.Budget>>20) {
			t.Errorf("the page shows %s of device %s, devices --json %s", shown, device, mib)
		}
	}
	b.fits("an overview of two devices")
	b.readable("an overview of two devices")
	if value[bool](b, `!document.getElementById("budget").hidden`) {
		t.Error("the page would set the budget of a device, which is its executor's to set")
	}
	b.do(chromedp.Click(`#jobs tr[data-key=on-small] a`, chromedp.ByQuery))
	b.until(`document.getElementById("why").textContent.includes("on device small")`)
	b.until(`document.querySelectorAll("#storages tbody tr").length > 0`)
	c.submit("lenet", "--name", "second", "--device", "small") // beside which the first has to shrink
	c.train(nil, "second")
	b.until(`document.querySelectorAll("#plans details").length > 1`)
	b.quiet("")
	c.tell("stop", "on-large", "on-small", "second")
}
