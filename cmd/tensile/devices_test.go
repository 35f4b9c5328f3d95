package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/nvml"
	"tensile/graph"
)

// What a context takes is what the used memory rises by while the device is open; 0 where nobody says.
func TestContext(t *testing.T) {
	fake := func() (cuda.Driver, error) { return fakecuda.New(fakecuda.Options{}), nil }
	used := graph.Bytes(100)
	rising := func(bus string) (graph.Bytes, bool) {
		if bus != "00000000:65:00.0" {
			t.Errorf("asked for %s", bus)
		}
		used += 7
		return used, true
	}
	unknown := func(string) (graph.Bytes, bool) { return 0, false }
	for _, test := range []struct {
		used func(string) (graph.Bytes, bool)
		want graph.Bytes
	}{{rising, 7}, {unknown, 0}} {
		got, err := cudaDevices(fake, test.used)
		if err != nil || len(got) != 1 || got[0].Context != test.want || got[0].Name != "fake a6000" {
			t.Errorf("got %+v, %v, want a context of %v", got, err, test.want)
		}
	}
	none := errors.New("no driver")
	if got, err := cudaDevices(func() (cuda.Driver, error) { return nil, none }, unknown); got != nil || err != none {
		t.Errorf("got %v, %v", got, err)
	}
}

// A device that cannot be opened is listed, with what can be done about it.
func TestDevicesUnavailable(t *testing.T) {
	driver := func() (cuda.Driver, error) {
		return fakecuda.New(fakecuda.Options{Fail: fakecuda.Failure{Call: 1, Code: cuda.Unavailable}}), nil
	}
	first := true
	got, err := cudaDevices(func() (cuda.Driver, error) {
		if first { // which lists them
			first = false
			return fakecuda.New(fakecuda.Options{}), nil
		}
		return driver()
	}, func(string) (graph.Bytes, bool) { return 0, true })
	const begin = "cuda:0 is not opened: cuDevicePrimaryCtxRetain: "
	if len(got) != 1 || err == nil || !strings.HasPrefix(err.Error(), begin) ||
		!strings.HasSuffix(err.Error(), "nvidia-smi --compute-mode=DEFAULT, or start MPS") {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Where NVML says how much of a GPU a process has, that is its context; else what is used more than before is.
func TestContextOf(t *testing.T) {
	gpu := func(bus string, used graph.Bytes, p ...nvml.Process) nvml.GPU {
		return nvml.GPU{Bus: bus, Used: used, Processes: p}
	}
	before := []nvml.GPU{gpu("a", 100), gpu("b", 200)}
	for _, test := range []struct {
		bus   string
		after []nvml.GPU
		want  graph.Bytes
	}{
		{"a", []nvml.GPU{gpu("a", 109), gpu("b", 900)}, 9},
		{"b", []nvml.GPU{gpu("a", 109), gpu("b", 900)}, 700},
		{"a", []nvml.GPU{gpu("a", 999, nvml.Process{ID: 6, Memory: 90}, nvml.Process{ID: 7, Memory: 8})}, 8},
		{"a", []nvml.GPU{gpu("a", 109, nvml.Process{ID: 7})}, 9},
		{"a", []nvml.GPU{gpu("a", 90)}, 0},
		{"c", []nvml.GPU{gpu("c", 90)}, 0},
		{"a", nil, 0},
	} {
		if got := contextOf(test.bus, 7, before, test.after); got != test.want {
			t.Errorf("the context at %s beside %+v is %v, want %v", test.bus, test.after, got, test.want)
		}
	}
}

// The driver keeps what it compiles in the home of the user, elsewhere if nothing can be written there, and where the
// user says.
func TestTellDriver(t *testing.T) {
	home, caches := t.TempDir(), t.TempDir()
	for _, test := range []struct{ home, path, want string }{
		{home, "", ""},
		{"/dev/null", "", filepath.Join(caches, "tensile", "ComputeCache")},
		{"/dev/null", "elsewhere", "elsewhere"},
	} {
		t.Setenv("HOME", test.home)
		t.Setenv("XDG_CACHE_HOME", caches)
		t.Setenv("CUDA_CACHE_PATH", test.path) // it is as it was in the end
		t.Setenv("CUDA_MODULE_LOADING", "")
		os.Unsetenv("CUDA_MODULE_LOADING")
		if test.path == "" {
			os.Unsetenv("CUDA_CACHE_PATH")
		}
		tellDriver()
		loading := os.Getenv("CUDA_MODULE_LOADING")
		if got := os.Getenv("CUDA_CACHE_PATH"); got != test.want || loading != "EAGER" {
			t.Errorf("home %s, path %q: CUDA_CACHE_PATH is %q, want %q", test.home, test.path, got, test.want)
		}
	}
	t.Setenv("CUDA_MODULE_LOADING", "LAZY")
	if tellDriver(); os.Getenv("CUDA_MODULE_LOADING") != "LAZY" {
		t.Error("what the user has set is changed")
	}
	if left, err := os.ReadDir(filepath.Join(home, ".nv", "ComputeCache")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
