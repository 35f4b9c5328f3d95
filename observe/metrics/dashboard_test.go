package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tensile/controller"
	_ "tensile/internal/long" // the flag -long
)

// words are those of PromQL that the dashboard uses.
var words = []string{"by", "histogram_quantile", "increase", "le", "rate", "sum"}

// shown are the names of all metrics and labels, as a scrape has them.
func shown(t *testing.T) (names, labels map[string]bool) {
	t.Helper()
	v := view()
	m := shows(&v)
	m.ObservePlanning(time.Second)
	m.ObserveLag(time.Second)
	m.CountEvent(controller.Event{Kind: controller.Ended})
	_, families := gather(t, m)
	names, labels = make(map[string]bool), map[string]bool{"le": true}
	for _, f := range families {
		names[f.GetName()] = true
		for _, metric := range f.Metric {
			for _, l := range metric.Label {
				labels[l.GetName()] = true
			}
			if metric.Histogram != nil {
				for _, part := range []string{"_bucket", "_sum", "_count"} {
					names[f.GetName()+part] = true
				}
			}
		}
	}
	return names, labels
}

var (
	matchers = regexp.MustCompile(`\{([^}]*)\}`)
	label    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"[^"]*"`)
	grouped  = regexp.MustCompile(`by \(([^)]*)\)`)
	strange  = regexp.MustCompile(`"[^"]*"|\[[^\]]*\]`)
	word     = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*`)
)

// unknown are the words of a query that are neither metrics nor labels nor PromQL.
func unknown(query string, names, labels map[string]bool) (list []string) {
	for _, m := range matchers.FindAllStringSubmatch(query, -1) {
		for _, l := range label.FindAllStringSubmatch(m[1], -1) {
			if !labels[l[1]] {
				list = append(list, l[1])
			}
		}
	}
	for _, g := range grouped.FindAllStringSubmatch(query, -1) {
		for _, l := range word.FindAllString(g[1], -1) {
			if !labels[l] {
				list = append(list, l)
			}
		}
	}
	rest := strange.ReplaceAllString(grouped.ReplaceAllString(matchers.ReplaceAllString(query, ""), ""), "")
	for _, w := range word.FindAllString(rest, -1) {
		if !names[w] && !slices.Contains(words, w) {
			list = append(list, w)
		}
	}
	return list
}

// Every query of the dashboard names metrics and labels that there are.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../scripts/deploy/grafana/tensile.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	names, labels := shown(t)
	queries, ids := 0, make(map[int]bool)
	for _, p := range board.Panels {
		if ids[p.ID] || len(p.Targets) == 0 {
			t.Errorf("panel %q has the number of another, or no query", p.Title)
		}
		ids[p.ID] = true
		for _, q := range p.Targets {
			queries++
			if u := unknown(q.Expr, names, labels); len(u) > 0 || !strings.Contains(q.Expr, "_") {
				t.Errorf("panel %q asks for %s, and there is no %q", p.Title, q.Expr, u)
			}
		}
	}
	for _, v := range board.Templating.List {
		call := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(v.Query)
		if v.Type == "query" && (call == nil || !names[call[1]] || !labels[call[2]]) {
			t.Errorf("variable %s asks for %s", v.Name, v.Query)
		}
	}
	if queries < 15 {
		t.Errorf("it has %d queries", queries)
	}
	for _, wrong := range []string{`rate(tensile_job_stalls_total[1m])`, `tensile_controller_up{machine="a"}`,
		`sum by (gpu) (tensile_controller_up)`, `irate(tensile_job_stall_seconds_total[1m])`} {
		if len(unknown(wrong, names, labels)) != 1 {
			t.Errorf("nothing is found in %s", wrong)
		}
	}
}

// docs/observe.md lists all of our metrics and no others.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/observe.md")
	if err != nil {
		t.Fatal(err)
	}
	names, _ := shown(t)
	listed := make(map[string]bool)
	for _, name := range regexp.MustCompile(`\btensile_[a-z_]+`).FindAllString(string(text), -1) {
		if listed[name] = true; !names[name] {
			t.Errorf("docs/observe.md has %s, which there is not", name)
		}
	}
	for name := range names {
		part := regexp.MustCompile(`_(bucket|sum|count)$`).MatchString(name)
		if strings.HasPrefix(name, "tensile_") && !part && !listed[name] {
			t.Errorf("docs/observe.md does not list %s", name)
		}
	}
}
