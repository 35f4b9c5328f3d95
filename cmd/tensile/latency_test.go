package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/device/cpu"
	"tensile/device/lifelock"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/predictor"
)

// The load that a model is asked for is what others use, beside what the other jobs of a request do. While jobs train
// already it is not measured.
func TestLoadOfJobs(t *testing.T) {
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f := planFlags{device: "cpu", threads: 1}
	m, err := predictor.Load("../../predictor/testdata/small.model")
	if err != nil {
		t.Fatal(err)
	}
	m.Devices[0].Name = f.modelName(d)
	f.latency.file = filepath.Join(t.TempDir(), "own.model")
	if err := m.Save(f.latency.file); err != nil {
		t.Fatal(err)
	}
	f.latency.ours = true
	from, err := f.findModel(d, false)
	if err != nil || f.latency.Load != 0 || !strings.Contains(from, "train already") {
		t.Fatalf("%v: while jobs train, others use %v: %s", err, f.latency.Load, from)
	}
	w, err := task.Load([]string{"lenet:4"}, task.Settings{Batch: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	f.latency.Load = 0.25
	on := f.describeDevice(d)
	on.Sharing.Share = 0.125 // as on eight processors: each of four jobs finds three eighths of it used, at most
	r, err := on.FirstRequest(w)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := on.Profile(w[0].Graph)
	if err != nil {
		t.Fatal(err)
	}
	others := 0.125 * on.Sharing.BusyOthers(slices.Repeat([]cost.Use{on.Sharing.Use(profile.Latency)}, 4))[0]
	if others < 0.2 || others > 0.375 {
		t.Fatalf("three of four jobs use %v of eight processors", others)
	}
	at := func(load float64) []predictor.Prediction {
		return m.Predict(&m.Devices[0], predictor.CallsOf(w[0].Graph, load))
	}
	alone, beside, changed := at(0.25), at(0.25+others), 0
	for op, got := range r.Jobs[0].Latency {
		if profile.Latency[op] != alone[op].P50 {
			t.Errorf("op %d takes %v alone, want %v", op, profile.Latency[op], alone[op].P50)
		}
		if off := float64(got-beside[op].P50) / float64(max(1, beside[op].P50)); math.Abs(off) > 1e-3 {
			t.Errorf("op %d takes %v beside three other jobs, want %v", op, got, beside[op].P50)
		}
		if got != profile.Latency[op] {
			changed++
		}
	}
	if changed == 0 {
		t.Error("the model takes no notice of load: the test shows nothing")
	}
}

// An executor lives while it holds its lock.
func TestAnyLives(t *testing.T) {
	folder := t.TempDir()
	if anyLives(folder) || anyLives(filepath.Join(folder, "none")) {
		t.Error("an executor lives in an empty folder")
	}
	lock, err := lifelock.Take(folder, "x1")
	if err != nil {
		t.Fatal(err)
	}
	if !anyLives(folder) {
		t.Error("the executor that holds its lock does not live")
	}
	lock.Release()
	if anyLives(folder) {
		t.Error("an executor lives that has released its lock")
	}
}
