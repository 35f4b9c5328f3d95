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
	"tensile/controller/local"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/nvml"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
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

	model    *predictor.Model                 // nil: roofline
	load     float64                          // share that others use, measured while no job of ours runs; 0: not known
	measured map[graph.Digest][]time.Duration // Measured latencies by digest of the graph; they are not predicted.
	recorded map[graph.Digest][]time.Duration // latencies of captured graphs, per op
}

func (f *latencyFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "predictor", "",
		"file with a latency model (default: the one made by tensile device calibrate for this device, if any)")
	c.Flags().BoolVar(&f.calibrate, "calibrate", false,
		"calibrate for a few seconds if there is no latency model yet (default for run on a terminal)")
	c.Flags().BoolVar(&f.noCalibrate, "no-calibrate", false, "use roofline estimates instead of a latency model")
}

// describeDevice describes the device for plans. Of latencies that a model predicts it also knows what they are under a
// load. Jobs with a simulated device each do not slow one another down.
func (f *planFlags) describeDevice(d device.Device) planner.Device {
	c := controller.Config{MemorySharing: f.sharing.Sharing}
	on := c.SharedDevice(planner.Describe(d, f.latencies(d)))
	if f.whole {
		on = on.Unshared()
	}
	if f.apart && f.simulated() {
		on.Sharing = cost.Sharing{}
	}
	profile := on.Profile
	on.Profile = func(g *graph.Graph) (planner.Profile, error) {
		recorded := f.latency.recorded[g.Digest()]
		if recorded == nil || len(d.Variants(g, 0)) > 0 {
			return profile(g)
		}
		return planner.Profile{Latency: recorded}, nil // its script executes the ops, the device only has the memory
	}
	if f.latency.model != nil && f.latency.measured == nil {
		on.Loaded = func(g *graph.Graph, load float64) []time.Duration {
			return f.latency.loaded(g, load)
		}
	}
	return on
}

// latencies are those that a graph's ops are taken to have on the device while no other job of ours runs, and by how
// much they may be off: what p95 is above p50. The slack of the roofline is not known, that of measured ones is none:
// nil.
func (f *planFlags) latencies(d device.Device) planner.Latencies {
	roofline := planner.Roofline(d.Facts())
	return func(g *graph.Graph) (latency, slack []time.Duration) {
		digest := g.Digest()
		if known := f.latency.measured[digest]; known != nil {
			return known, nil
		}
		if known := f.latency.recorded[digest]; known != nil {
			return known, nil
		}
		if f.latency.model == nil {
			return roofline(g)
		}
		return f.latency.predict(g, 0)
	}
}

// record takes latencies from the files of graphs that were recorded. On a simulated device ops then take that.
func (f *planFlags) record(tasks []task.Task) {
	for _, t := range tasks {
		if t.Latency == nil {
			continue
		}
		if f.latency.recorded == nil {
			f.latency.recorded = make(map[graph.Digest][]time.Duration)
		}
		f.latency.recorded[t.Graph.Digest()] = t.Latency
	}
}

// simulated returns a simulated device on which the ops of recorded graphs take what was recorded.
func (f *latencyFlags) simulated(facts cost.Facts, o sim.Options) *sim.Device {
	if f.recorded != nil {
		known := make(map[*graph.Graph][]time.Duration)
		o.Latency = func(g *graph.Graph, op graph.OpID) time.Duration {
			if _, asked := known[g]; !asked {
				known[g] = f.recorded[g.Digest()]
			}
			if latency := known[g]; latency != nil {
				return max(1, latency[op])
			}
			return facts.Roofline(g.Cost(op))
		}
	}
	return sim.New(facts, o)
}

// loaded asks the model what a graph's ops take while our other jobs use a share of the device; 0: it was not trained
// under such a load.
func (f *latencyFlags) loaded(g *graph.Graph, load float64) []time.Duration {
	latency, _ := f.predict(g, load)
	for op, c := range predictor.CallsOf(g, min(1, f.load+load)) {
		if !f.model.KnowsLoad(&c) {
			latency[op] = 0
		}
	}
	return latency
}

// predict asks the model what a graph's ops take while our other jobs use a share of the device, beside what others do
// there.
func (f *latencyFlags) predict(g *graph.Graph, load float64) (latency, slack []time.Duration) {
	m := f.model
	latency, slack = make([]time.Duration, len(g.Ops)), make([]time.Duration, len(g.Ops))
	for op, p := range m.Predict(&m.Devices[0], predictor.CallsOf(g, min(1, f.load+load))) {
		latency[op], slack[op] = p.P50, p.P95-p.P50
	}
	return latency, slack
}

// measured plans again, with the latencies that a run of the same jobs has measured. They are kept as if each job ran
// alone, as predicted ones are: a request has what ops take beside the other jobs.
func (s *session) measured(ctx context.Context, p *planFlags, run *local.Run, planned *planner.Planned) error {
	on := p.describeDevice(s.device)
	profiles, uses := make([]planner.Profile, len(s.workload)), make([]cost.Use, len(s.workload))
	for i, t := range s.workload {
		profile, err := on.Profile(t.Graph)
		if err != nil {
			return err
		}
		profiles[i], uses[i] = profile, on.Sharing.Use(profile.Latency)
	}
	stretch := on.Sharing.Slowdowns(uses)
	p.latency.measured = make(map[graph.Digest][]time.Duration)
	for i, t := range s.workload {
		latency := run.Jobs[i].Watched.Latencies(profiles[i].FirstVariantTime, planned.Jobs[i].Plan, len(t.Graph.Ops))
		if latency == nil {
			return fmt.Errorf("job %s: not every op was measured; --measured wants more --iterations", t.Name)
		}
		for op := range latency {
			latency[op] = on.Sharing.Uncontended(latency[op], stretch[i])
		}
		p.latency.measured[t.Graph.Digest()] = latency
		s.request.Jobs[i].Latency, s.request.Jobs[i].Slack = latency, nil
	}
	s.request.Jobs = p.describeDevice(s.device).Request(s.request.Jobs...).Jobs
	s.latency = "measured in the vanilla run"
	var err error
	s.planned, err = on.Plan(ctx, s.request)
	return err
}

// findModel loads the model that the flags ask for, or makes one, and says what plans are made with.
func (p *planFlags) findModel(d device.Device) (string, error) {
	f := &p.latency
	switch {
	case f.noCalibrate && (f.calibrate || f.file != ""):
		return "", errors.New("--no-calibrate excludes --calibrate and --predictor: choose one")
	case p.simulated() && (f.calibrate || f.file != ""):
		return "", fmt.Errorf("--device %s is simulated by the roofline: --predictor and --calibrate are for "+
			"--device cpu", p.device)
	case p.fake && (f.calibrate || f.file != ""):
		return "", errors.New("--fake has the times of the roofline: leave out --predictor and --calibrate")
	case p.simulated() && f.recorded != nil:
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
	f.model = m
	if f.ours {
		return fmt.Sprintf("predictor %s; jobs train already, so what others use of the machine is not known",
			path), nil
	}
	f.load = foreignLoad(d, p.fake)
	return fmt.Sprintf("predictor %s, others use %.0f %% of the machine", path, 100*f.load), nil
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

// modelName is a device as its model knows it: the library of its products and their threads change latencies.
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
