package report

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device/cuda"
	"tensile/device/nvml"
	"tensile/graph"
)

// NVML and CUDA have the GPUs in other orders, and each one that the other has not. One has its UUID from NVML alone.
func TestDevices(t *testing.T) {
	load := 0.07
	seen := []nvml.GPU{
		{Name: "Tesla T4", UUID: "GPU-1", Bus: "00000000:65:00.0", Memory: 16 * graph.GiB, Used: 2 * graph.GiB,
			Load: &load,
			Link: nvml.Link{Generation: 1, Width: 8}, MaxLink: nvml.Link{Generation: 3, Width: 16},
			Processes: []nvml.Process{{ID: 70, Name: "/usr/bin/python3", Memory: graph.GiB}, {ID: 7}}},
		{Name: "hidden", UUID: "GPU-2", Bus: "00000000:66:00.0", Memory: 8 * graph.GiB},
		{Name: "H200", UUID: "GPU-3", Bus: "00000000:67:00.0", Memory: 141 * graph.GiB,
			Link: nvml.Link{Generation: 5, Width: 16}, MaxLink: nvml.Link{Generation: 5, Width: 16}},
	}
	usable := []CUDADevice{
		{cuda.Properties{Name: "H200", UUID: "GPU-3", Bus: "00000000:67:00.0", Major: 9, Processors: 132,
			Memory: 140 * graph.GiB}, 512 * graph.MiB},
		{cuda.Properties{Name: "GTX 980", UUID: "GPU-4", Bus: "00000000:68:00.0", Major: 5, Minor: 2,
			Memory: 4 * graph.GiB}, 0},
		{cuda.Properties{Name: "Tesla T4", Bus: "00000000:65:00.0", Major: 7, Minor: 5,
			Memory: 15 * graph.GiB, Exclusive: true}, 100 * graph.MiB},
	}
	d := NewDevices(CPU{"cpu", 4, 3 * graph.GiB}, seen, usable, nil,
		errors.Join(errors.New("a line"), errors.New("another")))
	var b strings.Builder
	if err := d.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	const want = `DEVICE      NAME     MEMORY     USED    CONTEXT  BUSY           PCIE  CAPABILITY        PCI BUS ID
cuda:0      H200  140.00GiB  0.00KiB  512.00MiB     -          5 x16         9.0  00000000:67:00.0
cuda:1   GTX 980    4.00GiB        -          -     -              -         5.2  00000000:68:00.0
cuda:2  Tesla T4   15.00GiB  2.00GiB  100.00MiB   7 %  1 x8 of 3 x16         7.5  00000000:65:00.0
-         hidden    8.00GiB  0.00KiB          -     -              -           -  00000000:66:00.0
process 70 on cuda:2 uses 1.00GiB: /usr/bin/python3
process 7 on cuda:2
cpu: 4 cores, 3.00GiB of memory are available
in virtual time: sim:a6000 (44.70GiB), sim:v100 (29.80GiB), sim:h200 (131.32GiB), ` +
		`sim:k40 (11.18GiB), sim:p100 (14.90GiB), sim:rtx2080ti (10.24GiB), sim:gtx1080ti (10.24GiB)
missing: a line
missing: another
missing: cuda:1 (GTX 980) has compute capability 5.2: the kernels need 6.0
missing: cuda:2 lets in one process at a time, and run has one for each job and itself: an administrator can run ` +
		`nvidia-smi --id=00000000:65:00.0 --compute-mode=DEFAULT, or start MPS
missing: CUDA does not have the GPU at 00000000:66:00.0 (hidden): see CUDA_VISIBLE_DEVICES
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	document, err := json.Marshal(d.GPUs[2])
	if err != nil {
		t.Fatal(err)
	}
	const gpu = `{"device":"cuda:2","memory_bytes":16106127360,"name":"Tesla T4","uuid":"GPU-1",` +
		`"pci_bus_id":"00000000:65:00.0","nvml":{"used_bytes":2147483648,"load":0.07,` +
		`"pcie":{"generation":1,"width":8},"pcie_max":{"generation":3,"width":16},` +
		`"processes":[{"pid":70,"name":"/usr/bin/python3","memory_bytes":1073741824},{"pid":7}]},` +
		`"cuda":{"capability":"7.5","multiprocessors":0,"context_bytes":104857600}}`
	if diff := cmp.Diff(gpu, string(document)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Of an instance of MIG NVML knows the whole GPU alone.
func TestDevicesMIG(t *testing.T) {
	whole := nvml.GPU{Name: "H100", Bus: "00000000:65:00.0", Memory: 80 * graph.GiB}
	instance := CUDADevice{cuda.Properties{Name: "NVIDIA H100 80GB HBM3 MIG 1g.10gb", Bus: whole.Bus, Major: 9,
		Memory: 10 * graph.GiB}, 0}
	d := NewDevices(CPU{}, []nvml.GPU{whole}, []CUDADevice{instance})
	const want = "cuda:0 is an instance of MIG: USED, BUSY, PCIE, CONTEXT and processes are those of the whole GPU"
	if len(d.Missing) != 1 || d.Missing[0] != want || d.GPUs[0].Memory != 10*graph.GiB {
		t.Errorf("%+v", d)
	}
}
