//go:build linux && cgo

package nvml

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"

	_ "tensile/internal/long" // the flag -long
	"tensile/internal/needs"
)

// told is a question that is answered, and hidden one that is not.
func told[T any](v T) func() (T, nvml.Return) {
	return func() (T, nvml.Return) { return v, nvml.SUCCESS }
}

func hidden[T any]() (T, nvml.Return) {
	var none T
	return none, nvml.ERROR_NOT_SUPPORTED
}

// A library that is not NVML is refused before go-nvml calls it; one that is not there is not.
func TestCheck(t *testing.T) {
	if err := check("/nowhere/libnvidia-ml.so.1"); err != nil {
		t.Error(err)
	}
	needs.Program(t, "gcc", "gcc")
	dir := t.TempDir()
	for source, want := range map[string]string{
		"int nvmlInit_v2(void) { return 0; }": "",
		"int other;":                          " is another library (it has no nvmlInit_v2): install NVIDIA's driver",
	} {
		library := filepath.Join(dir, fmt.Sprintf("%d.so", len(want)))
		gcc := exec.Command("gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library)
		gcc.Stdin = strings.NewReader(source)
		if out, err := gcc.CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
		err := check(library)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %v, want %q", source, err, want)
		}
	}
}

func TestList(t *testing.T) {
	open := &mock.Device{
		GetNameFunc:                   told("Tesla T4"),
		GetUUIDFunc:                   told("GPU-1"),
		GetPciInfoFunc:                told(nvml.PciInfo{Domain: 0x10000, Bus: 0xaf, Device: 3}),
		GetMemoryInfoFunc:             told(nvml.Memory{Total: 16 << 30, Free: 12 << 30, Used: 4 << 30}),
		GetUtilizationRatesFunc:       told(nvml.Utilization{Gpu: 35}),
		GetCurrPcieLinkGenerationFunc: told(1),
		GetCurrPcieLinkWidthFunc:      told(8),
		GetMaxPcieLinkGenerationFunc:  told(3),
		GetMaxPcieLinkWidthFunc:       told(16),
		GetComputeRunningProcessesFunc: told([]nvml.ProcessInfo{{Pid: 70, UsedGpuMemory: 1 << 30},
			{Pid: 7, UsedGpuMemory: math.MaxUint64}}),
		GetGraphicsRunningProcessesFunc: told([]nvml.ProcessInfo{{Pid: 70, UsedGpuMemory: 1 << 30}, {Pid: 71}}),
	}
	shy := &mock.Device{
		GetNameFunc:                     told("shy"),
		GetUUIDFunc:                     told("GPU-2"),
		GetPciInfoFunc:                  told(nvml.PciInfo{Bus: 1}),
		GetMemoryInfoFunc:               told(nvml.Memory{Total: 5, Used: 1}),
		GetUtilizationRatesFunc:         hidden[nvml.Utilization],
		GetCurrPcieLinkGenerationFunc:   hidden[int],
		GetCurrPcieLinkWidthFunc:        hidden[int],
		GetMaxPcieLinkGenerationFunc:    hidden[int],
		GetMaxPcieLinkWidthFunc:         hidden[int],
		GetComputeRunningProcessesFunc:  hidden[[]nvml.ProcessInfo],
		GetGraphicsRunningProcessesFunc: hidden[[]nvml.ProcessInfo],
	}
	closed := 0
	l := &mock.Interface{
		InitFunc:           func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:       func() nvml.Return { closed++; return nvml.SUCCESS },
		DeviceGetCountFunc: told(2),
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) {
			return []nvml.Device{open, shy}[i], nvml.SUCCESS
		},
		SystemGetProcessNameFunc: func(pid int) (string, nvml.Return) {
			if pid == 70 {
				return "/usr/bin/python3", nvml.SUCCESS
			}
			return "", nvml.ERROR_NOT_FOUND
		},
	}
	got, err := list(l)
	if err != nil || closed != 1 {
		t.Fatalf("%v, closed %d times", err, closed)
	}
	load := 0.35
	want := []GPU{
		{Name: "Tesla T4", UUID: "GPU-1", Bus: "00010000:AF:03.0", Memory: 16 << 30, Used: 4 << 30, Load: &load,
			Link: Link{1, 8}, MaxLink: Link{3, 16},
			Processes: []Process{{ID: 7}, {70, "/usr/bin/python3", 1 << 30}, {ID: 71}}},
		{Name: "shy", UUID: "GPU-2", Bus: "00000000:01:00.0", Memory: 5, Used: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	shy.GetMemoryInfoFunc = hidden[nvml.Memory]
	if _, err := list(l); err == nil || !strings.Contains(err.Error(), "GPU 1: memory") || closed != 2 {
		t.Errorf("without memory: %v, closed %d times", err, closed)
	}
}
