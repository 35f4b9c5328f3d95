package cuda

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// remedies say what a user can do about an error that a driver meets when it is loaded or a device is opened.
var remedies = map[Code]string{
	OutOfMemory: "other processes have the memory: tensile devices lists them; end one, or give another GPU",
	StubLibrary: "libcuda.so.1 is the stub of a toolkit: take its folder stubs out of LD_LIBRARY_PATH",
	Unavailable: "another process has the GPU and its compute mode lets in one alone: an administrator can run " +
		"nvidia-smi --compute-mode=DEFAULT, or start MPS",
	NoDevice: "see whether nvidia-smi lists a GPU, CUDA_VISIBLE_DEVICES names one, and, where MIG is on, " +
		"nvidia-smi -L lists an instance",
	InvalidDevice:  "see whether CUDA_VISIBLE_DEVICES names a GPU, or an instance of MIG, that nvidia-smi -L lists",
	NoBinaryForGPU: "the driver does not compile the kernels for this GPU: install a newer driver",
	InvalidPTX:     "the driver does not compile the kernels: install another driver, 384 or later",
	NoCompiler: "the driver's compiler, libnvidia-ptxjitcompiler.so.1, is missing: install the whole driver; in a " +
		"container set NVIDIA_DRIVER_CAPABILITIES=compute,utility",
	UnsupportedPTX:  "the driver is too old for the kernels: install 384 or later",
	OperatingSystem: "the system let the driver not do something: see dmesg, and whether /dev/nvidia* may be used",
	NotFound:        "the driver is too old and lacks this call: install 384 or later",
	SystemNotReady:  "the GPUs are not set up yet: start nvidia-fabricmanager, of the driver's version",
	Mismatch:        "the driver's library and its kernel module have different versions: restart the machine",
	NotCompatible: "a libcuda.so.1 of a package cuda-compat is loaded, which this GPU does not take: take its folder " +
		"out of LD_LIBRARY_PATH",
	Unknown: "see dmesg and whether nvidia-smi works; nvidia-modprobe -u loads nvidia_uvm, which CUDA wants as well",
}

// Remedied returns an error of opening a driver or a device with what can be done about it, in one line.
func Remedied(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || remedies[e.Code] == "" || e.Call == "cuMemHostRegister" { // whose memory is the host's
		return err
	}
	return fmt.Errorf("%w: %s", err, remedies[e.Code])
}

// Barred is Remedied for a driver that finds no GPU, which looks for the device files of GPUs in dir: what keeps this
// process from them, and what can be done about it. open opens a file for reading and writing.
func Barred(err error, dir string, open func(name string) error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != NoDevice && e.Code != OperatingSystem && e.Code != Unknown || open(dir+"/dxg") == nil { // WSL
		return Remedied(err)
	}
	for _, name := range []string{"nvidiactl", "nvidia0", "nvidia-uvm"} {
		path := filepath.Join(dir, name)
		switch problem := open(path); {
		case errors.Is(problem, fs.ErrPermission):
			return fmt.Errorf("%w: this user may not open %s: have an administrator add the user to the file's group",
				err, path)
		case errors.Is(problem, fs.ErrNotExist) && name == "nvidiactl":
			return fmt.Errorf("%w: there is no %s: start the container with --gpus all, or load the kernel module "+
				"nvidia", err, path)
		}
	}
	return Remedied(err)
}
