package predictor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tensile/graph"
)

// cacheRate is how many bytes a multiprocessor reads of the second-level cache in a clock. Microbenchmarks by Jia et
// al. (2018 and 2019, arXiv:1804.06826 and 1903.07486) reach 2,155 GB/s on a V100 of 80 units at 1.38 GHz, 1,624 on a
// P100 of 56 at 1.33 and 1,270 on a T4 of 40 at 1.59: 20 to 22 bytes.
const cacheRate = 20

// sheet is a device file in NeuSight's form.
type sheet struct {
	Device         string
	MemBw          float64 `json:"Mem_Bw"` // GB/s
	NumSm          int     `json:"Num_Sm"`
	Freq           float64 // MHz
	SingleFLOPs    float64 // GFLOP/s
	SingleFLOPsMM  float64 // instead, where matrix products have a rate of their own
	SingleFLOPsVEC float64
	L2Cache        float64 // MB
	Launch         float64 // us, of an empty op on the host, as an addition to the form; 0: not measured
}

// ReadDevices reads the device files (*.json) of a folder in NeuSight's form, ordered by name. Files *_TP.json, which
// hold tensor-core rates under the name of another file, are left out.
func ReadDevices(dir string) ([]Device, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_TP.json") })
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no device files (*.json)", dir)
	}
	var devices []Device
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var s sheet
		if err := json.Unmarshal(content, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		d := s.device()
		if err := d.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		devices = append(devices, d)
	}
	slices.SortFunc(devices, func(a, b Device) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(devices); i++ {
		if devices[i].Name == devices[i-1].Name {
			return nil, fmt.Errorf("%s: two files describe the device %q; keep one", dir, devices[i].Name)
		}
	}
	return devices, nil
}

func (s *sheet) device() Device {
	d := Device{Name: s.Device, FLOPs: s.SingleFLOPs * 1e9, Bandwidth: s.MemBw * 1e9, Units: s.NumSm,
		Clock: s.Freq * 1e6, Cache: graph.Bytes(s.L2Cache * 1e6),
		CacheRate: cacheRate * float64(s.NumSm) * s.Freq * 1e6,
		Launch:    time.Duration(s.Launch * 1e3)}
	if d.FLOPs == 0 {
		d.FLOPs, d.Vector = s.SingleFLOPsMM*1e9, s.SingleFLOPsVEC*1e9
	}
	return d
}
