package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"tensile/data/weights"
	"tensile/executor/timeline"
	"tensile/wire"
	"tensile/wire/bus"
)

func traceCommand() *cobra.Command {
	var f clientFlags
	var iterations int
	var path string
	c := &cobra.Command{
		Use:   "trace JOB...",
		Short: "Trace a few iterations of running jobs to a file for Perfetto",
		Long: `Trace a few iterations of running jobs to a file: which command runs on which lane and when, what the
compute lane waits for, and how much device memory is in use. Open the file at https://ui.perfetto.dev or
in chrome://tracing. The jobs keep training; a waiting job is traced once it trains.`,
		Args:    needJobs,
		Example: "  tensile job trace resnet50 vgg16 --iterations 3 --output trace.json",
		PreRunE: func(*cobra.Command, []string) error {
			const most = 1000
			if iterations < 1 || iterations > most {
				return fmt.Errorf("--iterations %d: give 1 to %d", iterations, most)
			}
			return writable("--output", path)
		},
	}
	c.RunE = f.withController(func(ctx context.Context, conn *bus.Conn, jobs []string, out io.Writer) error {
		t := newTracing(jobs)
		stop, err := t.follow(conn)
		if err != nil {
			return err
		}
		defer stop()
		want := func(job string, iterations int) error {
			_, err := ask(ctx, conn, wire.Request{Verb: wire.TraceJob, Job: job, Iterations: iterations})
			return err
		}
		for _, job := range jobs {
			if err := want(job, iterations); err != nil {
				return err
			}
		}
		silence := time.NewTicker(10 * time.Second)
		defer silence.Stop()
		if err := t.wait(ctx, conn, iterations, silence.C, want); err != nil {
			return err
		}
		if err := t.save(path); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		_, err = fmt.Fprintf(out, "%s has %s; https://ui.perfetto.dev shows it\n", path, t)
		return err
	})
	f.register(c)
	c.Flags().IntVar(&iterations, "iterations", 3, "iterations per job")
	c.Flags().StringVar(&path, "output", "trace.json", "output file")
	return c
}

// writable returns why the file that a flag names cannot be written.
func writable(flag, path string) error {
	if err := weights.Writable(nil, path); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// tracing is what was heard of what jobs do. Any goroutine may use it.
type tracing struct {
	jobs []string
	news chan struct{} // something was heard

	mu       sync.Mutex
	sections []timeline.Section
	done     map[string]int  // iterations that were heard of
	over     map[string]bool // jobs that train no more
}

func newTracing(jobs []string) *tracing {
	return &tracing{jobs: jobs, news: make(chan struct{}, 1), done: make(map[string]int), over: make(map[string]bool)}
}

// follow records what the jobs do from now on.
func (t *tracing) follow(conn wire.Bus) (stop func(), err error) {
	return conn.Subscribe(wire.TracedSubject("*", "*"), func(_ string, data []byte) {
		if s, err := timeline.Decode(data); err == nil && slices.Contains(t.jobs, s.Job) {
			t.add(s)
		}
	})
}

func (t *tracing) add(s timeline.Section) {
	t.mu.Lock()
	t.sections = append(t.sections, s)
	if s.Kind == timeline.Body || s.Kind == timeline.Snapshot {
		t.done[s.Job]++
	}
	t.mu.Unlock()
	t.poke()
}

func (t *tracing) poke() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// wait waits until the wanted iterations of each job have been reported, or the job has ended. Each time that is due,
// it asks again for the rest of those of which no more was heard since the last time: a controller that ends forgets
// what was asked for, and hands nothing on.
func (t *tracing) wait(ctx context.Context, conn wire.Bus, iterations int, due <-chan time.Time,
	want func(job string, iterations int) error) error {
	stop, err := conn.Watch(ctx, wire.RecordKey("*"), func(_ string, value []byte) {
		if r, err := wire.DecodeAs[wire.Record](value); err == nil && r.State.Over() {
			t.mu.Lock()
			t.over[r.Spec.Name] = true
			t.mu.Unlock()
			t.poke()
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	heard := make(map[string]int)
	for !t.complete(iterations) {
		select {
		case <-t.news:
		case <-due:
			for _, job := range t.jobs {
				t.mu.Lock()
				done, over := t.done[job], t.over[job]
				t.mu.Unlock()
				if done < iterations && done == heard[job] && !over {
					_ = want(job, iterations-done) // if nobody answers, the next time
				}
				heard[job] = done
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// complete reports whether the wanted iterations of all jobs that have not ended were reported.
func (t *tracing) complete(iterations int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !slices.ContainsFunc(t.jobs, func(job string) bool { return t.done[job] < iterations && !t.over[job] })
}

// rest waits a little for what is still on its way when all jobs are over.
func (t *tracing) rest(iterations int) {
	late := time.After(5 * time.Second)
	for !t.complete(iterations) {
		select {
		case <-t.news:
		case <-late:
			return
		}
	}
}

// save writes what was heard.
func (t *tracing) save(path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b bytes.Buffer
	if err := timeline.Write(&b, t.sections); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}

// String says how much was heard.
func (t *tracing) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text string
	for i, job := range t.jobs {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d iterations of %s", t.done[job], job)
	}
	return text
}
