package bench

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// known is what a paper gives for a method. 0: it does not give it.
type known struct{ msr, eor float64 }

// knownPhases is table I of the TENSILE paper, per network and phase.
var knownPhases = map[string]map[string]known{
	"vgg16":       {wholeRun: {.2670, 1.6287}, coldStart: {.2670, 6.0128}, updated: {.3192, 1.2475}},
	"inceptionv3": {wholeRun: {.4361, 1.6468}, coldStart: {.4361, 3.1128}, updated: {.4788, 1.4839}},
	"inceptionv4": {wholeRun: {.5154, 1.4281}, coldStart: {.5154, 2.6727}, updated: {.5558, 1.2898}},
	"resnet50":    {wholeRun: {.4258, 1.5540}, coldStart: {.4258, 3.5395}, updated: {.4647, 1.3813}},
	"densenet121": {wholeRun: {.5135, 1.1678}, coldStart: {.5135, 2.2532}, updated: {.5236, 1.0664}},
}

// knownFirst is table II: the EOR of the first iteration, of TENSILE and of Capuchin.
var knownFirst = map[string][2]float64{
	"vgg16":       {1.2523, 5.8053},
	"inceptionv3": {1.4744, 6.7529},
	"inceptionv4": {1.3797, 10.2088},
	"resnet50":    {1.3924, 9.6073},
	"densenet121": {1.3855, 10.0925},
}

// knownAlone is table III but for TENSILE, whose lines are those of table I.
var knownAlone = map[string]map[string]known{
	"vgg16":       {"vDNN": {.1109, 1.7835}, "Capuchin": {.2558, 1.8304}},
	"inceptionv3": {"vDNN": {.1633, 2.5184}, "Capuchin": {.4331, 2.7745}},
	"inceptionv4": {"vDNN": {.1903, 2.5028}, "Capuchin": {.5129, 3.2362}},
	"resnet50":    {"vDNN": {.1733, 2.2981}, "Capuchin": {.3859, 2.2320}},
	"densenet121": {"vDNN": {.1381, 2.6148}, "Capuchin": {.4860, 3.4400}},
}

// knownMixed is table IV.
var knownMixed = map[string]known{"vDNN": {.0580, 1.6297}, "Capuchin": {.1150, 7.6545}, "TENSILE": {.1565, 1.1589}}

// methods are the names that the paper has for what some policies do: vDNN is what the authors ran under that name, and
// TENSILE the method, with its authors' executor or with ours.
var methods = map[string]string{"vdnn-tensile": "vDNN", "capuchin": "Capuchin", paperPolicy: "TENSILE",
	"tensile-authors": "TENSILE"}

// single is what table III has for a policy.
func single(model, policy string) known {
	if methods[policy] == "TENSILE" {
		return knownPhases[model][wholeRun]
	}
	return knownAlone[model][methods[policy]]
}

// logs are the authors' own figures of TENSILE, as published with its code: they are not those of the paper.
type logs struct {
	sizes  map[size]known // figure 7: one job, per network and batch
	copies map[copies]known
}

type size struct {
	model string
	batch int
}

// copies are jobs of one network with a batch of 2 each, as figure 6 has them.
type copies struct {
	model string
	jobs  int
	phase string
}

// logged are the networks as the logs name them.
var logged = map[string]string{"VGG": "vgg16", "Inception V3": "inceptionv3", "Inception V4": "inceptionv4",
	"ResNet": "resnet50", "DenseNet": "densenet121"}

// errNoLogs says that there is no folder with the logs.
var errNoLogs = errors.New("there are no logs")

// readLogs reads the folder of the logs.
func readLogs(dir string) (*logs, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, errNoLogs
	}
	l := &logs{sizes: make(map[size]known), copies: make(map[copies]known)}
	err := readPair(dir, "BatchSize%s.csv", "", func(model, column string, k known) error {
		batch, err := strconv.Atoi(column)
		l.sizes[size{model, batch}] = k
		return err
	})
	for phase, suffix := range map[string]string{wholeRun: "", coldStart: "_cold_start"} {
		if err == nil {
			name := "MultiWorkloads%s" + suffix + ".csv"
			err = readPair(dir, name, "TENSILE:", func(model, column string, k known) error {
				jobs, err := strconv.Atoi(column[1:])
				l.copies[copies{model, jobs, phase}] = k
				return err
			})
		}
	}
	return l, err
}

// readPair reads a file with MSR and one with the overhead, which the logs give without the 1. Of the lines those count
// whose names begin with a prefix.
func readPair(dir, name, prefix string, yield func(model, column string, k known) error) error {
	var tables [2][][]string
	for i, what := range []string{"MSR", "EOR"} {
		path := filepath.Join(dir, fmt.Sprintf(name, what))
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		tables[i], err = csv.NewReader(file).ReadAll()
		file.Close()
		if err != nil {
			return fmt.Errorf("--data: %s: %w", path, err)
		}
	}
	for i, line := range tables[0] {
		for at, cell := range line {
			if i == 0 || at == 0 || cell == "" {
				continue
			}
			model, ok := logged[trimmed(line[0], prefix)]
			if !ok {
				continue
			}
			k, err := knownOf(tables, i, at)
			if err == nil {
				err = yield(model, tables[0][0][at], k)
			}
			if err != nil {
				return fmt.Errorf("--data: %s: line %d: %w", fmt.Sprintf(name, "MSR"), i+1, err)
			}
		}
	}
	return nil
}

// trimmed is a name without its prefix; "" if it has another.
func trimmed(name, prefix string) string {
	if len(name) < len(prefix) || name[:len(prefix)] != prefix {
		return ""
	}
	return name[len(prefix):]
}

// knownOf reads a cell of both tables.
func knownOf(tables [2][][]string, line, at int) (k known, err error) {
	if line >= len(tables[1]) || at >= len(tables[1][line]) {
		return k, errors.New("there is no overhead for it")
	}
	if k.msr, err = strconv.ParseFloat(tables[0][line][at], 64); err != nil {
		return k, err
	}
	k.eor, err = strconv.ParseFloat(tables[1][line][at], 64)
	k.eor++
	return k, err
}
