package process

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"tensile/device/lease"
)

// What a client held whose child has inherited its lock stays taken when the client has ended, until the child has.
func TestInherited(t *testing.T) {
	name := t.TempDir() // which nobody else has
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	start := func() error {
		work.Go(func() { // it ends at once if another serves
			serve(ctx, name, ServeOptions{Linger: time.Hour})
		})
		return nil
	}
	// join has a client ask for so many of 11 pages. It returns the client, what ends it, and what it is told.
	join := func(job lease.Job, pages int) (*Client, func(), <-chan lease.Output) {
		told := make(chan lease.Output, 16)
		c := client(t, Options{Name: name, Start: start, Answer: func(o lease.Output) { told <- o }})
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		work.Go(func() { ended <- c.Run(running) })
		c.Step(lease.Input{Capacity: &lease.Capacity{Pages: 11, Number: 1}})
		c.Step(lease.Input{Join: &lease.Join{Job: job, Ask: 1, Base: pages, Peak: pages, Weight: 1}})
		return c, func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}, told
	}
	granted := func(told <-chan lease.Output) {
		t.Helper()
		if o := <-told; o.Kind != lease.Grant {
			t.Fatalf("it is told %+v, want a grant", o)
		}
	}
	a, aEnds, told := join("a", 10)
	granted(told)
	lock, err := a.File()
	must(t, err)
	child, err := syscall.Dup(int(lock.Fd()))
	must(t, err)
	_, bEnds, told := join("b", 1)
	granted(told)
	aEnds()
	bEnds()
	_, _, told = join("c", 1) // what b had: the lease has looked who lives
	granted(told)
	d, _, told := join("d", 10)
	d.Step(lease.Input{Join: &lease.Join{Job: "heavy", Ask: 1, Base: 1, Peak: 1, Weight: lease.MaxWeight + 1}})
	if o := <-told; o.Kind != lease.Refuse || o.Job != "heavy" {
		t.Errorf("it is told %+v while the child lives, want no grant", o)
	}
	syscall.Close(child)
	granted(told)
}
