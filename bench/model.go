package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"tensile/graph"
	"tensile/models"
)

// split takes the number of copies off a name. A number of blocks per stage, as in resnet:2,2,2,2, is not one.
func split(name string) (model string, copies int, err error) {
	head, tail, found := cutLast(name, ":")
	if !found || strings.Contains(tail, ",") {
		return name, 1, nil
	}
	const most = 1000
	n, err := strconv.Atoi(tail)
	if err != nil || n < 1 || n > most {
		return "", 0, fmt.Errorf("model %q: the number of copies after the colon must be 1 to %d", name, most)
	}
	return head, n, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func build(model string, s Settings) (*graph.Graph, error) {
	if strings.HasSuffix(model, ".json") {
		return readGraph(model)
	}
	return models.Build(model, models.Config{Image: s.Image, Channels: s.Channels, Classes: s.Classes, Batch: s.Batch, Optimizer: s.Optimizer})
}

func readGraph(path string) (*graph.Graph, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("graph file %s does not exist: make one with tensile graph MODEL", path)
	} else if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	g, err := graph.Read(f)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case !fitsJob(g.Name):
		return nil, fmt.Errorf("%s: the graph is called %.40q: jobs and files take its name, give it one of 1 to %d printable characters without slashes",
			path, g.Name, longestName)
	}
	return g, nil
}

// longestName leaves room in a file's name.
const longestName = 100

// fitsJob reports whether a graph's name can be that of a job, which stands in lines and in the names of files.
func fitsJob(name string) bool {
	strange := func(r rune) bool { return !strconv.IsPrint(r) || r == '/' || r == '\\' }
	return name != "" && len(name) <= longestName && utf8.ValidString(name) && !strings.ContainsFunc(name, strange)
}
