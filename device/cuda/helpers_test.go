package cuda_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// open opens a device on a driver.
func open(t testing.TB, driver cuda.Driver) *cuda.Device {
	t.Helper()
	d, err := cuda.New(driver, cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fake opens a device on a driver without a GPU.
func fake(t testing.TB, seed uint64) *cuda.Device {
	t.Helper()
	return open(t, fakecuda.New(fakecuda.Options{Seed: seed}))
}

// closed closes a device.
func closed(t testing.TB, d *cuda.Device) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// outcome is the bits that a training leaves: persistent storages by name, outputs by iteration and name.
type outcome map[string][]uint32

func (o outcome) keep(name string, content []float32) {
	bits := make([]uint32, len(content))
	for i, x := range content {
		bits[i] = math.Float32bits(x)
	}
	o[name] = bits
}

// differs names something that two outcomes do not have in common; "" if they are equal.
func (o outcome) differs(other outcome) string {
	for name := range maps.Keys(o) {
		if !slices.Equal(o[name], other[name]) {
			return name
		}
	}
	if len(o) != len(other) {
		return "the number of contents"
	}
	return ""
}

// trainer trains a graph on a device.
type trainer struct {
	g       *graph.Graph
	dry     bool // there is no data
	mu      sync.Mutex
	outputs outcome
	events  []device.Event
}

// train trains some iterations by a program, from Home to Home. It closes the job.
func train(t testing.TB, d device.Device, proven proof.Proven, iterations int) (outcome, error) {
	t.Helper()
	_, o, err := (&trainer{}).train(t, d, proven, iterations)
	return o, err
}

// train returns the events, too.
func (r *trainer) train(t testing.TB, d device.Device, proven proof.Proven, iterations int) (_ []device.Event,
	_ outcome, err error) {
	t.Helper()
	p := proven.Program()
	r.g, r.outputs, r.events = p.Graph, outcome{}, nil
	j, err := d.Open(r.g, device.JobOptions{Name: "job", Seed: 3, Input: r.input, Output: r.output})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for _, s := range r.g.Storages {
		if s.Role.Persistent() && !r.dry {
			fill(j.Host(s.ID), uint64(s.ID))
		}
	}
	if err := j.Load(proven); err != nil {
		return nil, nil, err
	}
	if err := j.Reserve(p.Arena); err != nil {
		return nil, nil, err
	}
	left := 0
	issue := func(s *program.Section, iteration int, drain bool) {
		left += len(s.Commands)
		j.Issue(s, 0, len(s.Commands), iteration, drain)
	}
	issue(&p.Prologue, 0, true)
	wait := func(until int) error {
		for left > until {
			events, err := d.Next(t.Context(), nil)
			if err != nil {
				return err
			}
			r.events = append(r.events, events...)
			left -= len(events)
		}
		return nil
	}
	for i := range iterations {
		issue(&p.Body, i, false)
		if err := wait(2 * len(p.Body.Commands)); err != nil {
			return nil, nil, err
		}
	}
	issue(&p.Epilogue, iterations, true)
	if err := wait(0); err != nil {
		return nil, nil, err
	}
	for _, s := range r.g.Storages {
		if s.Role.Persistent() && !r.dry {
			r.outputs.keep(s.Name, j.Host(s.ID))
		}
	}
	return r.events, r.outputs, j.Reserve(0)
}

func (r *trainer) input(iteration int, s graph.StorageID, to device.Memory) {
	if r.dry {
		return
	}
	if r.g.DTypes()[s] == graph.Int64 {
		for i := range to.Int64() {
			to.Int64()[i] = int64((iteration + i) % 3)
		}
		return
	}
	content := to.Float32()
	if r.g.Storages[s].Name != "labels" {
		fill(content, uint64(1000+iteration))
		return
	}
	for i := range content {
		content[i] = float32((iteration + i) % 3)
	}
}

func (r *trainer) output(iteration int, s graph.StorageID, from []float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outputs.keep(fmt.Sprintf("%s of iteration %d", r.g.Storages[s].Name, iteration), from)
}

// fill fills with numbers from 0 to 1/2.
func fill(to []float32, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	for i := range to {
		to[i] = r.Float32() / 2
	}
}

// keepAll and swapped are programs of devicetest.Tiny without swaps and with many.
func keepAll(t testing.TB, d device.Device) proof.Proven {
	g := devicetest.Tiny()
	return devicetest.Build(t, d, g, devicetest.KeepAll(g), compile.Options{})
}

func swapped(t testing.TB, d device.Device) proof.Proven {
	g := devicetest.Tiny()
	return devicetest.Build(t, d, g, devicetest.Swapped(g), compile.Options{})
}

// shuffled is a program of a random plan.
func shuffled(t testing.TB, d device.Device, g *graph.Graph, seed uint64) proof.Proven {
	return devicetest.Build(t, d, g, devicetest.RandomPlan(rand.New(rand.NewPCG(seed, 1)), g), compile.Options{})
}

// randomTiny is a program of a random plan for devicetest.Tiny, and of devicetest.Swapped for number 0.
func randomTiny(t testing.TB, d device.Device, number uint64) proof.Proven {
	if number == 0 {
		return swapped(t, d)
	}
	return shuffled(t, d, devicetest.Tiny(), number)
}
