package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/nvml"
	"tensile/graph"
)

// fakeContext is what a process takes of the memory of the device without a GPU.
const fakeContext = 256 * graph.MiB

// openCUDA opens the device that --device cuda or cuda:N names, the first being 0; with --fake on a driver without a
// GPU. It records how much of the device's memory this process takes by opening it.
func openCUDA(f *planFlags) (*cuda.Device, error) {
	var o cuda.Options
	if _, number, ok := strings.Cut(f.device, ":"); ok {
		var err error
		if o.Index, err = strconv.Atoi(number); err != nil || o.Index < 0 {
			return nil, fmt.Errorf("--device %s: give cuda, or cuda:N with the number of a GPU from 0 on", f.device)
		}
	}
	if f.link != "" && f.link != "none" {
		return nil, fmt.Errorf("--link %s: on --device cuda the link is the device's own; leave it out", f.link)
	}
	var err error
	if o.Pinned, err = f.host.limit(false); err != nil {
		return nil, err
	}
	var driver cuda.Driver
	gpus := seenGPUs
	if f.fake {
		fake := fakecuda.New(fakecuda.Options{Context: fakeContext})
		driver, gpus = fake, func() []nvml.GPU { return []nvml.GPU{{Bus: fakecuda.Bus, Used: fake.Used()}} }
	} else if driver, err = cudaDriver(); err != nil {
		return nil, fmt.Errorf("--device %s: %w; cpu and sim:NAME (%s) need no GPU", f.device, err, simNames())
	}
	before := gpus()
	d, err := cuda.New(driver, o)
	if err != nil {
		return nil, fmt.Errorf("--device %s: %w", f.device, err)
	}
	f.context = contextOf(d.Bus(), os.Getpid(), before, gpus())
	return d, nil
}

// tellDriver sets what CUDA's driver, which is not loaded yet, reads from the environment, where the user has not. The
// driver loads kernels with their modules, so that what a context takes is known once a device is open; and what it has
// made of them it keeps in a folder that can be written, so that executors, which are started later, find it there.
func tellDriver() {
	if _, isSet := os.LookupEnv("CUDA_MODULE_LOADING"); !isSet {
		os.Setenv("CUDA_MODULE_LOADING", "EAGER")
	}
	_, isSet := os.LookupEnv("CUDA_CACHE_PATH")
	if home, err := os.UserHomeDir(); isSet || err == nil && canWrite(filepath.Join(home, ".nv", "ComputeCache")) {
		return
	}
	if caches, err := os.UserCacheDir(); err == nil {
		if own := filepath.Join(caches, "tensile", "ComputeCache"); canWrite(own) {
			os.Setenv("CUDA_CACHE_PATH", own)
		}
	}
}

// canWrite reports whether files can be made in a folder, which it makes if it is not there.
func canWrite(folder string) bool {
	if os.MkdirAll(folder, 0o700) != nil {
		return false
	}
	f, err := os.CreateTemp(folder, "tensile")
	if err != nil {
		return false
	}
	return errors.Join(f.Close(), os.Remove(f.Name())) == nil
}

// gpu is a device that is on PCI: a cuda.Device or cuda.Pager.
type gpu interface{ Bus() string }

var _ gpu = cuda.Pager{}

// seenGPUs are those that NVML sees; none without it.
func seenGPUs() []nvml.GPU {
	all, _ := nvml.List()
	return all
}

// contextOf is what a process takes of the memory of the GPU at a PCI bus id by opening it: what NVML says that it has,
// or, as in a container where NVML does not know it, by how much more is used than before; 0 where nobody says.
func contextOf(bus string, process int, before, after []nvml.GPU) graph.Bytes {
	at := func(g nvml.GPU) bool { return g.Bus == bus }
	was, is := slices.IndexFunc(before, at), slices.IndexFunc(after, at)
	if was < 0 || is < 0 {
		return 0
	}
	for _, p := range after[is].Processes {
		if p.ID == process && p.Memory > 0 {
			return p.Memory // others may have taken or given back some meanwhile
		}
	}
	return max(0, after[is].Used-before[was].Used)
}

// printJSON prints a document of what a device has done, with "fake": true if that had a driver without a GPU.
func (f *planFlags) printJSON(out io.Writer, document any) error {
	if f.fake {
		document = faked{document}
	}
	return printJSON(out, document)
}

// faked is a document, an object, which says that no GPU was used.
type faked struct{ document any }

func (d faked) MarshalJSON() ([]byte, error) {
	content, err := json.Marshal(d.document)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"fake":true,`), content[1:]...), nil
}

// notReal says below a table that no GPU was used, if so.
func (f *planFlags) notReal(out io.Writer) error {
	if !f.fake {
		return nil
	}
	_, err := fmt.Fprintln(out, "fake: no GPU was used; kernels are executed by an interpreter, in virtual time")
	return err
}
