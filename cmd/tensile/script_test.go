package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tensile/internal/long"
	"tensile/internal/reap"
	"tensile/models/task"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// cacheHome is where caches are that tests may use: the go command's.
var cacheHome string

// TestMain makes the test binary serve as the command tensile where it is run under that name.
// No test sees the models of whoever runs it: plans would depend on them. Executors have locks of their own there.
func TestMain(m *testing.M) {
	cacheHome = os.Getenv("XDG_CACHE_HOME")
	os.Setenv("XDG_CACHE_HOME", "/nowhere")
	testscript.Main(tests{m}, map[string]func(){"tensile": command, "fakescript": fakeScript})
}

// command is what the test binary does as tensile.
var command = main

// tests are run with hang-ups handled: processes that they start die of one then, also below nohup.
type tests struct{ *testing.M }

func (t tests) Run() int { return reap.Main(t.run) }

func (t tests) run() int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	state, err := os.MkdirTemp("", "tensile-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(state)
	os.Setenv("XDG_STATE_HOME", state)
	return t.M.Run()
}

// noPause is the setting of GORACE by which a process that runs under the race detector does not wait a second at exit.
const noPause = "atexit_sleep_ms=0"

// TestScripts runs the command lines in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			root, err := filepath.Abs("../..")
			if err != nil {
				return err
			}
			e.Setenv("REPO", root) // for scripts of the repository
			e.Setenv("GORACE", noPause)
			e.Setenv("XDG_STATE_HOME", os.Getenv("XDG_STATE_HOME")) // without it leases lie below /no-home
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "long" {
				return long.On(), nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"refuses": refuses, "only": only, "same": same, "edit": edit, "cut": cut, "cifar": cifar, "mnist": mnist,
			"bars": bars,
		},
	})
}

// refuses 'regexp' ARGS... runs tensile and wants it to fail with one line on stderr that matches, nothing on stdout
// but {"error": LINE} if --json was given, and the working folder as it was.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	before := tree(ts, ts.MkAbs("."))
	err := ts.Exec("tensile", args[1:]...)
	exit, ok := errors.AsType[*exec.ExitError](err)
	stderr := ts.ReadFile("stderr")
	status := 1
	if slices.ContainsFunc(args[1:], task.IsScript) {
		status = neverStarted
	}
	if !ok || exit.ExitCode() != status {
		ts.Fatalf("ended with %v, want exit status %d; stderr:\n%s", err, status, stderr)
	}
	line, ended := strings.CutSuffix(stderr, "\n")
	line, begun := strings.CutPrefix(line, "tensile: ")
	if !begun || !ended || strings.Contains(line, "\n") || strings.Contains(line, "; ;") {
		ts.Fatalf("stderr is not one line of ours:\n%s", stderr)
	}
	stdout, want := ts.ReadFile("stdout"), ""
	if slices.Contains(args, "--json") && !strings.HasPrefix(line, "unknown flag: --json") {
		text, err := json.MarshalIndent(map[string]string{"error": line}, "", "  ")
		ts.Check(err)
		want = string(text) + "\n"
	}
	if diff := cmp.Diff(want, stdout); diff != "" {
		ts.Fatalf("stdout (-want +got):\n%s", diff)
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	if !pattern.MatchString(line) {
		ts.Fatalf("%s\ndoes not match %s", line, args[0])
	}
	if diff := cmp.Diff(before, tree(ts, ts.MkAbs("."))); diff != "" {
		ts.Fatalf("the working folder has changed:\n%s", diff)
	}
}

// only FILES... wants exactly these files in the working folder, subfolders left out.
func only(ts *testscript.TestScript, neg bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs("."))
	ts.Check(err)
	names := []string{}
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(args)
	if diff := cmp.Diff(append([]string{}, args...), names); diff != "" {
		ts.Fatalf("files (-want +got):\n%s", diff)
	}
}

// times are the figures that differ between equal plans.
var times = regexp.MustCompile(`("(?:plan|pack|prove)_ms": |planned in |packed in |proven in )[0-9.e+-]+`)

// same A B wants two outputs to be equal but for the time that planning took. With ! it wants them to differ.
func same(ts *testscript.TestScript, neg bool, args []string) {
	a, b := times.ReplaceAllString(ts.ReadFile(args[0]), "$1"), times.ReplaceAllString(ts.ReadFile(args[1]), "$1")
	if diff := cmp.Diff(a, b); (diff != "") != neg {
		ts.Fatalf("%s and %s (empty: no difference):\n%s", args[0], args[1], diff)
	}
}

// edit FILE OLD NEW replaces every OLD, of which there must be one.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not contain %s", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, args[1], args[2])), 0o666))
}

// cut FILE N leaves the first N bytes of a file.
func cut(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(number(ts, args[1]))))
}

// cifar DIR N makes the five batches of CIFAR-10, N images each.
func cifar(ts *testscript.TestScript, neg bool, args []string) {
	dir, n := ts.MkAbs(args[0]), number(ts, args[1])
	ts.Check(os.MkdirAll(dir, 0o777))
	for batch := range 5 {
		var file []byte
		for i := range n {
			file = append(file, byte((batch+i)%10))
			file = append(file, pixels(3*32*32, batch*n+i)...)
		}
		ts.Check(os.WriteFile(filepath.Join(dir, "data_batch_"+strconv.Itoa(batch+1)+".bin"), file, 0o666))
	}
}

// bars DIR WRONG makes MNIST's files of images that have one white row, which is their class, and a test set of ten
// images for each class, of which WRONG in ten have the label of the next class.
func bars(ts *testscript.TestScript, neg bool, args []string) {
	const side = 10
	dir, wrong := ts.MkAbs(args[0]), number(ts, args[1])
	ts.Check(os.MkdirAll(dir, 0o777))
	write := func(name string, n int, label func(i int) int) {
		images := []byte{0, 0, 8, 3, 0, 0, 0, byte(n), 0, 0, 0, side, 0, 0, 0, side}
		labels := []byte{0, 0, 8, 1, 0, 0, 0, byte(n)}
		for i := range n {
			for row := range side {
				value := byte(0)
				if row == i%10 {
					value = 255
				}
				images = append(images, bytes.Repeat([]byte{value}, side)...)
			}
			labels = append(labels, byte(label(i)))
		}
		ts.Check(os.WriteFile(filepath.Join(dir, name+"-images-idx3-ubyte"), images, 0o666))
		ts.Check(os.WriteFile(filepath.Join(dir, name+"-labels-idx1-ubyte"), labels, 0o666))
	}
	write("train", 20, func(i int) int { return i % 10 })
	write("t10k", 100, func(i int) int {
		if i/10 < wrong {
			return (i + 1) % 10
		}
		return i % 10
	})
}

// mnist DIR N ROWS COLUMNS makes MNIST's files with N images.
func mnist(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(writeDigits(ts.MkAbs(args[0]), number(ts, args[1]), number(ts, args[2]), number(ts, args[3])))
}

// writeDigits makes MNIST's files with n images.
func writeDigits(dir string, n, rows, columns int) error {
	head := func(values ...int) []byte {
		var b []byte
		for _, v := range values {
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
		return b
	}
	images, labels := head(0x803, n, rows, columns), head(0x801, n)
	for i := range n {
		images = append(images, pixels(rows*columns, i)...)
		labels = append(labels, byte(i%10))
	}
	return errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(filepath.Join(dir, "train-images-idx3-ubyte"), images,
		0o666), os.WriteFile(filepath.Join(dir, "train-labels-idx1-ubyte"), labels, 0o666))
}

// pixels are those of an image that is like no other.
func pixels(n, image int) []byte {
	p := bytes.Repeat([]byte{byte(image)}, n)
	for i := range p {
		p[i] += byte(i * (image + 3))
	}
	return p
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

// tree maps the files below a folder to their contents.
func tree(ts *testscript.TestScript, dir string) map[string]string {
	files := make(map[string]string)
	ts.Check(filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = string(content)
		return err
	}))
	return files
}
