package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is a line of `go test -json` (see `go doc cmd/test2json`, and `go help buildjson` for ImportPath).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// report prints events in the form of `go test` without flags, and counts skips.
type report struct {
	out     io.Writer
	pending map[string][]event // output of packages that are not done
	skips   map[string]int     // by reason
	long    int                // tests that are skipped unless -long is given
}

func newReport(out io.Writer) *report {
	return &report{out: out, pending: make(map[string][]event), skips: make(map[string]int)}
}

// line takes a line of go's output. What is no event is printed as it is.
func (r *report) line(text []byte) {
	var e event
	if len(text) == 0 {
		return
	}
	if err := json.Unmarshal(text, &e); err != nil || e.Action == "" {
		r.out.Write(text)
		return
	}
	switch {
	case e.Action == "build-output":
		io.WriteString(r.out, e.Output)
	case e.Action == "output":
		r.pending[e.Package] = append(r.pending[e.Package], e)
	case e.Action == "skip" && e.Test != "":
		r.skip(e)
	case e.Action == "pass" && e.Test != "":
		r.forget(e)
	case e.Action == "fail" && e.Test == "":
		r.print(e.Package)
	case (e.Action == "pass" || e.Action == "skip") && e.Test == "":
		r.result(e.Package)
	}
}

// skipped finds the reason in a skip's output: "    x_test.go:12: needs PyTorch: install ...".
var skipped = regexp.MustCompile(`(?m)^\s*(?:\S+\.go:\d+: )?needs ([^:\n]+)`)

// tooLong finds the reason that package long gives, also in a script.
var tooLong = regexp.MustCompile(`(?m)^\s*(?:\S+\.go:\d+: )?(?:skip: )?long: `)

func (r *report) skip(e event) {
	var text strings.Builder
	for _, o := range r.pending[e.Package] {
		if o.Test == e.Test {
			text.WriteString(o.Output)
		}
	}
	if m := skipped.FindStringSubmatch(text.String()); m != nil {
		r.skips[m[1]]++
	} else if tooLong.MatchString(text.String()) {
		r.long++
	}
	r.forget(e)
}

// forget drops the output of a test that did not fail.
func (r *report) forget(e event) {
	r.pending[e.Package] = slices.DeleteFunc(r.pending[e.Package], func(o event) bool { return o.Test == e.Test })
}

// print writes what is left of a package that failed: the output of its failed and unfinished tests.
func (r *report) print(pkg string) {
	for _, o := range r.pending[pkg] {
		if o.Test == "" || !strings.HasPrefix(o.Output, "=== ") {
			io.WriteString(r.out, o.Output)
		}
	}
	delete(r.pending, pkg)
}

// result writes the line of a package that passed or has no tests.
func (r *report) result(pkg string) {
	for _, o := range r.pending[pkg] {
		if o.Test == "" && (strings.HasPrefix(o.Output, "ok  \t") || strings.HasPrefix(o.Output, "?   \t")) {
			io.WriteString(r.out, o.Output)
		}
	}
	delete(r.pending, pkg)
}

// end writes what packages said that never ended, and the line of skipped tests.
func (r *report) end() {
	for _, pkg := range slices.Sorted(maps.Keys(r.pending)) {
		r.print(pkg)
	}
	if r.long > 0 {
		fmt.Fprintf(r.out, "long tests left to make test-all: %d, and the full length of others\n", r.long)
	}
	if len(r.skips) == 0 {
		fmt.Fprintln(r.out, "skipped: nothing that this machine lacks data or programs for")
		return
	}
	reasons := slices.SortedFunc(maps.Keys(r.skips), func(a, b string) int {
		return cmp.Or(r.skips[b]-r.skips[a], strings.Compare(a, b))
	})
	for i, reason := range reasons {
		verb := "need"
		if r.skips[reason] == 1 {
			verb = "needs"
		}
		reasons[i] = fmt.Sprintf("%d %s %s", r.skips[reason], verb, reason)
	}
	fmt.Fprintf(r.out, "skipped: %s\n", strings.Join(reasons, ", "))
}
