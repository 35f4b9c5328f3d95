package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tensile/internal/long"
)

// The version is that of the newest section of the changelog.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## (\S+)`).FindSubmatch(text)
	if newest == nil || string(newest[1]) != version {
		t.Errorf("version %s, the changelog's newest section is %q", version, newest)
	}
}

// NOTICE names every module that is linked, with the CUDA device or without, and no other.
func TestNotice(t *testing.T) {
	notice, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	out := goCommand(t, ".", "env", "CGO_ENABLED=1", "go", "list", "-tags", "gpu", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", ".")
	linked := make(map[string]bool)
	for _, module := range strings.Fields(out) {
		linked[module] = true
	}
	named := make(map[string]bool)
	for _, line := range regexp.MustCompile(`(?m)^  ([a-z0-9.]+/\S+) `).FindAllStringSubmatch(string(notice), -1) {
		named[line[1]] = true
	}
	for module := range linked {
		if !named[module] {
			t.Errorf("NOTICE does not name %s: see its licence and add it", module)
		}
	}
	for module := range named {
		if !linked[module] {
			t.Errorf("NOTICE names %s, which is not linked any more", module)
		}
	}
}

// Every command of the README and of docs/run.md exists, with its flags and arguments.
func TestReadme(t *testing.T) {
	for path, least := range map[string]int{"../../README.md": 10, "../../docs/run.md": 1} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := regexp.MustCompile(`(?m)^    (?:\$ )?(?:bin/)?tensile ([^#&\n]+)`).FindAllStringSubmatch(string(text),
			-1)
		if len(lines) < least {
			t.Errorf("%s has %d commands", path, len(lines))
		}
		for _, line := range lines {
			c, args, err := root().Find(strings.Fields(line[1]))
			if err == nil {
				err = c.ParseFlags(args)
			}
			if err == nil {
				err = c.ValidateArgs(c.Flags().Args())
			}
			if err != nil || !c.HasParent() {
				t.Errorf("%s: tensile %s: %v", path, line[1], err)
			}
		}
	}
}

// The packages are used from another module as the README says: with a replace directive.
func TestReplace(t *testing.T) {
	long.Only(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const edit = "go mod edit -require=tensile@v0.0.0 -replace=tensile=../tensile"
	if !strings.Contains(strings.Join(strings.Fields(string(readme)), " "), "`"+edit+"`") {
		t.Errorf("the README does not say %s", edit)
	}
	dir := t.TempDir()
	files := map[string]string{
		"go.mod": "module example.com/use\n\ngo 1.26.0\n",
		"main.go": `package main

import (
	"fmt"

	"tensile/plan/pool"
)

func main() {
	buffers := []pool.Buffer{{Size: 8, Spans: []pool.Span{{0, 2}}}, {Size: 8, Spans: []pool.Span{{2, 4}}}}
	layout, err := pool.Pack(buffers, pool.Options{})
	fmt.Println(layout.Height, err)
}
`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	goCommand(t, dir, strings.Fields(strings.Replace(edit, "../tensile", root, 1))...)
	goCommand(t, dir, "go", "mod", "tidy")
	if out := goCommand(t, dir, "go", "run", "."); out != "8 <nil>\n" {
		t.Errorf("the program printed %s", out)
	}
}

// goCommand runs the go command in a folder, without a network and with the cache of whoever runs the test.
func goCommand(t *testing.T, dir string, words ...string) string {
	t.Helper()
	c := exec.Command(words[0], words[1:]...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=", "XDG_CACHE_HOME="+cacheHome)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return string(out)
}
