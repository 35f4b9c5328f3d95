package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"tensile/data"
	"tensile/graph"
	"tensile/models"
	"tensile/models/external"
	"tensile/models/onnx"
)

// source is a source of work: a row of the table of what a MODEL can be.
type source struct {
	is    func(name string) bool
	build func(name string, s Settings) (built, error)
}

// The table of sources. A name is of the first whose is says so.
var (
	script    = source{IsScript, unrecorded}
	onnxFile  = source{onnx.IsFile, importModel}
	graphFile = source{isGraph, readGraph} // or what a script has recorded, which the content tells
	network   = source{func(string) bool { return true }, buildNetwork}

	sources = []*source{&script, &onnxFile, &graphFile, &network}
)

func sourceOf(name string) *source {
	for _, s := range sources {
		if s.is(name) {
			return s
		}
	}
	panic("task: every name is that of a network, if of nothing else")
}

// built is a model's graph, and of one that was recorded what else the file says.
type built struct {
	*graph.Graph
	recorded *external.File // nil: it was not
	file     string         // the ONNX file that it was made from; "": none
	notes    []string       // see Task
}

// build makes the graph of a model.
func (m *model) build(s Settings) (built, error) {
	switch own := m.source != &onnxFile; {
	case own && s.Loss != "":
		return built{}, fmt.Errorf("model %s has a loss of its own: leave --loss out, which is for .onnx files", m.name)
	case own && s.Order != "":
		return built{}, fmt.Errorf("model %s has an order of its own: leave --order out, which is for .onnx files",
			m.name)
	}
	return m.source.build(m.name, s)
}

// IsScript reports whether a name is that of a script of PyTorch. Its graph is there when it was recorded.
func IsScript(name string) bool { return strings.HasSuffix(name, ".py") }

func unrecorded(path string, _ Settings) (built, error) {
	return built{}, fmt.Errorf("%s is a script, whose graph has to be recorded first: tensile models graph %[1]s", path)
}

func buildNetwork(name string, s Settings) (built, error) {
	g, err := models.Build(name, models.Config{Image: s.Image, Channels: s.Channels, Classes: s.Classes,
		Sequence: s.Sequence, Vocabulary: s.Vocabulary, Batch: s.Batch, Optimizer: s.Optimizer})
	return built{Graph: g}, err
}

// readSequences tells of each network whether it reads sequences.
func readSequences(all []model, s Settings) (err error) {
	for i := range all {
		m := &all[i]
		if m.source != &network {
			continue
		}
		m.sequences, err = models.ReadsSequences(m.name)
		if info, missing := os.Stat(m.name); err != nil && missing == nil && m.name != "" {
			return noGraph(m.name, info.IsDir())
		}
		if err != nil {
			return err
		}
		if m.sequences && s.Data != "" && !data.IsArrays(s.Data) {
			return fmt.Errorf("model %s reads sequences and cannot learn from the files in %s: leave --data out, "+
				"or name a file of arrays", m.name, s.Data)
		}
	}
	return nil
}

// noGraph is the error for a MODEL that is no network, but something in the file system.
func noGraph(path string, folder bool) error {
	if folder {
		return fmt.Errorf("%s is a folder: name a network (tensile models lists them), a .json graph or an "+
			".onnx file", path)
	}
	return fmt.Errorf("%s is a file, but no .json graph, which tensile models graph MODEL makes, and no .onnx file: "+
		"other forms are not read", path)
}

// importModel makes the training graph of an ONNX file, named like the file.
func importModel(path string, s Settings) (built, error) {
	m, err := onnx.Read(nil, path)
	if err != nil {
		return built{}, err
	}
	name := filepath.Base(path)
	name = strings.TrimSuffix(name, filepath.Ext(name))
	if !fitsJob(name) {
		return built{}, fmt.Errorf("%s: jobs take the file's name: give it one of 1 to %d printable characters", path,
			maxName)
	}
	b := built{file: path}
	b.Graph, _, err = onnx.Job(m, name, onnx.Training{Batch: s.Batch, Sequence: s.Sequence, Loss: s.Loss,
		Optimizer: s.Optimizer, Order: onnx.Order(s.Order),
		Note: func(line string) { b.notes = append(b.notes, path+": "+line) }})
	if err != nil {
		return built{}, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// isGraph reports whether a name is that of a file with a graph, whose settings are its own.
func isGraph(name string) bool { return strings.HasSuffix(name, ".json") }

// readGraph reads a file once: it may be a pipe.
func readGraph(path string, _ Settings) (b built, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return built{}, fmt.Errorf("graph file %s does not exist: make one with tensile models graph MODEL", path)
	} else if err != nil {
		return built{}, err
	}
	if !isRecorded(text) {
		b.Graph, err = graph.Read(bytes.NewReader(text))
	} else if b.recorded, err = external.ReadFile(bytes.NewReader(text)); err == nil {
		b.Graph = b.recorded.Recorded.Graph
	}
	switch {
	case err != nil:
		return built{}, fmt.Errorf("%s: %w", path, err)
	case !fitsJob(b.Name):
		return built{}, fmt.Errorf("%s: the graph is called %.40q: jobs and files take its name, give it one of 1 to "+
			"%d printable characters without slashes", path, b.Name, maxName)
	}
	return b, nil
}

// isRecorded reports whether a file begins with what a script says, which is no field of a graph.
func isRecorded(text []byte) bool {
	var first struct {
		Kind string `json:"kind"`
	}
	return json.NewDecoder(bytes.NewReader(text)).Decode(&first) == nil && first.Kind != ""
}

// maxName is the limit of a graph's name in bytes: it leaves room in the name of a file.
const maxName = 100

// fitsJob reports whether a graph's name can name a job: job names appear in log lines and file names.
func fitsJob(name string) bool {
	strange := func(r rune) bool { return !strconv.IsPrint(r) || r == '/' || r == '\\' }
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, strange)
}
