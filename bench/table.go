package bench

import (
	"bytes"
	"encoding/json"
	"fmt"

	"tensile/graph"
)

// Tables are what tensile bench paper and tensile bench real measure.
type Tables struct {
	Tables []Table `json:"tables"`
}

// Table compares methods in Rows, or has columns of its own in Free.
type Table struct {
	Name  string   // short and fixed, such as table-3
	Title string   // what is measured, in a sentence without a full stop
	Notes []string // what a reader must know to trust the figures: a sentence each
	Rows  []Row
	Free  *Free // instead of Rows
}

// Row is what a policy made of jobs within a budget. What is nil was not measured, or cannot be.
type Row struct {
	Model   string       `json:"model"`  // one of them, or mixed
	Jobs    int          `json:"jobs"`   // that train together
	Batch   int          `json:"batch"`  // of each
	Policy  string       `json:"policy"` // with what is added to it, such as tensile at 1.05
	Phase   string       `json:"phase"`  // one of the Phases
	Budget  *graph.Bytes `json:"budget_bytes"`
	Passes  string       `json:"passes"`
	MSRAll  *float64     `json:"msr_all"`  // of the peak, against jobs that free nothing within an iteration
	MSRLive *float64     `json:"msr_live"` // against jobs that free everything after its last use
	EOR     *float64     `json:"eor"`
	CBR     *float64     `json:"cbr"`     // msr_live over eor
	CBRAll  *float64     `json:"cbr_all"` // msr_all over eor

	FirstEOR  *float64     `json:"first_iteration_eor"`
	Plan      *float64     `json:"plan_ms"`            // to plan, pack and prove once: the mean over all plans
	Peak      *graph.Bytes `json:"peak_bytes"`         // the sum of the jobs' arenas
	Swap      *graph.Bytes `json:"swap_bytes"`         // copied in an iteration, both ways; inputs left out
	Recompute *float64     `json:"recompute_ms"`       // of compute in an iteration, of all jobs
	PaperMSR  *float64     `json:"paper_msr"`          // that the paper gives for the method
	PaperEOR  *float64     `json:"paper_eor"`          // that the paper gives for the method
	EORLow    *float64     `json:"eor_low,omitempty"`  // the least of the measurements whose middle eor is
	EORHigh   *float64     `json:"eor_high,omitempty"` // the greatest
	Remark    string       `json:"remark,omitempty"`   // what to make of eor
	Identical *bool        `json:"bits,omitempty"`     // whether losses and weights are those without a plan
	Why       string       `json:"why,omitempty"`      // there are no figures
}

// The phases of rows: all iterations, those with the first plans, those with the last ones.
const (
	wholeRun  = "whole"
	coldStart = "cold-start"
	updated   = "updated"
)

// Free is a table with columns of its own. A cell is a string, a number, a bool, or nil for what is not known.
type Free struct {
	Columns []string // as keys of JSON: lower case, with the unit, such as peak_bytes
	Lines   [][]any  // one cell per column
}

// Add adds a line. It panics if that has not a cell per column.
func (f *Free) Add(cells ...any) {
	if len(cells) != len(f.Columns) {
		panic(fmt.Sprintf("bench: a line of %d cells for %d columns", len(cells), len(f.Columns)))
	}
	f.Lines = append(f.Lines, cells)
}

// MarshalJSON writes the name, the title, the notes, and the rows: objects with the columns as keys, in their order.
func (t Table) MarshalJSON() ([]byte, error) {
	var rows any = t.Rows
	switch {
	case t.Free != nil:
		rows = t.Free
	case t.Rows == nil:
		rows = []Row{}
	}
	return json.Marshal(struct {
		Name  string   `json:"name"`
		Title string   `json:"title"`
		Notes []string `json:"notes,omitempty"`
		Rows  any      `json:"rows"`
	}{t.Name, t.Title, t.Notes, rows})
}

// MarshalJSON writes the lines as objects.
func (f *Free) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, line := range f.Lines {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('{')
		for k, cell := range line {
			if k > 0 {
				b.WriteByte(',')
			}
			key, err := json.Marshal(f.Columns[k])
			if err != nil {
				return nil, err
			}
			value, err := json.Marshal(cell)
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", f.Columns[k], err)
			}
			b.Write(key)
			b.WriteByte(':')
			b.Write(value)
		}
		b.WriteByte('}')
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}
