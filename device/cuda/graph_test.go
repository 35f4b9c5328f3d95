package cuda_test

import (
	"testing"
	"unsafe"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/devicetest"
	"tensile/plan/compile"
	"tensile/plan/program"
)

// TestGraph captures the copies in and the kernels of a body, and executes the later iterations of a training by that
// graph: nothing of an iteration is in the launches but the address of its number.
func TestGraph(t *testing.T) {
	const iterations = 3
	driver := fakecuda.New(fakecuda.Options{Seed: 1})
	d := open(t, driver)
	defer closed(t, d)
	g := devicetest.Zoo()
	proven := devicetest.Build(t, d, g, devicetest.KeepAll(g), compile.Options{})
	want, err := train(t, d, proven, iterations)
	if err != nil {
		t.Fatal(err)
	}

	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p, r := proven.Program(), &trainer{g: g, outputs: outcome{}}
	j, err := d.Open(g, device.JobOptions{Name: "job", Seed: 3, Input: r.input, Output: r.output})
	try(err)
	defer func() { try(j.Close()) }()
	for _, s := range g.Storages {
		if s.Role.Persistent() {
			fill(j.Host(s.ID), uint64(s.ID))
		}
	}
	issue := func(iteration int, sections ...*program.Section) {
		t.Helper()
		left := 0
		for _, s := range sections {
			left += len(s.Commands)
			j.Issue(s, 0, len(s.Commands), iteration, true)
		}
		for left > 0 {
			events, err := d.Next(t.Context(), nil)
			try(err)
			left -= len(events)
		}
	}
	try(j.Load(proven))
	try(j.Reserve(p.Arena))
	issue(0, &p.Prologue, &p.Body)

	s, err := driver.NewStream()
	try(err)
	try(driver.BeginCapture(s))
	launches := cuda.LaunchesOf(j, &p.Body)
	for i, c := range p.Body.Commands {
		if c.Kind == program.In {
			from := j.Host(c.Storage)
			try(driver.CopyIn(s, cuda.AddressOf(j, c.Device),
				unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(from))), c.Bytes)))
		}
		for _, l := range launches[i] {
			try(driver.Launch(s, l))
		}
	}
	body, err := driver.EndCapture(s)
	try(err)
	for i := 1; i < iterations; i++ {
		for _, c := range p.Body.Commands {
			if c.Kind == program.Load {
				r.input(i, c.Storage, device.Memory(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(
					j.Host(c.Storage)))), c.Bytes)))
			}
		}
		try(driver.Fill(s, cuda.WordOf(j), uint32(i), 1))
		try(driver.LaunchGraph(s, body))
		try(driver.Synchronize())
	}
	try(driver.DestroyStream(s))
	issue(iterations, &p.Epilogue)

	got := outcome{}
	for _, s := range g.Storages {
		if s.Role.Persistent() {
			got.keep(s.Name, j.Host(s.ID))
		}
	}
	for name := range got {
		if len(got[name]) == 0 || (outcome{name: got[name]}).differs(outcome{name: want[name]}) != "" {
			t.Errorf("%s has other bits when a graph executes the later iterations", name)
		}
	}
}
