package controller

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/wire"
)

func init() { checkStates = true }

// TestNextStates holds the table of transitions: a job that is not over can come to all states, but for one that was told
// to end, which ends; and a job that is over to none.
func TestNextStates(t *testing.T) {
	over := []wire.JobState{wire.JobFinished, wire.JobStopped, wire.JobFailed}
	states := append(slices.Sorted(maps.Keys(nextStates)), over...)
	for from := range nextStates {
		reached := map[wire.JobState]bool{from: true}
		for grown := true; grown; {
			grown = false
			for s := range maps.Clone(reached) {
				for _, to := range states {
					if mayEnter(s, to) && !reached[to] {
						reached[to], grown = true, true
					}
				}
			}
		}
		for _, to := range states {
			if want := to.Over() || from != wire.JobStopping || to == wire.JobStopping; reached[to] != want {
				t.Errorf("a job that is %s can become %s: %t", from, to, reached[to])
			}
		}
	}
	for _, from := range over {
		for _, to := range states {
			if mayEnter(from, to) {
				t.Errorf("a job that is %s may become %s", from, to)
			}
		}
	}
}

// TestOneWriterOfStates looks for code of the package beside enter that writes a job's state.
func TestOneWriterOfStates(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.FuncDecl); ok && d.Name.Name == "enter" {
				return false
			}
			a, ok := n.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for _, left := range a.Lhs {
				s, ok := left.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "State" {
					continue
				}
				if r, ok := s.X.(*ast.SelectorExpr); ok && r.Sel.Name == "record" {
					t.Errorf("%s writes the state of a job beside enter", set.Position(a.Pos()))
				}
			}
			return true
		})
	}
}
