package main

import (
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/internal/long"
	_ "tensile/internal/long" // the flag -long
)

const sample = `package sample

import "fmt"

func Least(a, b int) (int, bool) {
	n := 0
	if a < b && !odd(a) {
		n++
		return a, true
	}
	switch {
	case a == 7:
		fmt.Println("a is", a+1)
		n = b
	}
	if n > 1 {
		n = n - 0
	}
	if a < b {
		return a, true
	}
	return b, false
}

func odd(n int) bool { return n%2 != 0 }
`

// Every change that the package comment names is made, in place, and the file stays Go.
func TestEdits(t *testing.T) {
	edits, err := editsOf("sample.go", sample)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range edits {
		got = append(got, strings.TrimPrefix(e.String(), "sample.go "))
		if _, err := parser.ParseFile(token.NewFileSet(), "sample.go", e.apply(sample), 0); err != nil {
			t.Errorf("%s: %v", e, err)
		}
	}
	want := []string{
		"Least: 0 -> 1",
		"Least: a < b && !odd(a) -> a < b || !odd(a)",
		"Least: a < b -> a <= b", "Least: a < b -> a >= b",
		"Least: !odd(a) -> odd(a)",
		"Least: n++ -> left out",
		"Least: true -> false",
		"Least: a == 7 -> false", "Least: a == 7 -> a != 7", "Least: 7 -> 8",
		`Least: fmt.Println("a is", a+1) -> left out`,
		"Least: n = b -> left out",
		"Least: n > 1 -> n >= 1", "Least: n > 1 -> n <= 1", "Least: 1 -> 2",
		"Least: n = n - 0 -> left out", "Least: n - 0 -> n + 0", "Least: 0 -> 1 (2)",
		"Least: a < b -> a <= b (2)", "Least: a < b -> a >= b (2)",
		"Least: true -> false (2)",
		"Least: false -> true",
		"odd: n%2 != 0 -> n%2 == 0", "odd: 2 -> 3", "odd: 0 -> 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// A change is noticed, not noticed, or no Go; tests that hang have noticed.
func TestTry(t *testing.T) {
	long.Only(t)
	t.Chdir(t.TempDir())
	text := "package p\n\nfunc Max(a, b int) int {\n\tif a > b {\n\t\treturn a\n\t}\n\tfor b < 0 " +
		"{\n\t\tb++\n\t}\n\treturn b\n}\n"
	for name, text := range map[string]string{"go.mod": "module p\n\ngo 1.26.0\n", "p.go": text,
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestMax(t *testing.T) {\n\tif Max(1, 2) != 2 || Max(2," +
			" 1) != 2 || Max(-2, -1) != 0 {\n\t\tt.Fail()\n\t}\n}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	edits, err := editsOf("p.go", text)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]outcome)
	for _, e := range edits {
		timeout := time.Minute
		if e.is == "left out" || e.is == "b >= 0" {
			timeout = 5 * time.Second // the loop never ends
		}
		got[e.was+" -> "+e.is] = try(e, text, []string{"."}, timeout)
	}
	edits[0].by = "=>"
	got["no Go"] = try(edits[0], text, []string{"."}, time.Minute)
	want := map[string]outcome{"a > b -> a >= b": unnoticed, "a > b -> a <= b": noticed, "b < 0 -> b <= 0": noticed,
		"b < 0 -> b >= 0": noticed,
		"0 -> 1":          noticed, "b++ -> left out": noticed, "no Go": uncompiled}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// Each survivor is listed once, with a reason.
func TestKnown(t *testing.T) {
	if _, err := readSurvivors(survivors); err != nil {
		t.Error(err)
	}
	reasons, err := readSurvivors("# a comment\na.go f: x -> y\n\tbecause\n\tof that\n\nb.go g: 1 -> 2\n\tfor speed\n")
	if want := map[string]string{"a.go f: x -> y": "because of that ", "b.go g: 1 -> 2": "for speed "}; err != nil ||
		!cmp.Equal(want, reasons) {
		t.Errorf("%v, %v", reasons, err)
	}
	for _, bad := range []string{"a\n", "a\n\tx\na\n\ty\n"} {
		if _, err := readSurvivors(bad); err == nil {
			t.Errorf("%q is taken for a list", bad)
		}
	}
}
