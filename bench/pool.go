package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tensile/observe/report"
	"tensile/plan/pool"
)

// PoolOptions say on what the ways to pack are compared.
type PoolOptions struct {
	Data     string   // folder with the folders minimalloc and somas; if it does not exist, what needs it is left out
	Rounds   int      // of a search that has a capacity to meet
	Networks []string // models
}

// PoolReport compares the ways to pack. Each layout in it was checked by [pool.Validate].
type PoolReport struct {
	Methods  []string         `json:"methods"`
	Rounds   int              `json:"capacity_rounds"`
	Checked  int              `json:"layouts_checked"`
	LeftOut  string           `json:"left_out,omitempty"` // what, and why
	Hard     []HardPacking    `json:"hard"`
	Steps    []Packing        `json:"training_steps"`
	Networks []NetworkPacking `json:"networks"`
	Tighten  []Tightening     `json:"tightening"`
	Cost     []PackingCost    `json:"cost"`
}

// Packing is what each method makes of one set of buffers, in the order of PoolReport.Methods.
type Packing struct {
	Instance   string          `json:"instance"`
	Buffers    int             `json:"buffers"`
	LowerBound int64           `json:"lower_bound_bytes"`
	Methods    []MethodPacking `json:"methods"`
}

// MethodPacking is a layout of one method, and how long [pool.Pack] took.
type MethodPacking struct {
	Method string  `json:"method"`
	Height int64   `json:"height_bytes"`
	Ratio  float64 `json:"ratio"` // height to lower bound
	Time   float64 `json:"ms"`
}

// MeasurePool packs all instances with all methods. It returns the errors of files and models, an error for a layout
// that is wrong, and the context's cause.
func MeasurePool(ctx context.Context, o PoolOptions) (*PoolReport, error) {
	m := &packer{ctx: ctx}
	r := &PoolReport{Methods: poolMethods(), Rounds: o.Rounds,
		Hard: []HardPacking{}, Steps: []Packing{}, Networks: []NetworkPacking{}, Tighten: []Tightening{},
		Cost: []PackingCost{}}
	if _, err := os.Stat(o.Data); errors.Is(err, fs.ErrNotExist) {
		r.LeftOut = fmt.Sprintf("folder %s does not exist: the hard instances, the training steps and cost against "+
			"n are left out; name another with --data", o.Data)
	} else if err := r.measureData(m, o.Data); err != nil {
		return nil, err
	}
	for _, model := range o.Networks {
		rows, err := m.network(model)
		if err != nil {
			return nil, err
		}
		r.Networks = append(r.Networks, rows...)
		rounds, err := m.tighten(model)
		if err != nil {
			return nil, err
		}
		r.Tighten = append(r.Tighten, rounds...)
	}
	r.Checked = m.checked
	return r, nil
}

// measureData measures what comes from files.
func (r *PoolReport) measureData(m *packer, dir string) error {
	var err error
	if r.Hard, err = m.hard(filepath.Join(dir, "minimalloc"), r.Rounds); err != nil {
		return err
	}
	if r.Steps, err = m.steps(filepath.Join(dir, "somas")); err != nil {
		return err
	}
	r.Cost, err = m.costs(filepath.Join(dir, "somas", "bert_base.csv"), costCopies, costSizes)
	return err
}

// poolMethods are all methods, the default first.
func poolMethods() []string {
	rest := slices.DeleteFunc(pool.Methods(), func(name string) bool { return name == "search" })
	return append([]string{"search"}, rest...)
}

// packer packs, checks, and looks at the clock.
type packer struct {
	ctx     context.Context
	checked int // layouts
}

// all packs with every method.
func (m *packer) all(instance string, buffers []pool.Buffer) (Packing, error) {
	p := Packing{Instance: instance, Buffers: len(buffers), LowerBound: pool.Load(buffers)}
	for _, method := range poolMethods() {
		l, took, err := m.pack(instance, buffers, pool.Options{Method: method})
		if err != nil {
			return Packing{}, err
		}
		p.LowerBound = l.LowerBound
		p.Methods = append(p.Methods, methodPacking(method, l, took))
	}
	return p, nil
}

func methodPacking(method string, l pool.Layout, took time.Duration) MethodPacking {
	return MethodPacking{Method: method, Height: l.Height, Ratio: heightRatio(l.Height, l.LowerBound),
		Time: report.Milliseconds(took)}
}

func heightRatio(height, bound int64) float64 {
	if height == bound {
		return 1
	}
	return float64(height) / float64(bound)
}

// slow is the time from which on a packing is not repeated.
const slow = time.Second

// pack packs and checks the layout. The time is that of Pack alone, the shortest of three unless it is slow.
func (m *packer) pack(instance string, buffers []pool.Buffer, o pool.Options) (pool.Layout, time.Duration, error) {
	o.Stop = func() bool { return m.ctx.Err() != nil }
	var l pool.Layout
	var best time.Duration
	for try := range 3 {
		begin := time.Now()
		packed, err := pool.Pack(buffers, o)
		took := time.Since(begin)
		if err == nil {
			err = context.Cause(m.ctx)
		}
		if err != nil {
			return pool.Layout{}, 0, fmt.Errorf("%s: %w", instance, err)
		}
		if try == 0 || took < best {
			l, best = packed, took
		}
		if took >= slow {
			break
		}
	}
	if err := pool.Validate(buffers, l); err != nil {
		return pool.Layout{}, 0, fmt.Errorf("%s: the layout of method %q is wrong; please report this: %w", instance,
			o.Method, err)
	}
	m.checked++
	return l, best, nil
}
