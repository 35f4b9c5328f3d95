//go:build linux && cgo

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// library is what is used of NVML.
type library interface {
	Init() nvml.Return
	Shutdown() nvml.Return
	DeviceGetHandleByIndex(index int) (nvml.Device, nvml.Return)
}

// Meter measures the load of one GPU.
type Meter struct {
	library library
	device  nvml.Device
	name    string
}

// Open finds a GPU by its index. The caller closes the meter.
func Open(index int) (*Meter, error) { return open(nvml.New(), index) }

func open(l library, index int) (*Meter, error) {
	if r := l.Init(); r != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML does not start: %w; is the NVIDIA driver installed?", r)
	}
	d, r := l.DeviceGetHandleByIndex(index)
	if r != nvml.SUCCESS {
		l.Shutdown()
		return nil, fmt.Errorf("NVML: GPU %d: %w", index, r)
	}
	name, r := d.GetName()
	if r != nvml.SUCCESS {
		l.Shutdown()
		return nil, fmt.Errorf("NVML: name of GPU %d: %w", index, r)
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
	return min(float64(u.Gpu)/100, 1), nil
}

// Close lets NVML go.
func (m *Meter) Close() error {
	if r := m.library.Shutdown(); r != nvml.SUCCESS {
		return fmt.Errorf("NVML: %w", r)
	}
	return nil
}
