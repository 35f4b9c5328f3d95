//go:build !(linux && cgo)

package nvml

import "errors"

// Meter measures the load of one GPU. In a build without cgo, or not for Linux, there is none.
type Meter struct{}

var errNone = errors.New("built without NVML: it needs Linux and cgo")

// Open returns an error in this build.
func Open(string) (*Meter, error) { return nil, errNone }

// List returns an error in this build.
func List() ([]GPU, error) { return nil, errNone }

// Name is "" in this build.
func (m *Meter) Name() string { return "" }

// Load is 0 in this build.
func (m *Meter) Load() (float64, error) { return 0, nil }

// Close does nothing in this build.
func (m *Meter) Close() error { return nil }
