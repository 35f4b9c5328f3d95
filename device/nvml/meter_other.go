//go:build !(linux && cgo)

package nvml

import "errors"

// Meter measures the load of one GPU. In a build without cgo, or not for Linux, there is none.
type Meter struct{}

// Open returns an error in this build.
func Open(int) (*Meter, error) { return nil, errors.New("built without NVML: it needs Linux and cgo") }

// Name is "" in this build.
func (m *Meter) Name() string { return "" }

// Load is 0 in this build.
func (m *Meter) Load() (float64, error) { return 0, nil }

// Close does nothing in this build.
func (m *Meter) Close() error { return nil }
