//go:build linux && cgo

package nvml

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// library is what is used of NVML.
type library interface {
	Init() nvml.Return
	Shutdown() nvml.Return
	DeviceGetCount() (int, nvml.Return)
	DeviceGetHandleByIndex(index int) (nvml.Device, nvml.Return)
	DeviceGetHandleByUUID(uuid string) (nvml.Device, nvml.Return)
	DeviceGetHandleByPciBusId(bus string) (nvml.Device, nvml.Return)
	SystemGetProcessName(pid int) (string, nvml.Return)
}

// Meter measures the load of one GPU.
type Meter struct {
	library library
	device  nvml.Device
	name    string
}

// Open finds a GPU by its UUID (GPU-...) or its PCI bus id (00000000:65:00.0). The caller closes the meter.
func Open(id string) (*Meter, error) {
	if err := check(name); err != nil {
		return nil, err
	}
	return open(nvml.New(), id)
}

func open(l library, id string) (*Meter, error) {
	if err := start(l); err != nil {
		return nil, err
	}
	find := l.DeviceGetHandleByPciBusId
	if strings.HasPrefix(id, "GPU-") {
		find = l.DeviceGetHandleByUUID
	}
	d, r := find(id)
	if r != nvml.SUCCESS {
		l.Shutdown()
		return nil, fmt.Errorf("NVML: GPU %s: %w", id, r)
	}
	name, r := d.GetName()
	if r != nvml.SUCCESS {
		l.Shutdown()
		return nil, fmt.Errorf("NVML: name of GPU %s: %w", id, r)
	}
	return &Meter{library: l, device: d, name: name}, nil
}

// Name is the GPU's name, as models of latencies know it.
func (m *Meter) Name() string { return m.name }

// Load returns the share of the recent past, a sixth of a second to one second, in which a kernel ran on the GPU,
// from 0 to 1.
func (m *Meter) Load() (float64, error) {
	u, r := m.device.GetUtilizationRates()
	if r != nvml.SUCCESS {
		return 0, fmt.Errorf("NVML: load of %s: %w", m.name, r)
	}
	return share(u), nil
}

// Close lets NVML go.
func (m *Meter) Close() error {
	if r := m.library.Shutdown(); r != nvml.SUCCESS {
		return fmt.Errorf("NVML: %w", r)
	}
	return nil
}
