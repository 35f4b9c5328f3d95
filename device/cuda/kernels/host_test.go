package kernels

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"tensile/internal/needs"
)

// host executes launches on the CPU, by the kernels' sources compiled with gcc (testdata/host.c).
type host struct {
	in  io.Writer
	out io.Reader
}

// hostProgram compiles the program, unless an earlier run of the tests has done so with the same sources and compiler.
var hostProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tensile-kernels")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	table := filepath.Join(dir, "table.c")
	if err := os.WriteFile(table, []byte(tableOf(Texts())), 0o600); err != nil {
		return "", err
	}
	for _, folder := range []string{"src", "testdata"} { // copied, so that the go command knows what the test reads
		if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
			return "", err
		}
	}
	flags := []string{"-std=gnu11", "-O1", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing",
		"-fno-builtin", "-Wall", "-Werror"}
	digest := sha256.New()
	version, err := exec.Command("gcc", "-v").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gcc: %w\n%s", err, version)
	}
	fmt.Fprintf(digest, "%q %s", flags, version)
	if err := digestFolder(digest, dir); err != nil {
		return "", err
	}
	bin, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "kernels"))
	if err != nil {
		return "", err
	}
	program := filepath.Join(bin, fmt.Sprintf("%x", digest.Sum(nil)[:8]))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(bin, 0o777); err != nil {
		return "", err
	}
	sources, err := filepath.Glob(filepath.Join(dir, "*.c"))
	if err != nil {
		return "", err
	}
	part := fmt.Sprintf("%s.%d", program, os.Getpid()) // renamed when it is whole
	args := slices.Concat(flags, []string{"-I", dir, "-o", part}, sources, []string{"-lm"})
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return program, os.Rename(part, program)
})

// digestFolder writes names and contents of all files of a folder.
func digestFolder(digest io.Writer, dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(digest, "%q %q\n", strings.TrimPrefix(path, dir), content)
		return err
	})
}

// hasHost reports whether there is what the program needs: gcc, and Linux, which maps memory where it is told.
func hasHost() bool {
	_, err := exec.LookPath("gcc")
	return err == nil && runtime.GOOS == "linux"
}

// startHost starts the program for a test, and skips it where that cannot be.
func startHost(t *testing.T) *host {
	t.Helper()
	needs.Program(t, "gcc", "gcc")
	if !hasHost() {
		t.Skip("needs Linux: the kernels' host program maps memory at given addresses")
	}
	program, err := hostProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &host{in, out}
}

var entryText = regexp.MustCompile(`(?s)\.visible \.entry (\w+)\((.*?)\)(.*?)-- End function`)

// tableOf is the C source that names the kernels of the texts, and of testdata/functions.c. It calls each with
// words of 8 bytes, which go where longs and pointers do, or as doubles.
func tableOf(texts []Text) string {
	var declarations, rows strings.Builder
	for _, text := range texts {
		for _, m := range entryText.FindAllStringSubmatch(text.PTX, -1) {
			name := m[1]
			var types, values []string
			for i := range strings.Count(m[2], ".param") {
				if strings.Contains(strings.Split(m[2], ",")[i], ".f64") {
					types, values = append(types, "double"), append(values, fmt.Sprintf("*(double *)&a[%d]", i))
				} else {
					types, values = append(types, "word"), append(values, fmt.Sprintf("a[%d]", i))
				}
			}
			fmt.Fprintf(&declarations, "void %s(%s);\nstatic void run_%s(const word *a) { %s(%s); }\n", name,
				strings.Join(types, ", "), name, name, strings.Join(values, ", "))
			barriers := 0
			if strings.Contains(m[3], "bar.sync") {
				barriers = 1
			}
			fmt.Fprintf(&rows, "\t{\"%s\", run_%s, %d},\n", name, name, barriers)
		}
	}
	names := []string{"digest_of"}
	for _, f := range functions {
		names = append(names, f.kernel)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		fmt.Fprintf(&declarations, "void %s(word, word, word);\n"+
			"static void run_%s(const word *a) { %s(a[0], a[1], a[2]); }\n", name, name, name)
		fmt.Fprintf(&rows, "\t{\"%s\", run_%s, 0},\n", name, name)
	}
	return "typedef unsigned long word;\n" + declarations.String() +
		"const struct { const char *name; void (*run)(const word *); int barriers; } table[] = {\n" + rows.String() +
		"\t{0, 0, 0},\n};\n"
}

// execute carries launches out one after the other, on memory.
func (h *host) execute(t *testing.T, m *memory, launches []Launch) {
	t.Helper()
	var job bytes.Buffer
	put := func(words ...uint64) {
		for _, w := range words {
			job.Write(binary.LittleEndian.AppendUint64(nil, w))
		}
	}
	content := m.flat()
	put(memoryBase, uint64(len(content)))
	job.Write(content)
	put(uint64(len(launches)))
	for _, l := range launches {
		name := make([]byte, 64)
		copy(name, l.Kernel)
		job.Write(name)
		put(uint64(l.Grid[0]), uint64(l.Grid[1]), uint64(l.Grid[2]), uint64(l.Block[0]), uint64(len(l.Args)))
		put(l.Args...)
	}
	if _, err := h.in.Write(job.Bytes()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(h.out, content); err != nil {
		t.Fatal(err)
	}
	m.set(content)
}
