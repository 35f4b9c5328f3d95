package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tensile/graph"
	"tensile/graph/text"
	"tensile/models/passes"
)

// PaperReport is what all policies came to, and what its drawings need.
type PaperReport struct {
	Tables
	stage *stage // whose plans are drawn
}

func allPasses() []string { return passes.Names() }

// newPaperReport makes tables of results.
func newPaperReport(o *PaperOptions, results []*result) (*PaperReport, error) {
	b := &tabling{options: o, results: results}
	var err error
	if b.logs, err = readLogs(o.Data); errors.Is(err, errNoLogs) {
		b.logs = new(logs)
		b.left = fmt.Sprintf("folder %s does not exist: the authors' logs are left out; name another with --data",
			o.Data)
	} else if err != nil {
		return nil, err
	}
	r := &PaperReport{Tables: Tables{[]Table{b.phases(), b.firstIterationTable(), b.singleJobTable(), b.mixed(),
		b.waits(), b.copies(), b.sizes(), b.shares()}}}
	for _, each := range results {
		if r.stage == nil || len(each.scene.Shares) > 0 && len(r.stage.scene.Shares) == 0 {
			r.stage = each.stages[0]
		}
	}
	return r, nil
}

// tabling makes tables.
type tabling struct {
	options *PaperOptions
	results []*result
	logs    *logs
	left    string // what was left out, in a sentence; "": nothing
}

// conditions are the notes of all tables.
func (b *tabling) conditions() []string {
	o := b.options
	return []string{
		fmt.Sprintf("Virtual time on sim:%s, Adam, no passes but where a row names them; every policy has the same "+
			"graphs, order of updates, variants, predicted latencies and link, and its plans go through controller, "+
			"agent and executor.", o.Facts.Name),
		fmt.Sprintf("Plans begin with roofline latencies; each kind of op and each op is off by a factor whose "+
			"logarithm has the deviation %.2g, and each kernel by up to %.2g %% more or less; means over %s.",
			mispredicted, 100*noise, text.Count(o.Repeats, "repeat")),
		"peak_bytes is the sum of the arenas, or with gates what the jobs hold together. msr_all compares it with " +
			"jobs that free nothing within an iteration, as the paper does; msr_live with jobs that free everything " +
			"after its last use.",
		"eor is the mean over jobs of an iteration's time against the same jobs without a plan, while all train; the " +
			"first iteration and the first with other plans are left out. first_iteration_eor compares the first " +
			"iterations, without the copies before them.",
	}
}

// inPaperTables says that a contender's row belongs to the tables of the paper.
func inPaperTables(c *contender) bool { return c.goal != shareOfLive }

// row returns the result of a contender in a phase.
func (r *result) row(k int, phase string, k0 known) Row {
	c := &r.contenders[k]
	row := Row{Model: r.scene.model(), Jobs: r.scene.jobs(), Batch: r.scene.Batch, Policy: c.name, Phase: phase,
		Passes: passes.None, PaperMSR: given(k0.msr), PaperEOR: given(k0.eor)}
	if c.passes != nil {
		row.Passes = strings.Join(c.passes, ",")
	}
	var sum figures
	var budget, all, live float64
	n := float64(len(r.outcomes[k]))
	for i, o := range r.outcomes[k] {
		budget += float64(o.budget) / n
		all, live = all+float64(r.stages[i].all)/n, live+float64(r.stages[i].live)/n
		if o.why != "" {
			row.Why = o.why
			continue
		}
		if o.same != nil && (row.Identical == nil || *row.Identical) {
			row.Identical = o.same
		}
		f := o.phases[phase]
		if f.eor == 0 {
			row.Why = "no iteration of all jobs in this phase"
			continue
		}
		sum.peak += graph.Bytes(float64(f.peak)/n + 0.5)
		sum.eor, sum.first, sum.swaps, sum.recompute = sum.eor+f.eor/n, sum.first+f.first/n, sum.swaps+f.swaps/n,
			sum.recompute+f.recompute/n
		sum.planning += f.planning / n
	}
	if budget > 0 {
		bytes := graph.Bytes(budget + 0.5)
		row.Budget = &bytes
	}
	if row.Why != "" {
		return row
	}
	msrAll, msrLive := 1-float64(sum.peak)/all, 1-float64(sum.peak)/live
	cbr, cbrAll, swaps := msrLive/sum.eor, msrAll/sum.eor, graph.Bytes(sum.swaps+0.5)
	row.MSRAll, row.MSRLive, row.EOR, row.CBR, row.CBRAll = &msrAll, &msrLive, &sum.eor, &cbr, &cbrAll
	row.FirstEOR, row.Plan, row.Peak, row.Swap, row.Recompute = &sum.first, &sum.planning, &sum.peak, &swaps,
		&sum.recompute
	return row
}

// given is nil for what is not given.
func given(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}

// rows are those of the contenders that are wanted, of the scenes that are, in phases.
func (b *tabling) rows(scene func(*PaperScene) bool, want func(*contender) bool, of func(r *result, c *contender,
	phase string) known, phases ...string) []Row {
	rows := []Row{}
	for _, r := range b.results {
		if !scene(&r.scene) {
			continue
		}
		for k := range r.contenders {
			if c := &r.contenders[k]; want(c) {
				for _, phase := range phases {
					rows = append(rows, r.row(k, phase, of(r, c, phase)))
				}
			}
		}
	}
	return rows
}

// isSingleJob says that a scene is one job with the paper's batch.
func (b *tabling) isSingleJob(s *PaperScene) bool { return s.jobs() == 1 && s.Batch == b.options.Batch }

// namedOneOf returns a wish for contenders with these names.
func namedOneOf(names ...string) func(*contender) bool {
	return func(c *contender) bool { return inPaperTables(c) && slices.Contains(names, c.name) }
}

func (b *tabling) phases() Table {
	return Table{Name: "table-1", Title: "TENSILE's table I: each phase", Notes: append(b.conditions(),
		"cold-start are the iterations with the first plans, updated those with the last ones; where the controller "+
			"found none that are worth the change, these are the first ones as well."),
		Rows: b.rows(b.isSingleJob, namedOneOf(paperPolicy, "tensile-authors", "tensile"), func(r *result, c *contender,
			phase string) known {
			if methods[c.name] != "TENSILE" {
				return known{}
			}
			return knownPhases[r.scene.model()][phase]
		}, wholeRun, coldStart, updated)}
}

func (b *tabling) firstIterationTable() Table {
	return Table{Name: "table-2", Title: "TENSILE's table II: the first iteration",
		Notes: []string{"paper_eor is the paper's EOR of the first iteration, to compare with first_iteration_eor."},
		Rows: b.rows(b.isSingleJob, namedOneOf(paperPolicy, "tensile-authors", "tensile", "capuchin", "lru"),
			func(r *result, c *contender, _ string) known {
				switch first := knownFirst[r.scene.model()]; methods[c.name] {
				case "TENSILE":
					return known{eor: first[0]}
				case "Capuchin":
					return known{eor: first[1]}
				}
				return known{}
			}, wholeRun)}
}

func (b *tabling) singleJobTable() Table {
	return Table{Name: "table-3", Title: "TENSILE's table III: one job",
		Notes: []string{"Policies without a budget stop by themselves; a budget without a remark is what " +
			"tensile-paper needs as it stops. \"tensile EOR x\" has the least memory with which plans are predicted " +
			"to take no more than x."},
		Rows: b.rows(b.isSingleJob, inPaperTables, func(r *result, c *contender, _ string) known {
			return single(r.scene.model(), c.name)
		}, wholeRun)}
}

func (b *tabling) mixed() Table {
	return Table{Name: "table-4", Title: "TENSILE's table IV: different networks together, in random order",
		Rows: b.rows(func(s *PaperScene) bool { return len(s.Models) > 1 }, inPaperTables, func(_ *result, c *contender,
			_ string) known {
			return knownMixed[methods[c.name]]
		}, wholeRun)}
}

// waits tells what Capuchin loses its time with, as the jobs become more.
func (b *tabling) waits() Table {
	free := &Free{Columns: []string{"model", "jobs", "batch", "policy", "eor", "first_iteration_eor", "waits_share",
		"recompute_share", "swap_bytes"}}
	for _, r := range b.results {
		if len(r.scene.Models) > 1 {
			continue
		}
		for k := range r.contenders {
			c := &r.contenders[k]
			if !namedOneOf("capuchin", "lru")(c) {
				continue
			}
			row := r.row(k, wholeRun, known{})
			if row.Why != "" {
				free.Add(row.Model, row.Jobs, row.Batch, row.Policy, nil, nil, nil, nil, nil)
				continue
			}
			var stall, again, took float64
			for _, o := range r.outcomes[k] {
				f := o.phases[wholeRun]
				stall, again, took = stall+f.stall, again+f.recompute, took+f.wall
			}
			free.Add(row.Model, row.Jobs, row.Batch, row.Policy, *row.EOR, *row.FirstEOR, stall/took, again/took,
				*row.Swap)
		}
	}
	return Table{Name: "figure-2", Title: "TENSILE's figure 2: what Capuchin loses its time with", Free: free,
		Notes: []string{"waits_share is what compute waits for copies, of the time of an iteration; the paper draws " +
			"figures without numbers."}}
}

func (b *tabling) copies() Table {
	notes := []string{"The paper says one to four jobs and not their batch; its authors' logs have a batch of 2 and " +
		"up to three jobs, and are what paper_msr and paper_eor have."}
	if b.left != "" {
		notes = append(notes, b.left)
	}
	of := func(r *result, c *contender, phase string) known {
		if methods[c.name] != "TENSILE" || r.scene.Batch != 2 {
			return known{}
		}
		return b.logs.copies[copies{r.scene.model(), r.scene.jobs(), phase}]
	}
	several := func(s *PaperScene) bool {
		return len(s.Models) == 1 && (s.Copies > 1 || s.Batch == 2 || s.Batch == b.options.Batch)
	}
	rows := b.rows(several, inPaperTables, of, wholeRun)
	return Table{Name: "figure-6", Title: "TENSILE's figure 6: one to four jobs of a network", Notes: notes,
		Rows: append(rows, b.rows(several, namedOneOf(paperPolicy), of, coldStart)...)}
}

func (b *tabling) sizes() Table {
	var notes []string
	if b.left != "" {
		notes = append(notes, b.left)
	}
	return Table{Name: "figure-7", Title: "TENSILE's figure 7: the batch", Notes: notes,
		Rows: b.rows(func(s *PaperScene) bool { return s.jobs() == 1 }, namedOneOf(paperPolicy, "tensile-authors",
			"tensile"), func(r *result, c *contender, _ string) known {
			if methods[c.name] != "TENSILE" {
				return known{}
			}
			return b.logs.sizes[size{r.scene.model(), r.scene.Batch}]
		}, wholeRun)}
}

func (b *tabling) shares() Table {
	return Table{Name: "budgets", Title: "Memory against time: all policies within the same budgets",
		Notes: []string{"Budgets are shares of what the jobs need that free everything after its last use."},
		Rows: b.rows(func(*PaperScene) bool { return true }, func(c *contender) bool { return c.goal == shareOfLive },
			func(*result, *contender, string) known { return known{} }, wholeRun)}
}
