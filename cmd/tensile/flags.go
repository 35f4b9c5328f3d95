package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tensile/device"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/models/onnx"
	"tensile/models/passes"
	"tensile/models/task"
	"tensile/models/workload"
	"tensile/scheduler"
	"tensile/scheduler/policies"
	"tensile/scheduler/policies/capuchin"
	"tensile/scheduler/policies/paper"
	"tensile/scheduler/policies/superneurons"
	tensilepolicy "tensile/scheduler/policies/tensile"
	"tensile/wire"
)

// workloadFlags describe the networks.
type workloadFlags struct {
	image, channels, classes    int
	sequence, vocabulary, batch int
	optimizer, loss, order      string
	passes                      string
	rate                        float64
	replicas                    int // where there is a flag for them; 0: 1
	seed                        uint64
	data                        string
	weights                     string

	given func(flag string) bool // whether a flag stands on the command line; nil: none does
}

func (f *workloadFlags) register(c *cobra.Command) {
	f.given = c.Flags().Changed
	c.Flags().IntVar(&f.image, "image", 0,
		"height and width of the images in pixels (default: 28 for mlp and lenet, 224 for the others)")
	c.Flags().IntVar(&f.channels, "channels", 0,
		"channels of the images (default: 1 for mlp and lenet, 3 for the others)")
	c.Flags().IntVar(&f.classes, "classes", 0,
		"classes (default: 10; from 224 pixels on 1000, but for mlp, lenet and the -cifar forms)")
	c.Flags().IntVar(&f.sequence, "sequence", 0,
		"steps of the sequences that bert, gpt2, gnmt, rhn and tacotron2 read (default: 128, 1024, 50, 35, 100)")
	c.Flags().IntVar(&f.vocabulary, "vocabulary", 0, "tokens that sequences are made of (default: as published)")
	c.Flags().IntVar(&f.batch, "batch", 0, "images or sequences per iteration (default 16)")
	c.Flags().StringVar(&f.loss, "loss", "",
		"of .onnx files: xent or mse (default: the file's own, else the softmax cross-entropy of its first output)")
	complete(c, "loss", "xent", "mse")
	c.Flags().StringVar(&f.order, "order", "",
		"of .onnx files: the order of their operators: file, depth (a branch to its end, then the next) or memory "+
			"(of these and a greedy one, the one that needs least memory) (default file)")
	complete(c, "order", onnx.Orders()...)
	c.Flags().StringVar(&f.optimizer, "optimizer", "adam", "sgd, momentum or adam")
	complete(c, "optimizer", "sgd", "momentum", "adam")
	c.Flags().Float64Var(&f.rate, "lr", 0, "learning rate; 0: no parameter changes (default: the optimizer's)")
	registerPasses(c, &f.passes)
	c.Flags().Uint64Var(&f.seed, "seed", 1, "seed of weights, data order and dropout")
}

// registerReplicas registers the flag for data-parallel jobs.
func (f *workloadFlags) registerReplicas(c *cobra.Command) {
	c.Flags().IntVar(&f.replicas, "replicas", 0,
		"train each network as so many replicas, each on batches of its own, which reduce their gradients while the "+
			"backward pass goes on; a simulated device is one of so many (default 1)")
}

// dataHelp says what --data names.
const dataHelp = "a .npz or .safetensors file with an array for each input of the network, or a folder with CIFAR-10 " +
	"binary batches, MNIST IDX files or a folder of PNG and JPEG images for each class"

// registerPasses registers the flag that chooses passes.
func registerPasses(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "passes", passes.None,
		"rewrite the networks so that they need less memory and train to the same bits: "+passes.None+", "+passes.All+
			", or some of "+strings.Join(passes.Names(), ", ")+" with commas in between")
	complete(c, "passes", append([]string{passes.None, passes.All}, passes.Names()...)...)
}

// parsePasses reads what that flag says.
func parsePasses(text string) ([]string, error) {
	names, err := passes.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--passes: %w", err)
	}
	return names, nil
}

func (f *workloadFlags) load(names []string) ([]task.Task, error) {
	for _, size := range []struct {
		flag        string
		v, min, max int // max 0: the network's own
	}{{"image", f.image, 1, models.MaxImage}, {"channels", f.channels, 1, models.MaxChannels},
		{"classes", f.classes, 2, models.MaxClasses},
		{"sequence", f.sequence, 2, 0}, {"vocabulary", f.vocabulary, 2, models.MaxClasses},
		{"batch", f.batch, 1, models.MaxBatch}} {
		if size.v < 0 || size.v == 0 && f.given != nil && f.given(size.flag) {
			limits := fmt.Sprintf("%d to %d", size.min, size.max)
			if size.max == 0 {
				limits = fmt.Sprintf("%d or more", size.min)
			}
			return nil, fmt.Errorf("--%s %d: give %s, or leave it out", size.flag, size.v, limits)
		}
	}
	var rate *float64
	if f.given != nil && f.given("lr") {
		rate = &f.rate
	}
	optimizer, err := autodiff.ParseOptimizer(f.optimizer, rate)
	if err != nil {
		return nil, err
	}
	rewrites, err := parsePasses(f.passes)
	if err != nil {
		return nil, err
	}
	if f.replicas < 0 || f.replicas == 0 && f.given != nil && f.given("replicas") || f.replicas > graph.MaxReplicas {
		return nil, fmt.Errorf("--replicas %d: give 1 to %d, or leave it out", f.replicas, graph.MaxReplicas)
	}
	settings := workload.Settings{Image: f.image, Channels: f.channels, Classes: f.classes, Sequence: f.sequence,
		Vocabulary: f.vocabulary, Batch: f.batch, Optimizer: optimizer, Passes: rewrites, Replicas: f.replicas,
		Seed: f.seed, Data: f.data, Loss: f.loss, Order: f.order}
	if err := settings.Heeded(names); err != nil {
		return nil, err
	}
	return workload.Load(names, settings)
}

// tellNotes prints what a person should know of the graphs of tasks, once of each, where it is in nobody's way.
func tellNotes(w []task.Task) {
	told := make(map[string]bool)
	for _, t := range w {
		for _, line := range t.Notes {
			if !told[line] {
				told[line] = true
				fmt.Fprintln(os.Stderr, "tensile:", line)
			}
		}
	}
}

// planFlags describe the device and what is planned for it.
type planFlags struct {
	device     string
	fake       bool
	link       string
	threads    int
	noOpenBLAS bool
	policy     string
	budget     string
	overhead   string
	host       hostMemoryFlag
	json       bool
	wide       bool
	priority   string
	swapRate   string
	noReplan   bool
	noMoves    bool
	options    scheduler.Options
	tensile    tensilepolicy.Options // what of it has flags
	latency    latencyFlags
	sharing    sharingValue // of memory
	wrong      sim.Options  // of a simulated device: noise, and latencies that are mispredicted

	// what a job that is trained has on the host beside its slots; nil: none is trained, and --host-memory limits
	// nothing
	onHost func(*graph.Graph) graph.Bytes

	context graph.Bytes // that a process takes of the memory of the device, once that is open
	shared  bool        // one process trains all jobs

	lowest  bool // without a budget plan as low as the policy goes
	apart   bool // where time is virtual: each job has a device of its own
	explain bool // ask why what stays does

	whole bool // the jobs are replicas: each has its arena for itself, however jobs share memory
}

func (f *planFlags) register(c *cobra.Command) {
	f.registerDevice(c)
	f.registerPolicy(c)
	c.Flags().StringVar(&f.budget, "budget", "",
		"device memory for all jobs: a size such as 512MiB, or a percentage of what they need with every tensor "+
			"freed after its last use, as rewritten by --passes (default: no limit)")
	c.Flags().StringVar(&f.overhead, "max-overhead", "",
		"plan for the least memory with which no job takes so much longer than without a plan, by prediction: a "+
			"percentage such as 5%, or a factor such as 1.05 (default: for the least time within --budget)")
	c.Flags().StringVar(&f.priority, "priority", "",
		"what the jobs' time is worth: whole numbers such as 4,1, one per MODEL or one for all (default: all the same)")
	c.Flags().StringVar(&f.swapRate, "max-swap-rate", "",
		"largest share of a job's swappable storages that may be swapped: numbers such as 0.1,1, one per MODEL or "+
			"one for all; 0: no limit (default: 0)")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON document and nothing else; on an error {\"error\": TEXT}")
	c.Flags().BoolVar(&f.wide, "wide", false, "print all columns of the table")
	f.latency.register(c)
}

// registerDevice registers the flags of a device.
func (f *planFlags) registerDevice(c *cobra.Command) {
	c.Flags().StringVar(&f.device, "device", "cpu",
		"cpu, cuda or cuda:N for an NVIDIA GPU, or sim:NAME for virtual time on a known device ("+simNames()+")")
	complete(c, "device", append([]string{"cpu", "cuda"}, simDevices()...)...)
	c.Flags().BoolVar(&f.fake, "fake", false,
		"on cuda: a driver without a GPU, which executes the kernels slowly, in virtual time")
	c.Flags().MarkHidden("fake")
	c.Flags().StringVar(&f.link, "link", "none", "limit of each copy direction: "+linkForms())
	complete(c, "link", append([]string{"none"}, cost.Names()...)...)
	c.Flags().IntVar(&f.threads, "threads", 1,
		"threads of each matrix product; results are the same to the bit for the same number")
	c.Flags().BoolVar(&f.noOpenBLAS, "no-openblas", false, "compute with gonum even if OpenBLAS is installed")
}

// registerPolicy registers the flags of how it is planned for.
func (f *planFlags) registerPolicy(c *cobra.Command) {
	c.Flags().StringVar(&f.policy, "policy", "tensile", strings.Join(policies.Names(), ", "))
	c.Flags().Int64Var(&f.options.Work, "planning-work", 0,
		"steps of planning, of some nanoseconds each, after which the best proven plan so far is taken (default: "+
			"3000000000)")
	complete(c, "policy", policies.Names()...)
	c.Flags().BoolVar(&f.tensile.KeepOrder, "no-reorder", false, "leave updates at the end of the iteration")
	c.Flags().BoolVar(&f.tensile.NoSwap, "no-free-swaps", false, "plan no swaps that fit into free link time")
	c.Flags().BoolVar(&f.tensile.NoRecompute, "no-recompute", false, "recompute nothing")
	c.Flags().BoolVar(&f.tensile.NoChains, "no-chains", false,
		"recompute nothing whose inputs have to be recomputed for it")
	c.Flags().BoolVar(&f.tensile.NoStall, "no-stalls", false, "plan no swaps that stall")
	c.Flags().BoolVar(&f.tensile.LateOut, "late-out", false,
		"copy out after the access before the pause, not as soon as the content is made")
	c.Flags().BoolVar(&f.tensile.OneChannel, "one-channel", false,
		"plan both copy directions on one channel, as TENSILE does")
	c.Flags().BoolVar(&f.tensile.NoRelax, "no-relax", false, "give swaps no more time than the peak left them")
	ablations(c, "no-reorder", "no-free-swaps", "no-recompute", "no-chains", "no-stalls", "late-out", "one-channel",
		"no-relax")
}

// registerSharing registers the flag of how jobs share memory, with words for what is done without it.
func (f *planFlags) registerSharing(c *cobra.Command, without string) {
	f.sharing.open = true
	c.Flags().Var(&f.sharing, "memory-sharing",
		"how jobs share memory: none, each has an arena of its own; gates, one at a time has its peak, and each of "+
			"the others what it holds between two iterations; zico, as gates, with iterations that begin when the "+
			"scheduler of Zico would begin them; waterwave, as gates, with groups in the pairs of Waterwave; or slices, "+
			"one at a time has its arena, and the others rest (default: "+without+")")
	complete(c, "memory-sharing", "gates", "zico", "waterwave", "slices", "none")
}

// gatesInRun is what run and plan do without the flag.
const gatesInRun = "gates or none, whichever is expected to be faster, for several jobs on a device that can back a " +
	"part of an arena; else none"

// sharingValue is a way to share memory.
type sharingValue struct {
	wire.Sharing
	open bool // no flag says it
}

func (*sharingValue) Type() string { return "string" }

func (v *sharingValue) String() string {
	if v.open {
		return "" // help has the default in words
	}
	return v.Sharing.String()
}

func (v *sharingValue) Set(text string) error {
	if text == wire.NoSharing.String() {
		text = ""
	}
	s := wire.ParseSharing(text)
	switch s {
	case wire.NoSharing, wire.Gates, wire.Slices, wire.Zico, wire.Waterwave:
	default:
		return errors.New("give gates, zico, waterwave, slices or none")
	}
	v.Sharing, v.open = s, false
	return nil
}

// way is how the jobs of this command share memory among themselves.
func (f *planFlags) way() wire.Sharing {
	if f.whole {
		return wire.NoSharing
	}
	return f.sharing.Sharing
}

// mayGate reports whether jobs of a device can share memory by gates.
func (f *planFlags) mayGate(d device.Device) bool {
	_, pages := d.(device.Pager)
	return pages && !(f.apart && f.simulated())
}

// checkSharing returns an error if jobs of a device cannot share memory as they are to.
func (f *planFlags) checkSharing(d device.Device) error {
	switch _, pages := d.(device.Pager); {
	case f.sharing.Sharing == wire.NoSharing:
	case !pages:
		return fmt.Errorf("--memory-sharing %s: %s gives memory by whole arenas alone: leave it out", f.sharing.Sharing,
			d.Name())
	case f.apart && f.simulated():
		return fmt.Errorf("--memory-sharing %s: with --isolate each job simulates a device of its own: leave one of "+
			"the two out", f.sharing.Sharing)
	}
	return nil
}

// registerReplan registers the flag of what is planned again while jobs train.
func (f *planFlags) registerReplan(c *cobra.Command) {
	c.Flags().BoolVar(&f.noReplan, "no-replan", false,
		"plan again neither when latencies have changed nor when a job has gone")
}

// planning returns the options of the policy that was chosen.
func (f *planFlags) planning() scheduler.Options {
	o := f.options
	switch f.policy {
	case "tensile":
		o.Own = f.tensile
	case "tensile-paper", "tensile-authors":
		o.Own = paper.Options{NoSwap: f.tensile.NoSwap, NoRecompute: f.tensile.NoRecompute}
	case "capuchin":
		o.Own = capuchin.Options{NoRecompute: f.tensile.NoRecompute}
	case "superneurons":
		o.Own = superneurons.Options{NoRecompute: f.tensile.NoRecompute}
	}
	return o
}

// checkParts returns an error if a flag switches off a part that the policy does not have.
func (f *planFlags) checkParts() error {
	o := f.tensile
	switch f.policy { // what planning passes on
	case "tensile":
		return nil
	case "tensile-paper", "tensile-authors":
		o.NoSwap, o.NoRecompute = false, false
	case "capuchin", "superneurons":
		o.NoRecompute = false
	}
	for _, part := range []struct {
		flag string
		off  bool
	}{
		{"no-reorder", o.KeepOrder}, {"no-free-swaps", o.NoSwap}, {"no-recompute", o.NoRecompute},
		{"no-chains", o.NoChains}, {"no-stalls", o.NoStall}, {"late-out", o.LateOut}, {"one-channel", o.OneChannel},
		{"no-relax", o.NoRelax},
	} {
		if part.off {
			return fmt.Errorf("--%s: policy %s cannot do without or has no such part: leave the flag out, or plan by "+
				"policy tensile", part.flag, f.policy)
		}
	}
	return nil
}

// simulated reports whether the device has virtual time.
func (f *planFlags) simulated() bool { return strings.HasPrefix(f.device, "sim:") }

// perhapsPercent asks whether a percentage was meant where a budget of a few bytes is too small.
func perhapsPercent(budget string, err error) error {
	over, ok := errors.AsType[*scheduler.OverBudgetError](err)
	if n, number := strconv.ParseFloat(budget, 64); !ok || number != nil || n > 1000 {
		return err
	}
	return fmt.Errorf("--budget %s is %[1]s bytes: is %[1]s%% meant? The least that works is %s: %s", budget, over.Need,
		over.Why)
}

// needModels is the error for a command line that names no model.
func needModels(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: name a MODEL: tensile models lists them", c.CommandPath())
	}
	return nil
}

// modelHelp explains MODEL in the help texts.
const modelHelp = `MODEL: a network (tensile models lists them), one of any size such as resnet:3,4,6,3 or
gpt:2,64,4, or the path of a .json graph, whose sizes and optimizer are its own, or of an .onnx file, which
--batch, --sequence, --loss and --optimizer apply to; MODEL:N is N copies.`

// completeModels completes MODEL in a shell: with the networks' names, else with files.
func completeModels(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return models.Names(), cobra.ShellCompDirectiveDefault
}

// weightsHelp explains --weights.
const weightsHelp = "start with the tensors of this FILE, safetensors as --save writes it or a state_dict of torch " +
	"(.pt); others are made up"
