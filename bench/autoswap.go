package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models/passes"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/draft"
	"tensile/scheduler/planner"
	"tensile/scheduler/rivals/autoswap"
)

// swapNetwork is one of the networks of the SmartPool and AutoSwap paper, or what stands for it.
type swapNetwork struct {
	model string
	image int     // side of the images; 0: the network's own, 32
	paper string  // its name there; "": it is not there
	load  float64 // MB, that the paper gives; 0: none
	free  float64 // MB at no overhead, that the paper gives
	quick bool
}

// swapNetworks are those of the tables. The paper's ResNets are those of fb.resnet.torch, in its authors' framework;
// which form needs 4418 MB with ResNet50 is not confirmed. With images of 128 the residual stages of ours begin with
// 32 x 32 pixels, and it needs about as much.
var swapNetworks = []swapNetwork{
	{model: "vgg11-cifar", paper: "VGG11", quick: true},
	{model: "vgg13-cifar", paper: "VGG13", quick: true},
	{model: "vgg16-cifar", paper: "VGG16", load: 647, free: 447, quick: true},
	{model: "vgg19-cifar", paper: "VGG19"},
	{model: "resnet50", image: 128, paper: "ResNet50", load: 4418, free: 2906, quick: true},
	{model: "resnet50", image: 32},
	{model: "resnet101", image: 128, paper: "ResNet101"},
	{model: "resnet110-cifar"},
}

func (n *swapNetwork) name() string {
	if n.image == 0 {
		return n.model
	}
	return fmt.Sprintf("%s, images of %d", n.model, n.image)
}

// The paper's setting.
const (
	swapDevice = "gtx1080ti"
	swapBatch  = 100

	// VI-B3: "it takes 24 ms to ramp up to 95 % of the peak memory load", for VGG16; and 300 MB take 28.9 ms.
	swapRamp = 24 * time.Millisecond
	swapLink = cost.BytesPerSecond(300e6 / 0.0289)
)

// swapMachine is a device that AutoSwap is planned for.
type swapMachine struct {
	name   string
	facts  cost.Facts
	slower float64 // by which latencies of the roofline are multiplied
}

// autoSwap measures what the SmartPool and AutoSwap paper does: table II, the figures 9 to 11, and table I. Nothing
// runs: times are predicted. A quick call has fewer networks and limits.
func autoSwap(ctx context.Context, quick bool) ([]Table, error) {
	facts, err := cost.Device(swapDevice)
	if err != nil {
		return nil, err
	}
	s := &swapping{ctx: ctx, quick: quick}
	sheet := swapMachine{swapDevice, facts, 1}
	theirs := swapMachine{"paper's times", facts, 1}
	theirs.facts.Out.Rate, theirs.facts.In.Rate = swapLink, swapLink
	if theirs.slower, err = s.rampFactor(sheet); err != nil {
		return nil, err
	}
	s.machines = []swapMachine{sheet, theirs}
	var tables []Table
	for _, measure := range []func() (Table, error){s.free, s.scores, s.footprints, s.overheads, s.pools} {
		t, err := measure()
		if err != nil {
			return nil, err
		}
		t.Notes = append(t.Notes, fmt.Sprintf("%s is by its data sheet, with a link of 12 GB/s each way; paper's "+
			"times is "+
			"the same, with ops %.2f times as long and %.1f GB/s, so that the load of vgg16-cifar takes the 24 ms "+
			"up to "+
			"95 %% of its peak, and 300 MB the 28.9 ms, that the paper's section VI-B3 "+
			"gives", swapDevice, theirs.slower,
			float64(swapLink)/1e9))
		tables = append(tables, t)
	}
	return tables, nil
}

// swapping measures for the tables of AutoSwap.
type swapping struct {
	ctx      context.Context
	quick    bool
	machines []swapMachine
}

// networks are those that are measured.
func (s *swapping) networks() (all []swapNetwork) {
	for _, n := range swapNetworks {
		if n.quick || !s.quick {
			all = append(all, n)
		}
	}
	return all
}

// request asks for a plan of a network.
func (s *swapping) request(n *swapNetwork, on swapMachine, batch int, rewrites string) (scheduler.Request, error) {
	names, err := passes.Parse(rewrites)
	if err != nil {
		return scheduler.Request{}, err
	}
	momentum, err := autodiff.ParseOptimizer("momentum", nil)
	if err != nil {
		return scheduler.Request{}, err
	}
	w, err := task.Load([]string{n.model}, task.Settings{Batch: batch, Image: n.image, Optimizer: momentum,
		Passes: names})
	if err != nil {
		return scheduler.Request{}, err
	}
	d := sim.New(on.facts, sim.Options{})
	defer d.Close()
	r, err := planner.Describe(d, planner.Roofline(on.facts)).FirstRequest(w)
	if err != nil {
		return r, err
	}
	latency := r.Jobs[0].Latency
	for op := range latency {
		latency[op] = time.Duration(float64(latency[op]) * on.slower)
	}
	r.Policy = "autoswap"
	return r, nil
}

// swapLoad is an iteration of a network as AutoSwap sees it, and how to count work so that the context can end it.
type swapLoad struct {
	*autoswap.Iteration
	count func(steps int)
	peak  graph.Bytes
}

// withLoad hands an iteration to a function.
func (s *swapping) withLoad(r scheduler.Request, do func(*swapLoad)) error {
	_, err := draft.Open(r, s.watch(), func(session *draft.Session) (scheduler.Result, error) {
		d := session.Draft(0, draft.FirstSteps(session.GraphOrder(0)), draft.Style{})
		it, _ := autoswap.OfDraft(d)
		_, peak := it.Peak()
		do(&swapLoad{it, session.Count, peak})
		return scheduler.Result{}, nil
	})
	if errors.Is(err, scheduler.ErrStopped) {
		return context.Cause(s.ctx)
	}
	return err
}

func (s *swapping) watch() scheduler.Watch {
	return scheduler.Watch{Stop: func(int64) bool { return s.ctx.Err() != nil }}
}

// rampFactor is by what ops must be longer than on a device for the paper's time up to 95 % of the peak.
func (s *swapping) rampFactor(on swapMachine) (factor float64, err error) {
	r, err := s.request(&swapNetwork{model: "vgg16-cifar"}, on, swapBatch, "all")
	if err != nil {
		return 0, err
	}
	err = s.withLoad(r, func(l *swapLoad) {
		var ramp time.Duration
		for slot, load := range l.Load {
			if load >= l.peak*95/100 {
				break
			}
			ramp += l.Took[slot]
		}
		factor = float64(swapRamp) / float64(ramp)
	})
	return factor, err
}

// overhead is what a choice takes longer, in percent.
func (l *swapLoad) overhead(c *autoswap.Choice) float64 {
	return 100 * float64(c.Time-l.Length()) / float64(l.Length())
}

// reduction is by how much the load is less, in percent.
func reduction(before, after graph.Bytes) float64 {
	return 100 * float64(before-after) / float64(before)
}

// inPaper is what the paper gives in MB, nil if it gives nothing.
func inPaper(mb float64) any {
	if mb == 0 {
		return nil
	}
	return mb
}

func inMB(b graph.Bytes) float64 { return float64(b) / 1e6 }
