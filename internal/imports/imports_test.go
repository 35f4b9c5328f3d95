package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "tensile/internal/long" // the flag -long
)

// TestModule checks every Go file of the module.
func TestModule(t *testing.T) {
	const root, flag = "../..", `"tensile/internal/long"`
	var seen []string
	imported := make(map[string]string) // packages of ours, with a file that imports each
	long := make(map[string]bool)       // whether a package with tests has the flag -long
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (name[0] == '.' || name[0] == '_' ||
			name == "testdata") {
			return filepath.SkipDir
		}
		if other := filepath.Ext(path); slices.Contains([]string{".s", ".S", ".c", ".cc", ".cpp", ".syso"}, other) &&
			!strings.HasPrefix(filepath.ToSlash(path), root+"/device/") {
			t.Errorf("%s: what is not written in Go belongs below device", path)
		}
		if name := entry.Name(); name == "go.work" || name == "vendor" ||
			name == "go.mod" && filepath.Dir(path) != root {
			t.Errorf("%s: the module has one go.mod, and all of its packages are in the table", path)
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(dir)
		for _, spec := range file.Imports {
			if to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, "\"`"), module+"/"); ours {
				imported[to] = path
			}
		}
		if !slices.Contains(seen, pkg) {
			seen = append(seen, pkg)
			if placeOf(pkg).row < 0 && !slices.Contains(helpers, pkg) {
				t.Errorf("package %s has no row in the table", pkg)
			}
		}
		if strings.HasSuffix(path, "_test.go") {
			long[pkg] = long[pkg] || pkg == "internal/long" || slices.ContainsFunc(file.Imports,
				func(i *ast.ImportSpec) bool { return i.Path.Value == flag })
		}
		for _, problem := range check(pkg, file, strings.HasSuffix(path, "_test.go")) {
			t.Errorf("%s: %s", filepath.ToSlash(path), problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, path := range imported {
		if !slices.Contains(seen, pkg) { // in testdata or _x, which go build finds by its path
			t.Errorf("%s: imports %s, which was not seen", path, pkg)
		}
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)^\s*replace\b`).Match(mod) { // by a name that looks like one of the standard library
		t.Error("go.mod replaces a module")
	}
	for pkg, has := range long {
		if !has {
			t.Errorf("no test of package %s imports %s, so that go test ./... -long fails there", pkg, flag)
		}
	}
	for _, pkg := range []string{"graph", "device/cpu/kernel", "cmd/tensile", "internal/imports"} {
		if !slices.Contains(seen, pkg) {
			t.Errorf("package %s was not seen", pkg)
		}
	}
}

// TestCheck shows that the checking function says no to each kind of thing that it is there for, and to nothing else.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		pkg, code string
		want      string
	}{
		{"plan", `import "tensile/graph"`, ""},
		{"cmd/tensile",
			`import ("tensile/bench"; "tensile/device/sim"; "os"; "github.com/spf13/cobra"); var _ = os.Args`, ""},
		{"graph", `import "tensile/graph/invariants"`, ""},
		{"device/cpu",
			`import ("tensile/device"; "tensile/device/cpu/kernel"; "time"); func f() { go f(); time.Now() }`, ""},
		{"models", `import "tensile/graph/autodiff"`, ""},

		{"graph", `import "tensile/plan"`, "graph imports plan from a floor above"},
		{"bench", `import "tensile/cmd/tensile"`, "bench imports cmd/tensile from a floor above"},
		{"controller/local", `import "tensile/bench"`, "controller/local imports bench from a floor above"},
		{"predictor", `import "tensile/peak"`, "predictor imports peak of its own floor"},
		{"plan", `import "tensile/plan/program"`, "plan imports plan/program from a row above"},
		{"plan/proof", `import ("tensile/graph"; "tensile/plan"; "tensile/plan/program")`, ""},
		{"plan/proof", `import "tensile/plan/compile"`,
			"plan/proof imports plan/compile, and may import only graph, plan, plan/program"},
		{"plan/proof", `import "tensile/plan/pool"`,
			"plan/proof imports plan/pool, and may import only graph, plan, plan/program"},
		{"plan/compile", `import "tensile/plan/proof"`, ""},
		{"models", `import "tensile/models/onnx"`, "models imports models/onnx of its own row"},
		{"bench", `import "tensile/scheduler/rivals/zico"`, ""},
		{"scheduler/planner", `import "tensile/scheduler/rivals"`,
			"scheduler/planner imports scheduler/rivals from a floor above"},
		{"controller/local", `import "tensile/scheduler/rivals/paper"`,
			"controller/local imports scheduler/rivals/paper from a floor above"},
		{"device/sim", `import "tensile/device/cuda"`, "device/sim imports device/cuda of its own row"},
		{"plan/pool", `import "tensile/graph"`, "plan/pool imports graph, which it must not know"},
		{"scheduler", `import "tensile/predictor"`, "scheduler imports predictor, which it must not know"},
		{"controller", `import "tensile/executor"`, "controller imports executor, which it must not know"},
		{"executor", `import "tensile/controller"`, "executor imports controller, which it must not know"},
		{"bench", `import "tensile/odds"`, "bench imports odds, which has no row in the table"},
		{"bench", `import "tensile/device/devicetest"`, "bench imports device/devicetest, which is for tests"},
		{"plan/randtest", `import "tensile/models/graphtest"`, ""},
		{"internal/golden", `import ("flag"; "github.com/google/go-cmp/cmp")`, ""},

		{"graph", `import "gonum.org/v1/gonum/blas"`, "graph imports gonum.org/v1/gonum/blas, which enters through " +
			"predictor"},
		{"bench", `import "github.com/spf13/cobra/doc"`, "bench imports github.com/spf13/cobra/doc, which enters " +
			"through cmd/tensile"},
		{"bench", `import "github.com/spf13/cobralike"`, "bench imports github.com/spf13/cobralike, which is not in " +
			"the table of foreign libraries"},
		{"bench", `import "example.org/x"`, "bench imports example.org/x, which is not in the table of foreign " +
			"libraries"},
		{"bench", `import "C"`, "bench imports C, which enters through device/cuda/driver and " +
			"device/cuda/fakecuda/bridge and device/cuda/fakecuda/library"},
		{"predictor", `import "gorgonia.org/cu"`, "predictor imports gorgonia.org/cu, which enters through " +
			"device/cuda/driver"},
		{"predictor", `import "gorgonia.org/gorgonia"`, ""},
		{"device/cuda/driver", `import ("C"; "gorgonia.org/cu")`, ""},
		{"bench", `import "github.com/google/go-cmp/cmp"`, "bench imports github.com/google/go-cmp/cmp, which is " +
			"for tests"},

		{"scheduler", `import "time"; var _ = time.Now`, "scheduler uses time.Now"},
		{"scheduler", `import clock "time"; func f() { clock.Sleep(1) }`, "scheduler uses time.Sleep"},
		{"scheduler", `import "time"; const _ = time.Second`, ""},
		{"device/sim", `import "time"; var _ = time.Since(t)`, "device/sim uses time.Since"},
		{"scheduler/policies/lru", `import "time"; var _ = time.Now`, "scheduler/policies/lru uses time.Now"},
		{"scheduler/policies/lru", `import "os"`, "scheduler/policies/lru imports os, but only computes"},
		{"scheduler/rivals/lru", `import "os"`, "scheduler/rivals/lru imports os, but only computes"},
		{"scheduler/policies/lru", `import "tensile/predictor"`,
			"scheduler/policies/lru imports predictor, which it must not know"},
		{"plan", `func f() { go f() }`, "plan starts a goroutine"},
		{"plan", `import "os"`, "plan imports os, but only computes"},
		{"plan", `import "math/rand"`, "plan imports math/rand, but only computes"},
		{"plan", `import . "time"`, "plan imports time without a name"},
		{"plan", `import "math/rand/v2"; var _ = rand.IntN(1)`, "plan uses rand.IntN, which has no seed"},
		{"plan", `import "math/rand/v2"; func f(r *rand.Rand) int { return rand.New(rand.NewPCG(1, 2)).IntN(1) }`, ""},
		{"plan", `import "os/signal"`, "plan imports os/signal, but only computes"},
		{"plan", `import "crypto/rand"`, "plan imports crypto/rand, but only computes"},
		{"plan", `import "runtime/debug"`, "plan imports runtime/debug, but only computes"},
		{"plan", `import "sync/atomic"`, "plan imports sync/atomic, but only computes"},
		{"data", `import "sync"; func f() { var w sync.WaitGroup; w.Go(f) }`, "data starts a goroutine"},
		{"data", `import "context"; var _ = context.WithTimeoutCause`, "data uses context.WithTimeoutCause"},
		{"device/cpu", `import "syscall"; var _ = syscall.Getenv`,
			"device/cpu uses syscall.Getenv, which only cmd/tensile does"},
		{"executor/agent", `import "os/exec"`, "executor/agent imports os/exec, but starts no programs"},
		{"executor", `import "unsafe"`,
			"executor imports unsafe, by which anything can be made a program that may run"},
		{"device/cpu", `import "unsafe"`, ""},
		{"bench", `import "testing"`, "bench imports testing, which is for tests"},
		{"device/cpu", "//go:linkname check tensile/plan/proof.check\nfunc check()",
			"device/cpu has a go:linkname, which is an import that no table knows"},
		{"bench", `import "flag"`, "bench imports flag, which only cmd/tensile reads"},
		{"device/cpu", `import "os"; var _ = os.Getenv("X")`, "device/cpu uses os.Getenv, which only cmd/tensile does"},
	} {
		if got := problemsOf(t, test.pkg, test.code, false); got != test.want {
			t.Errorf("%s with %s: %q, want %q", test.pkg, test.code, got, test.want)
		}
	}
}

// TestProgram shows that a package main is told where none belongs.
func TestProgram(t *testing.T) {
	file := &ast.File{Name: ast.NewIdent("main")}
	for pkg, want := range map[string]string{"cmd/tensile": "", "bench": "bench is a program", "internal/mutants": ""} {
		if got := strings.Join(check(pkg, file, false), "; "); got != want {
			t.Errorf("a package main in %s: %q, want %q", pkg, got, want)
		}
	}
}

// TestCheckTests shows what is asked of test files: only that foreign libraries are known.
func TestCheckTests(t *testing.T) {
	for _, test := range []struct{ pkg, code, want string }{
		{"graph",
			`import ("tensile/device/devicetest"; "time"; "os"; "github.com/google/go-cmp/cmp"); func f() { go f(); ` +
				`time.Now() }`, ""},
		{"cmd/tensile", `import "github.com/rogpeppe/go-internal/testscript"`, ""},
		{"bench", `import "github.com/rogpeppe/go-internal/testscript"`,
			"bench imports github.com/rogpeppe/go-internal/testscript, which is for the tests of cmd/tensile"},
		{"graph", `import "github.com/stretchr/testify"`, "graph imports github.com/stretchr/testify, which is not " +
			"in the table of foreign libraries"},
		{"graph", `import "gonum.org/v1/gonum/blas/gonum"`, "graph imports gonum.org/v1/gonum/blas/gonum, which " +
			"enters through predictor"},
	} {
		if got := problemsOf(t, test.pkg, test.code, true); got != test.want {
			t.Errorf("%s with %s: %q, want %q", test.pkg, test.code, got, test.want)
		}
	}
}

func problemsOf(t *testing.T, pkg, code string, isTest bool) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "made_up.go", "package made_up; "+code,
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(check(pkg, file, isTest), "; ")
}

// TestTable checks the table against itself: a package stands in one row, and every exception is about packages in it.
func TestTable(t *testing.T) {
	for folder, rows := range rooms {
		if placeOf(folder).floor < 0 {
			t.Errorf("folder %s is on no floor", folder)
		}
		count := make(map[string]int)
		for _, row := range rows {
			for _, pkg := range row {
				count[pkg]++
				if !below(pkg, folder) {
					t.Errorf("%s stands in the rows of %s", pkg, folder)
				}
			}
		}
		for pkg, n := range count {
			if n > 1 {
				t.Errorf("%s stands in %d rows", pkg, n)
			}
		}
	}
	for _, folders := range house {
		for _, folder := range folders {
			if rooms[folder] == nil {
				t.Errorf("folder %s has no rows", folder)
			}
		}
	}
	for pkg, others := range only {
		for _, p := range append(others, pkg) {
			if placeOf(p).row < 0 {
				t.Errorf("package %s, of those with few imports, has no row", p)
			}
		}
	}
	for _, pkg := range helpers {
		if !strings.HasPrefix(pkg, "internal/") && !strings.HasSuffix(pkg, "test") {
			t.Errorf("%s is for tests, and its name does not end in test", pkg)
		}
	}
	for _, pkg := range timeless {
		if placeOf(pkg).row < 0 {
			t.Errorf("timeless package %s has no row", pkg)
		}
	}
	for _, doors := range foreign {
		for _, door := range doors {
			if placeOf(door).row < 0 {
				t.Errorf("foreign libraries enter through %s, which has no row", door)
			}
		}
	}
}
