package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/bench/calibrate"
	"tensile/controller"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/nvml"
	"tensile/graph/cost"
	"tensile/predictor"
	"tensile/scheduler/planner"
)

// latencyFlags say where the latencies come from that plans are made with before anything was measured.
type latencyFlags struct {
	file        string
	calibrate   bool
	noCalibrate bool
	eager       bool // a person at a terminal gets a quick calibration if there is no model
	ours        bool // jobs of ours run already, so that what others use cannot be measured

	planner.Sources // what findModel has found
}

func (f *latencyFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "predictor", "",
		"file with a latency model (default: the one made by tensile device calibrate for this device, if any)")
	c.Flags().BoolVar(&f.calibrate, "calibrate", false,
		"calibrate for a few seconds if there is no latency model yet (default for run on a terminal)")
	c.Flags().BoolVar(&f.noCalibrate, "no-calibrate", false, "use roofline estimates instead of a latency model")
}

// describeDevice describes the device for plans of jobs that share it as flags say. Jobs with a simulated device each
// do not slow one another down.
func (f *planFlags) describeDevice(d device.Device) planner.Device {
	c := controller.Config{MemorySharing: f.way()}
	on := c.SharedDevice(f.latency.Describe(d))
	if f.apart && f.simulated() {
		on.Sharing = cost.Sharing{}
	}
	return on
}

// findModel loads the model that the flags ask for, or makes one, and says what plans are made with. Latencies of some
// graphs may be recorded.
func (p *planFlags) findModel(d device.Device, recorded bool) (string, error) {
	f := &p.latency
	switch {
	case f.noCalibrate && (f.calibrate || f.file != ""):
		return "", errors.New("--no-calibrate excludes --calibrate and --predictor: choose one")
	case p.simulated() && (f.calibrate || f.file != ""):
		return "", fmt.Errorf("--device %s is simulated by the roofline: --predictor and --calibrate are for "+
			"--device cpu", p.device)
	case p.fake && (f.calibrate || f.file != ""):
		return "", errors.New("--fake has the times of the roofline: leave out --predictor and --calibrate")
	case p.simulated() && recorded:
		return "as recorded; roofline of other networks", nil
	case p.simulated(), p.fake, f.noCalibrate:
		return "roofline", nil
	}
	path, asked := f.file, f.file != ""
	if !asked {
		var err error
		if path, err = p.modelPath(d); err != nil {
			return "roofline (no place for a model: " + err.Error() + ")", nil
		}
	}
	m, err := predictor.Load(path)
	switch {
	case err == nil && m.Devices[0].Name == p.modelName(d):
	case err == nil && asked:
		return "", fmt.Errorf("--predictor %s is of %s, this device is %s", path, m.Devices[0].Name, p.modelName(d))
	case asked:
		return "", fmt.Errorf("--predictor: %w", err)
	case !f.calibrate && !(f.eager && isTerminal(os.Stderr)):
		return "roofline; tensile device calibrate measures this machine once and for all", nil
	default:
		if m, err = p.quickModel(d, path); err != nil {
			return "", err
		}
	}
	f.Model = m
	if f.ours {
		return fmt.Sprintf("predictor %s; jobs train already, so what others use of the machine is not known",
			path), nil
	}
	f.Load = foreignLoad(d, p.fake)
	return fmt.Sprintf("predictor %s, others use %.0f %% of the machine", path, 100*f.Load), nil
}

// foreignLoad is the share of a device that others use while no job of ours runs on it: of a GPU by NVML, of the cpu
// device by the system. Where neither tells it is 0.
func foreignLoad(d device.Device, fake bool) float64 {
	g, ok := d.(gpu)
	if !ok {
		var meter cpu.Meter
		meter.Load() // begins
		time.Sleep(loadWindow)
		load, _ := meter.Load()
		return load
	}
	if fake {
		return 0
	}
	meter, err := nvml.Open(g.Bus())
	if err != nil {
		return 0
	}
	defer meter.Close()
	load, _ := meter.Load()
	return load
}

// calibration is how ops are measured on a device: on the cpu device beside threads that are busy as well. On a GPU
// those change nothing, and NVML does not tell others' kernels from ours, so others are taken to leave it alone.
func calibration(d device.Device) calibrate.Options {
	if _, ok := d.(gpu); ok {
		return calibrate.Options{Background: []int{0}}
	}
	return calibrate.Options{Meter: &cpu.Meter{}}
}

// loadWindow is how long the load of the machine is looked at before a plan.
const loadWindow = 100 * time.Millisecond

// quickModel calibrates in a few seconds and keeps the model.
func (p *planFlags) quickModel(d device.Device, path string) (*predictor.Model, error) {
	o := calibration(d)
	o.Time, o.Background = 3*time.Second, []int{0}
	m, _, err := calibrateDevice(context.Background(), d, p.modelName(d), o, 0.05, os.Stderr)
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w; --no-calibrate takes roofline times", err)
	}
	m.Note = "quick calibration; " + m.Note
	return m, keep(m, path)
}

// keep saves a model and makes its folder.
func keep(m *predictor.Model, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return m.Save(path)
}

// modelName is a device as its model knows it: the number of its threads changes latencies.
func (p *planFlags) modelName(d device.Device) string {
	return fmt.Sprintf("%s, threads %d", d.Name(), p.threads)
}

// modelPath is where the model of a device is kept.
func (p *planFlags) modelPath(d device.Device) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(p.modelName(d)))
	return filepath.Join(dir, "tensile", name+".model"), nil
}
