package cuda_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"tensile/device/cuda"
	"tensile/internal/fakecuda"
)

// What a user of a card meets first is one line that says what can be done about it.
func TestRemedies(t *testing.T) {
	for _, test := range []struct {
		call   string
		code   cuda.Code
		remedy string
	}{
		{"cuDeviceGet", cuda.NoDevice, "see whether nvidia-smi lists a GPU"},
		{"cuDeviceGet", cuda.SystemNotReady, "start nvidia-fabricmanager"},
		{"cuDeviceGet", cuda.InvalidDevice, "see whether CUDA_VISIBLE_DEVICES names a GPU, or an instance of MIG"},
		{"cuDevicePrimaryCtxRetain", cuda.Unavailable, "nvidia-smi --compute-mode=DEFAULT, or start MPS"},
		{"cuDevicePrimaryCtxRetain", cuda.OutOfMemory, "tensile devices lists them"},
		{"cuDevicePrimaryCtxRetain", cuda.NotFound, "install 384 or later"},
		{"cuDevicePrimaryCtxRetain", cuda.Unknown, "nvidia-modprobe -u"},
		{"cuModuleLoadDataEx", cuda.NoCompiler, "NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
		{"cuModuleLoadDataEx", cuda.OutOfMemory, "tensile devices lists them"},
		{"cuMemAlloc", cuda.OutOfMemory, "tensile devices lists them"},
		{"cuMemHostRegister", cuda.OutOfMemory, "see ulimit -l and the memory limit of the container"},
	} {
		err := openingFails(t, test.call, test.code)
		if e, ok := errors.AsType[*cuda.Error](err); !ok || e.Code != test.code || e.Call != test.call {
			t.Errorf("%s fails with %d: got %v", test.call, test.code, err)
		} else if line := err.Error(); !strings.Contains(line, test.remedy) || strings.Contains(line, "\n") ||
			strings.Count(line, "tensile devices") > 1 {
			t.Errorf("%s fails with %d: %s; want %q in it", test.call, test.code, line, test.remedy)
		}
	}
	for _, code := range []cuda.Code{cuda.InvalidPTX, cuda.UnsupportedPTX, cuda.NoBinaryForGPU} {
		refuse := map[string]cuda.Code{"sm_60": code, "sm_80": code}
		_, err := cuda.New(fakecuda.New(fakecuda.Options{Refuse: refuse}), cuda.Options{})
		const log = "the driver compiles nothing for .target sm_80" // the compiler's words
		if err == nil || !strings.Contains(err.Error(), log) || !strings.Contains(err.Error(), "install ") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("no text is compiled, code %d: %v", code, err)
		}
	}
}

// openingFails opens a device of a driver whose first call of a function fails.
func openingFails(t *testing.T, call string, code cuda.Code) error {
	t.Helper()
	for n := 1; n < 1000; n++ {
		driver := fakecuda.New(fakecuda.Options{Fail: fakecuda.Failure{Call: n, Code: code}})
		d, err := cuda.New(driver, cuda.Options{})
		if err == nil {
			closed(t, d)
			break
		}
		if e, ok := errors.AsType[*cuda.Error](err); ok && e.Call == call {
			return err
		}
	}
	return fmt.Errorf("opening a device does not call %s, or goes on when it fails with %d", call, code)
}

// The device files say why the driver finds no GPU.
func TestBarred(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]error // that are there
		want  string
	}{
		"all are there": {map[string]error{"nvidiactl": nil, "nvidia0": nil, "nvidia-uvm": nil}, ""},
		"another GPU":   {map[string]error{"nvidiactl": nil, "nvidia3": nil}, ""},
		"no permission": {map[string]error{"nvidiactl": nil, "nvidia0": fs.ErrPermission},
			"/dev/nvidia0 may not be opened"},
		"no device files": {nil, "/dev/nvidiactl is not there: start the container with --gpus all"},
	} {
		got := cuda.Barred("/dev", func(path string) error {
			err, ok := test.files[strings.TrimPrefix(path, "/dev/")]
			if !ok {
				err = fs.ErrNotExist
			}
			return err
		})
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
