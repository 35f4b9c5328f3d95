//go:build linux && cgo

package nvml

import (
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// fake is NVML with one GPU, whose load is what the test says.
func fake(load *uint32, closed *int) *mock.Interface {
	gpu := &mock.Device{
		GetNameFunc: func() (string, nvml.Return) { return "Tesla T4", nvml.SUCCESS },
		GetUtilizationRatesFunc: func() (nvml.Utilization, nvml.Return) {
			if *load > 1000 {
				return nvml.Utilization{}, nvml.ERROR_GPU_IS_LOST
			}
			return nvml.Utilization{Gpu: *load, Memory: 99}, nvml.SUCCESS
		},
	}
	return &mock.Interface{
		InitFunc:                      func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:                  func() nvml.Return { *closed++; return nvml.SUCCESS },
		DeviceGetHandleByUUIDFunc:     find(gpu, "GPU-1"),
		DeviceGetHandleByPciBusIdFunc: find(gpu, "00000000:65:00.0"),
	}
}

// find hands a GPU out by its id.
func find(gpu nvml.Device, id string) func(string) (nvml.Device, nvml.Return) {
	return func(asked string) (nvml.Device, nvml.Return) {
		if asked != id {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return gpu, nvml.SUCCESS
	}
}

func TestMeter(t *testing.T) {
	var load uint32
	var closed int
	m, err := open(fake(&load, &closed), "GPU-1")
	if err != nil || m.Name() != "Tesla T4" {
		t.Fatalf("got %+v, %v", m, err)
	}
	for _, test := range []struct {
		says uint32
		want float64
	}{{0, 0}, {35, 0.35}, {100, 1}, {101, 1}} {
		load = test.says
		if got, err := m.Load(); err != nil || got != test.want {
			t.Errorf("%d %%: %v, %v, want %v", test.says, got, err, test.want)
		}
	}
	load = 5000
	if _, err := m.Load(); err == nil || !strings.Contains(err.Error(), "Tesla T4") {
		t.Errorf("a lost GPU: %v", err)
	}
	if err := m.Close(); err != nil || closed != 1 {
		t.Errorf("closed %d times, %v", closed, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	var load uint32
	var closed int
	for i, id := range []string{"GPU-3", "00000000:66:00.0"} {
		_, err := open(fake(&load, &closed), id)
		if err == nil || !strings.Contains(err.Error(), "GPU "+id) || closed != i+1 {
			t.Errorf("a GPU that is not there: %v, closed %d times", err, closed)
		}
	}
	if m, err := open(fake(&load, &closed), "00000000:65:00.0"); err != nil || m.Name() != "Tesla T4" {
		t.Errorf("by its bus id: %+v, %v", m, err)
	}
	none := fake(&load, &closed)
	none.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
	if _, err := open(none, "GPU-1"); err == nil || !strings.Contains(err.Error(), "driver") {
		t.Errorf("no driver: %v", err)
	}
}
