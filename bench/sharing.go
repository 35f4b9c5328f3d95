package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"tensile/graph"
	"tensile/observe/report"
)

// SharingOptions say which tables and figures of the papers on jobs that share memory MeasureSharing fills.
type SharingOptions struct {
	Tables     []string // of SharingTables; none: all
	Quick      bool     // fewer points of each
	Iterations int      // of each job that are measured

	// Progress is told how many of the scenes are done, by one goroutine at a time; nil: nobody is.
	Progress func(done, of int)
}

// SharingReport is what was measured, in the order of SharingTables.
type SharingReport struct {
	Tables []SharingTable `json:"tables"`
}

// SharingTable is a table or figure of a paper.
type SharingTable struct {
	Name    string         `json:"name"`
	What    string         `json:"what"`
	Rows    []SharingRow   `json:"rows"`
	Signs   []Sign         `json:"signs"`
	Drawing []SharingCurve `json:"-"`
}

// SharingRow is jobs that share memory in one way. The throughput of alternating jobs is that of the papers' temporal
// sharing, which loses nothing when it switches.
type SharingRow struct {
	Figure string `json:"figure"` // of SharingTables
	Device string `json:"device"`
	ShareRow
	Batch   string   `json:"batch"`             // of each job
	Demand  float64  `json:"demand"`            // arenas of all jobs together, of the capacity
	MPS     float64  `json:"throughput_vs_mps"` // 0: MPS was not measured
	Measure string   `json:"measure"`           // what the next three give
	Value   float64  `json:"value"`
	Gates   *float64 `json:"gates"` // value of the same jobs by gates; null: there is none
	Paper   *float64 `json:"paper"` // null: its text does not give it
}

// Sign is something that a paper says of its results, and whether ours show it.
type Sign struct {
	Claim string `json:"claim"`
	Holds bool   `json:"holds"`
	Got   string `json:"got"`
	Why   string `json:"why,omitempty"` // it does not hold, or how it is to be read
}

// SharingCurve is what the jobs of a scene held over time.
type SharingCurve struct {
	Name  string
	Panel report.SharingPanel
}

// sharingTable is how a table or figure is measured: by scenes, which do not depend on each other.
type sharingTable struct {
	name, what string
	scenes     func(quick bool) []sharingScene
	signs      func(rows []SharingRow) []Sign
	sums       []sharingSum
}

// sharingSum is a row over those of a figure whose jobs begin with a prefix, in one way: the average or the most of a
// throughput, which a paper gives in its text.
type sharingSum struct {
	figure, jobs string
	way          string // the paper's; gates are beside it
	most         bool   // not the average
	mps          bool   // of the throughput against MPS, not temporal sharing
	paper        float64
}

// row returns the sum, and whether there are rows.
func (s *sharingSum) row(rows []SharingRow) (sum SharingRow, ok bool) {
	of := func(way string) (all []float64) {
		for _, r := range (chosen{s.figure, s.jobs, way, vsTemporal}).filterRows(rows) {
			v := r.Value
			if s.mps {
				v = r.MPS
			}
			all = append(all, v)
		}
		return all
	}
	add, name := mean, "average "
	if s.most {
		add, name = slices.Max[[]float64], "most "
	}
	against := vsTemporal
	if s.mps {
		against = "throughput vs mps"
	}
	theirs, gates := of(s.way), of(byGates)
	if len(theirs) == 0 || len(gates) == 0 {
		return sum, false
	}
	first := chosen{s.figure, s.jobs, s.way, vsTemporal}.filterRows(rows)[0]
	sum = SharingRow{Figure: s.figure, Device: first.Device, Batch: "all", Measure: name + against, Value: add(theirs),
		Gates: pointer(add(gates)), Paper: &s.paper, ShareRow: ShareRow{Jobs: first.Jobs, Sharing: s.way}}
	if s.jobs == "" {
		sum.Jobs = "all"
	}
	return sum, true
}

// sharingScene is measured by itself.
type sharingScene func(b *sharingBench) (*sharingResult, error)

type sharingResult struct {
	rows   []SharingRow
	curves []SharingCurve
}

// sharingTables are those of Zico (Lim et al., USENIX ATC 2021) and Waterwave (Shi et al., IEEE TPDS 2023).
var sharingTables = slices.Concat(zicoTables, waterwaveTables)

// SharingTables lists the names of the tables and figures.
func SharingTables() []string {
	names := make([]string, len(sharingTables))
	for i, t := range sharingTables {
		names[i] = t.name
	}
	return names
}

// sharingBench is what scenes have in common.
type sharingBench struct {
	ctx      context.Context
	options  SharingOptions
	mutex    sync.Mutex
	arenas   map[arenaKey]graph.Bytes
	memories map[memoryKey]*memorized
}

// MeasureSharing fills tables. Scenes run at the same time, as many as there are processors; what comes out does not
// depend on it.
func MeasureSharing(ctx context.Context, o SharingOptions) (*SharingReport, error) {
	for _, name := range o.Tables {
		if !slices.Contains(SharingTables(), name) {
			return nil, fmt.Errorf("no table %q: known are %s", name, strings.Join(SharingTables(), ", "))
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &sharingBench{ctx: ctx, options: o, arenas: make(map[arenaKey]graph.Bytes),
		memories: make(map[memoryKey]*memorized)}
	r := &SharingReport{}
	type job struct {
		table  int
		scene  sharingScene
		result *sharingResult
		err    error
	}
	var tables []sharingTable
	var jobs []*job
	for _, t := range sharingTables {
		if len(o.Tables) > 0 && !slices.Contains(o.Tables, t.name) {
			continue
		}
		for _, scene := range t.scenes(o.Quick) {
			jobs = append(jobs, &job{table: len(tables), scene: scene})
		}
		tables = append(tables, t)
	}
	var wait sync.WaitGroup
	var progress sync.Mutex
	next, done := make(chan *job), 0
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for j := range next {
				if j.err = context.Cause(ctx); j.err == nil {
					j.result, j.err = j.scene(b)
				}
				if j.err != nil {
					j.err = fmt.Errorf("%s: %w", tables[j.table].name, j.err)
					cancel()
				}
				progress.Lock()
				if done++; o.Progress != nil {
					o.Progress(done, len(jobs))
				}
				progress.Unlock()
			}
		})
	}
	for _, j := range slices.Backward(jobs) { // the longest are among the last
		next <- j
	}
	close(next)
	wait.Wait()
	for _, t := range tables {
		r.Tables = append(r.Tables, SharingTable{Name: t.name, What: t.what})
	}
	var failed error
	for _, j := range jobs {
		if j.err != nil {
			if failed == nil || strings.Contains(failed.Error(), context.Canceled.Error()) {
				failed = j.err
			}
			continue
		}
		t := &r.Tables[j.table]
		t.Rows, t.Drawing = append(t.Rows, j.result.rows...), append(t.Drawing, j.result.curves...)
	}
	for i, t := range tables {
		if failed != nil {
			break
		}
		r.Tables[i].Signs = t.signs(r.Tables[i].Rows)
		all := r.Tables[i].Rows
		for _, s := range t.sums {
			if row, ok := s.row(all); ok {
				r.Tables[i].Rows = append(r.Tables[i].Rows, row)
			}
		}
	}
	return r, failed
}
