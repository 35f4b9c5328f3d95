package bench

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tensile/plan/pool"
)

// HardPacking is an instance that is to fit into a capacity, beside what others published about it.
type HardPacking struct {
	Packing
	Capacity     int64         `json:"capacity_bytes"`
	Within       MethodPacking `json:"within_capacity"` // a search that ends when the capacity is met
	Met          bool          `json:"capacity_met"`
	MiniMalloc   *float64      `json:"published_minimalloc_ms"`       // to fit into the capacity; nil: not published
	TVMHillClimb *float64      `json:"published_tvm_hillclimb_ratio"` // of height to lower bound
}

// baselines is a table of published figures among the instances.
const baselines = "published_baselines.csv"

// hard measures the instances NAME.CAPACITY.csv of a folder.
func (m *packer) hard(dir string, rounds int) ([]HardPacking, error) {
	paths, err := tables(dir)
	if err != nil {
		return nil, err
	}
	published, err := readPublished(filepath.Join(dir, baselines))
	if err != nil {
		return nil, err
	}
	rows := []HardPacking{}
	for _, path := range paths {
		name, capacity, err := capacityOf(path)
		if err != nil {
			return nil, err
		}
		buffers, err := readBuffers(path)
		if err != nil {
			return nil, err
		}
		row := HardPacking{Capacity: capacity}
		if row.Packing, err = m.all(name, buffers); err != nil {
			return nil, err
		}
		l, took, err := m.pack(name, buffers, pool.Options{Capacity: capacity, Rounds: rounds})
		if err != nil {
			return nil, err
		}
		row.Within, row.Met = methodPacking("search", l, took), l.Height <= capacity
		if p, ok := published[name]; ok {
			ratio := p.tvmPeak / float64(row.LowerBound)
			row.MiniMalloc, row.TVMHillClimb = &p.miniMalloc, &ratio
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// steps measures the training steps in a folder.
func (m *packer) steps(dir string) ([]Packing, error) {
	paths, err := tables(dir)
	if err != nil {
		return nil, err
	}
	rows := []Packing{}
	for _, path := range paths {
		buffers, err := readBuffers(path)
		if err != nil {
			return nil, err
		}
		row, err := m.all(strings.TrimSuffix(filepath.Base(path), ".csv"), buffers)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// tables are the paths of the CSV files with buffers in a folder, sorted.
func tables(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".csv") && name != baselines {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("folder %s holds no instance: put CSV files with the columns id,lower,upper,size there",
			dir)
	}
	return paths, nil
}

func readBuffers(path string) ([]pool.Buffer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	_, buffers, err := pool.ReadCSV(f, path)
	return buffers, err
}

// capacityOf splits a path NAME.CAPACITY.csv.
func capacityOf(path string) (name string, capacity int64, err error) {
	base := strings.TrimSuffix(filepath.Base(path), ".csv")
	extension := filepath.Ext(base)
	name = strings.TrimSuffix(base, extension)
	if capacity, err = strconv.ParseInt(strings.TrimPrefix(extension, "."), 10, 64); err != nil || capacity < 1 ||
		name == "" {
		return "", 0, fmt.Errorf("%s: the name does not say the capacity: call it NAME.CAPACITY.csv, the capacity "+
			"in bytes", path)
	}
	return name, capacity, nil
}

// published are figures of others on one instance.
type published struct {
	miniMalloc float64 // ms to fit into the capacity
	tvmPeak    float64 // bytes: height that TVM's hill climbing reaches
}

// readPublished reads the figures by instance; without a file there are none.
func readPublished(path string) (map[string]published, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s is empty: its first row is to name the columns", path)
	}
	column := make(map[string]int)
	for i, name := range rows[0] {
		column[name] = i + 1
	}
	found := make(map[string]published)
	for _, row := range rows[1:] {
		number := func(name string) (v float64) {
			if err == nil {
				v, err = strconv.ParseFloat(field(row, column[name]), 64)
			}
			return v
		}
		p := published{number("minimalloc_paper_ms"), number("tvm_hillclimb_peak")}
		if err != nil {
			return nil, fmt.Errorf("%s: row %q needs numbers in the columns minimalloc_paper_ms and "+
				"tvm_hillclimb_peak: %w", path, row, err)
		}
		found[field(row, column["instance"])] = p
	}
	return found, nil
}

// field is that of a column counted from 1; there is no column 0.
func field(row []string, column int) string {
	if column == 0 {
		return ""
	}
	return row[column-1]
}
