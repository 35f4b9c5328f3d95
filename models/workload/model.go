package workload

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

// maxCopies limits a typing error, not a use.
const maxCopies = 1000

// split cuts the number of copies off a name. A number of blocks per stage, as in resnet:2,2,2,2, is not one.
func split(name string) (model string, copies int, err error) {
	head, tail, found := cutLast(name, ":")
	if !found || strings.Contains(tail, ",") {
		return name, 1, nil
	}
	n, err := strconv.Atoi(tail)
	if err != nil || n < 1 || n > maxCopies {
		return "", 0, fmt.Errorf("model %q: the number of copies after the colon must be 1 to %d", name, maxCopies)
	}
	return head, n, nil
}

// splitAll splits every name.
func splitAll(names []string) (models []string, copies []int, err error) {
	for _, name := range names {
		model, n, err := split(name)
		if err != nil {
			return nil, nil, err
		}
		models, copies = append(models, model), append(copies, n)
	}
	return models, copies, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// isGraph reports whether a model is a file with a graph, whose settings are its own.
func isGraph(model string) bool { return strings.HasSuffix(model, ".json") }

// built is a model's graph, and of one that was recorded what else the file says.
type built struct {
	*graph.Graph
	recorded *external.File // nil: it was not
	file     string         // the ONNX file that it was made from; "": none
	notes    []string       // see task.Task
}

func build(model string, s Settings) (built, error) {
	switch {
	case onnx.IsFile(model):
		return importModel(model, s)
	case s.Loss != "":
		return built{}, fmt.Errorf("model %s has a loss of its own: leave --loss out, which is for .onnx files", model)
	case s.Order != "":
		return built{}, fmt.Errorf("model %s has an order of its own: leave --order out, which is for .onnx files",
			model)
	case isGraph(model):
		return readGraph(model)
	}
	g, err := models.Build(model, models.Config{Image: s.Image, Channels: s.Channels, Classes: s.Classes,
		Sequence: s.Sequence, Vocabulary: s.Vocabulary, Batch: s.Batch, Optimizer: s.Optimizer})
	return built{Graph: g}, err
}

// sequenceReaders tells for each network whether it reads sequences. Graphs in files are left out.
func sequenceReaders(names []string, s Settings) (map[string]bool, error) {
	sequences := make(map[string]bool)
	for _, name := range names {
		if isGraph(name) || onnx.IsFile(name) {
			continue
		}
		reads, err := models.ReadsSequences(name)
		if info, missing := os.Stat(name); err != nil && missing == nil && name != "" {
			return nil, noGraph(name, info.IsDir())
		}
		if err != nil {
			return nil, err
		}
		if reads && s.Data != "" && !data.IsArrays(s.Data) {
			return nil, fmt.Errorf("model %s reads sequences and cannot learn from the files in %s: leave --data out, "+
				"or name a file of arrays", name, s.Data)
		}
		sequences[name] = reads
	}
	return sequences, nil
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

// settingsOf returns the settings that apply to a model. Where some networks read images and others sequences, each
// gets the settings of its sort. Where all are of one sort, models.Build refuses a setting of the other.
func (s Settings) settingsOf(model string, sequences map[string]bool) Settings {
	mixed := false
	for _, reads := range sequences {
		mixed = mixed || reads != sequences[model]
	}
	switch {
	case !mixed:
	case sequences[model]:
		s.Image, s.Channels, s.Classes = 0, 0, 0
	default:
		s.Sequence, s.Vocabulary = 0, 0
	}
	return s
}

// Heeded returns an error for a size that none of the models heeds, as all are files, which have their sizes. An ONNX
// file may leave the batch and other extents open.
func (s Settings) Heeded(names []string) error {
	open := false
	for _, name := range names {
		model, _, err := split(name)
		if err != nil || !isGraph(model) && !onnx.IsFile(model) {
			return nil
		}
		open = open || onnx.IsFile(model)
	}
	for _, size := range []struct {
		flag  string
		value int
		open  bool // an ONNX file may leave it open
	}{
		{"image", s.Image, false}, {"channels", s.Channels, false}, {"classes", s.Classes, false},
		{"vocabulary", s.Vocabulary, false}, {"batch", s.Batch, true}, {"sequence", s.Sequence, true},
	} {
		switch {
		case size.value == 0 || open && size.open:
		case open:
			return fmt.Errorf("%s has its sizes in the file: leave --%s out; what the file leaves open is given by "+
				"--batch and --sequence", names[0], size.flag)
		default:
			return fmt.Errorf("%s has its sizes in the file: leave --%s out", names[0], size.flag)
		}
	}
	return nil
}

// importModel makes the training graph of an ONNX file, named like the file.
func importModel(path string, s Settings) (built, error) {
	m, err := onnx.Read(nil, path)
	if errors.Is(err, fs.ErrNotExist) {
		return built{}, fmt.Errorf("ONNX file %s does not exist: export one (docs/onnx.md)", path)
	} else if err != nil {
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

func readGraph(path string) (built, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return built{}, fmt.Errorf("graph file %s does not exist: make one with tensile models graph MODEL", path)
	} else if err != nil {
		return built{}, err
	}
	var b built
	if isRecorded(text) {
		if b.recorded, err = external.ReadFile(bytes.NewReader(text)); err == nil {
			b.Graph = b.recorded.Recorded.Graph
		}
	} else {
		b.Graph, err = graph.Read(bytes.NewReader(text))
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
