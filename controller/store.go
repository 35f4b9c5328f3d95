package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/graph"
	"tensile/wire"
	"tensile/wire/clock"
)

// storeGraph stores a graph where an executor finds it.
func (r *runner) storeGraph(bucket string, g *graph.Graph) error {
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return r.bus.Store(r.ctx, bucket, wire.GraphObject(g.Digest()), text)
}

const (
	maxGraphs    = 3 << 30 // the most bytes of the graphs of all jobs; the store takes a little more
	maxGraphsOne = 1 << 30 // the most bytes of the graphs of one user's jobs
)

// storeGraphs stores the graphs that come with a request, before there are jobs with them. refusal says why they are
// too many. "": they are stored.
func (r *runner) storeGraphs(in *input) (refusal string, err error) {
	texts := make(map[graph.Digest][]byte)
	for digest, h := range in.graphs {
		if texts[digest], err = json.Marshal(h.graph); err != nil {
			return "", err
		}
	}
	if refusal = r.checkGraphQuota(in.By, texts); refusal != "" {
		return refusal, nil
	}
	for digest, text := range texts {
		r.sizes[digest] = len(text)
		var recorded []byte
		if l := in.graphs[digest].latency; l != nil {
			recorded = wire.Encode(wire.Recorded{Latency: l})
		}
		if err := r.retryOnBus(func() error {
			err := r.bus.Store(r.ctx, wire.Graphs, wire.GraphObject(digest), text)
			if err == nil && recorded != nil {
				err = r.bus.Store(r.ctx, wire.Graphs, wire.RecordedObject(digest), recorded)
			}
			return err
		}); err != nil {
			return "", err
		}
	}
	return "", nil
}

// checkGraphQuota says why no more graphs of a user are stored. "": they may be.
func (r *runner) checkGraphQuota(user string, more map[graph.Digest][]byte) string {
	all, users := 0, 0
	for _, size := range r.sizes {
		all += size
	}
	for digest := range r.machine.graphsOf(user) {
		users += r.sizes[digest]
	}
	for digest, text := range more {
		if r.sizes[digest] == 0 {
			all += len(text)
		}
		users += len(text)
	}
	const tail = "wait until some of them are over and forgotten, see --keep of tensile controller"
	switch {
	case users > maxGraphsOne && user != "":
		return fmt.Sprintf("the graphs of the jobs of %s would take more than %s: %s", user, graph.Bytes(maxGraphsOne),
			tail)
	case all > maxGraphs:
		return fmt.Sprintf("the graphs of all jobs would take more than %s: %s", graph.Bytes(maxGraphs), tail)
	}
	return ""
}

// removeGraph removes a graph that no job has, and the latencies that were recorded with it.
func (r *runner) removeGraph(digest graph.Digest) error {
	delete(r.sizes, digest)
	return errors.Join(r.bus.Remove(r.ctx, wire.Graphs, wire.GraphObject(digest)),
		r.bus.Remove(r.ctx, wire.Graphs, wire.RecordedObject(digest)))
}

// launch starts an executor. Its end becomes an input.
func (r *runner) launch(executor string) {
	ended := func(why string, lives []string) {
		go func() {
			if s, err := r.lastStatus(executor); err == nil && s != nil {
				r.putInput(input{Input: Input{Status: s}})
			}
			r.putInput(input{Input: Input{Ended: &ExecutorEnd{executor, lives, why}}})
		}()
	}
	if r.options.Launch == nil {
		return // executors are started by hand
	}
	if err := r.options.Launch(executor, ended); err != nil {
		ended(err.Error(), nil)
	}
}

// lastStatus returns the newest status that an executor which has ended has stored: news of its end may overtake it.
// nil: it has stored none.
func (r *runner) lastStatus(executor string) (*wire.Status, error) {
	value, err := r.bus.Get(r.ctx, wire.StatusKey(executor))
	if errors.Is(err, wire.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if s, err := wire.DecodeAs[wire.Status](value); err == nil && s.Executor == executor {
		return &s, nil
	}
	return nil, nil // the value is no status of this executor
}

// buryOrphans tells the machine which executors of a controller before this one have ended. Their last status comes
// first; as long as that cannot be read nothing is told.
func (r *runner) buryOrphans() error {
	for _, name := range r.machine.orphans() {
		if r.options.Lives == nil {
			return nil
		}
		ended, lives, known := r.options.Lives(name)
		if lives || !known {
			continue
		}
		s, err := r.lastStatus(name)
		if err != nil {
			return nil
		}
		if s != nil {
			if err := r.step(clock.Now(), Input{Status: s}); err != nil {
				return err
			}
		}
		why := "its executor has ended: it no longer holds its lock"
		if err := r.step(clock.Now(), Input{Ended: &ExecutorEnd{name, ended, why}}); err != nil {
			return err
		}
	}
	return nil
}

// storeResult stores the result of a job for good.
func (r *runner) storeResult(c *Collection) error {
	result := c.FromReports
	if c.Key != "" {
		value, err := r.bus.Get(r.ctx, c.Key)
		if errors.Is(err, wire.ErrNotFound) { // a controller that was killed may have stored it already
			if _, err := r.bus.Load(r.ctx, wire.Results, c.Object); !errors.Is(err, wire.ErrNotFound) {
				return err
			}
		} else if err != nil {
			return err
		}
		left, err := wire.DecodeAs[wire.Result](value)
		if err == nil {
			result = &left
		} else {
			r.options.Log.Warn(fmt.Sprintf("the result at %s is passed over", c.Key), "err", err)
		}
	}
	if result == nil {
		return nil
	}
	if err := r.bus.Store(r.ctx, wire.Results, c.Object, wire.Encode(*result)); err != nil || c.Key == "" {
		return err
	}
	return r.bus.Delete(r.ctx, c.Key)
}

// removeStrayResult removes a result that nobody waits for, as of a job that its executor was never given. Otherwise
// such results would fill the store, and those of jobs would have no room.
func (r *runner) removeStrayResult(key string) {
	if r.machine.awaitsResult(key) {
		return
	}
	r.logIgnored("results", fmt.Sprintf("a result at %s is removed: its executor has no such job", key))
	if r.strayResults = append(r.strayResults, key); len(r.strayResults) == 1 {
		r.removeStrayResults()
	}
}

// removeStrayResults removes all stray results on a goroutine of its own: a flood of them must keep nobody waiting.
func (r *runner) removeStrayResults() {
	keys := slices.Clone(r.strayResults)
	r.background.Go(func() {
		for _, key := range keys {
			for r.bus.Delete(r.ctx, key) != nil && r.ctx.Err() == nil {
				select { // the disk is full, or the connection lost
				case <-time.After(beat):
				case <-r.ctx.Done():
				}
			}
		}
		r.putInput(input{removed: len(keys)})
	})
}

// strayResultsRemoved takes the removed results off the list.
func (r *runner) strayResultsRemoved(results int) {
	if r.strayResults = r.strayResults[results:]; len(r.strayResults) > 0 {
		r.removeStrayResults()
	}
}

// listLogs lists all logs on a goroutine of its own.
func (r *runner) listLogs() {
	if r.listing.Swap(true) {
		return // the last listing has not ended yet
	}
	r.background.Go(func() {
		logs, err := r.bus.Logs(r.ctx)
		if err != nil || logs == nil {
			logs = map[string]int{}
		}
		r.putInput(input{logs: logs})
	})
}

// maxStrayLogs is up to how many stray logs of an executor are cleared one by one.
const maxStrayLogs = 32

// clearStrayLogs clears logs that executors have written of jobs which they were never given. Otherwise such logs would
// push those of others out of the store, which keeps the newest lines. An executor that writes many of them loses all
// its lines. A log is stray that two listings in a row have.
func (r *runner) clearStrayLogs(logs map[string]int) error {
	defer r.listing.Store(false)
	strange := make(map[string][]string)
	before := r.strayLogs
	r.strayLogs = make(map[string]bool)
	for log := range logs {
		if r.machine.mayLog(log) {
			continue
		}
		if r.strayLogs[log] = true; before[log] { // a listing may be older than what is known of the jobs
			executor := strings.Split(log, ".")[1]
			strange[executor] = append(strange[executor], log)
		}
	}
	for executor, these := range strange {
		r.logIgnored("logs", fmt.Sprintf("lines of executor %s are removed: it has written logs of jobs that it does "+
			"not have, %d in all", executor, len(these)))
		if len(these) > maxStrayLogs {
			these = []string{"log." + executor + ".*"}
		}
		for _, log := range these {
			if err := r.retryOnBus(func() error { return r.bus.Clear(r.ctx, log) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayLog reports whether a log, by its name, is one of a job that there is, also of one that another is to replace.
func (m *Machine) mayLog(log string) bool {
	return slices.ContainsFunc(m.jobs, func(j *job) bool { return j.record.MayLog(log) })
}

// removeExecutor removes what is stored for an executor that has left.
func (r *runner) removeExecutor(executor string) error {
	if r.options.Forgotten != nil {
		r.options.Forgotten(executor)
	}
	var results []string
	stop, err := r.bus.Watch(r.ctx, wire.ResultKeys(executor), func(key string, value []byte) {
		if value != nil {
			results = append(results, key)
		}
	})
	if err != nil {
		return err
	}
	stop()
	for _, key := range results {
		err = errors.Join(err, r.bus.Delete(r.ctx, key))
	}
	return errors.Join(err, r.bus.Delete(r.ctx, wire.StatusKey(executor)),
		r.bus.Delete(r.ctx, wire.OrdersKey(executor)),
		r.bus.Remove(r.ctx, wire.Bucket(executor), ""))
}
