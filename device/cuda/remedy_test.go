package cuda_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
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
	all := map[string]error{"nvidiactl": nil, "nvidia0": nil, "nvidia-uvm": nil}
	for name, test := range map[string]struct {
		code  cuda.Code
		files map[string]error // that are there
		want  string
	}{
		"all are there":   {cuda.NoDevice, all, "see whether nvidia-smi lists a GPU"},
		"another GPU":     {cuda.Unknown, map[string]error{"nvidiactl": nil, "nvidia3": nil}, "nvidia-modprobe -u"},
		"another reason":  {cuda.SystemNotReady, nil, "start nvidia-fabricmanager"},
		"Windows":         {cuda.NoDevice, map[string]error{"dxg": nil}, "see whether nvidia-smi lists a GPU"},
		"no device files": {cuda.NoDevice, nil, "there is no /dev/nvidiactl: start the container with --gpus all"},
		"no permission": {cuda.NoDevice, map[string]error{"nvidiactl": nil, "nvidia0": fs.ErrPermission},
			"this user may not open /dev/nvidia0: "},
	} {
		first := &cuda.Error{Call: "cuInit", Code: test.code, Text: "words"}
		got := cuda.Barred(first, "/dev", func(path string) error {
			err, ok := test.files[strings.TrimPrefix(path, "/dev/")]
			if !ok {
				err = fs.ErrNotExist
			}
			return err
		})
		if !strings.HasPrefix(got.Error(), first.Error()+": ") || !strings.Contains(got.Error(), test.want) ||
			strings.Contains(got.Error(), "\n") {
			t.Errorf("%s: %v; want %s", name, got, test.want)
		}
	}
}
