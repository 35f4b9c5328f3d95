package main

import (
	"errors"
	"fmt"
	"os"
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
	"tensile/scheduler"
	"tensile/scheduler/policies"
	tensilepolicy "tensile/scheduler/policies/tensile"
	"tensile/scheduler/rivals/capuchin"
	"tensile/scheduler/rivals/paper"
	"tensile/scheduler/rivals/superneurons"
	"tensile/wire"

	_ "tensile/scheduler/rivals" // their policies and methods of a lease
)

// workloadFlags describe the networks.
type workloadFlags struct {
	image, channels, classes    int
	sequence, vocabulary, batch int
	optimizer, loss, order      string
	passes                      string
	rate                        float64
	replicas                    int // The value of --replicas, where that exists; 0 means 1.
	seed                        uint64
	data                        string
	weights                     string

	given func(flag string) bool // whether a flag stands on the command line; nil: none does
}

func (f *workloadFlags) register(c *cobra.Command) {
	f.given = c.Flags().Changed
	c.Flags().IntVar(&f.image, "image", 0,
		"image height and width in pixels (default: 28 for mlp and lenet, 224 for others)")
	c.Flags().IntVar(&f.channels, "channels", 0,
		"image channels (default: 1 for mlp and lenet, 3 for others)")
	c.Flags().IntVar(&f.classes, "classes", 0,
		"number of classes (default: 1000 for images of 224 pixels or more, else 10; always 10 for mlp, lenet and "+
			"-cifar)")
	c.Flags().IntVar(&f.sequence, "sequence", 0,
		"sequence length (default: bert 128, gpt2 1024, gnmt 50, rhn 35, tacotron2 100)")
	c.Flags().IntVar(&f.vocabulary, "vocabulary", 0, "number of tokens in the vocabulary (default: as published)")
	c.Flags().IntVar(&f.batch, "batch", 0, "batch size: images or sequences per iteration (default 16)")
	c.Flags().StringVar(&f.loss, "loss", "",
		"loss for .onnx files: xent or mse (default: the loss in the file, else softmax cross-entropy of its first "+
			"output)")
	complete(c, "loss", "xent", "mse")
	c.Flags().StringVar(&f.order, "order", "",
		"operator order for .onnx files: file, depth (depth first), or memory (whichever order needs the least "+
			"memory) (default file)")
	complete(c, "order", onnx.Orders()...)
	c.Flags().StringVar(&f.optimizer, "optimizer", "adam", "optimizer: sgd, momentum or adam")
	complete(c, "optimizer", "sgd", "momentum", "adam")
	c.Flags().Float64Var(&f.rate, "lr", 0,
		"learning rate; 0 leaves all parameters unchanged (default: depends on the optimizer)")
	registerPasses(c, &f.passes)
	c.Flags().Uint64Var(&f.seed, "seed", 1, "random seed for weights, data order and dropout")
}

// registerReplicas registers the flag for data-parallel jobs.
func (f *workloadFlags) registerReplicas(c *cobra.Command) {
	c.Flags().IntVar(&f.replicas, "replicas", 0,
		"number of data-parallel replicas of each network; gradients are reduced during the backward pass, and each "+
			"replica has a simulated device of its own (default 1)")
}

// dataHelp says what --data names.
const dataHelp = "training data: a .npz or .safetensors file with an array per network input, or a folder of " +
	"CIFAR-10 binary batches, MNIST IDX files, or one subfolder of images per class"

// registerPasses registers the flag that chooses passes.
func registerPasses(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "passes", passes.None,
		"graph rewrites that save memory and keep results bit-identical: "+passes.None+", "+passes.All+
			", or a comma-separated list of "+strings.Join(passes.Names(), ", "))
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
	settings := task.Settings{Image: f.image, Channels: f.channels, Classes: f.classes, Sequence: f.sequence,
		Vocabulary: f.vocabulary, Batch: f.batch, Optimizer: optimizer, Passes: rewrites, Replicas: f.replicas,
		Seed: f.seed, Data: f.data, Loss: f.loss, Order: f.order}
	if err := settings.Heeded(names); err != nil {
		return nil, err
	}
	return task.Load(names, settings)
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
	device   string
	fake     bool
	link     string
	threads  int  // 0: every core, until a device is opened
	cores    bool // nobody has chosen a number of threads
	policy   string
	budget   string
	overhead string
	host     hostMemoryFlag
	json     bool
	wide     bool
	priority string
	swapRate string
	noReplan bool
	noMoves  bool
	options  scheduler.Options
	tensile  tensilepolicy.Options // Options of policy tensile that have flags.
	latency  latencyFlags
	sharing  sharingValue // The value of --memory-sharing.
	wrong    sim.Options  // Noise and misprediction of a simulated device.

	// onHost returns what training a job takes of host memory beside its slots. nil: nothing is trained, and
	// --host-memory is not enforced.
	onHost func(*graph.Graph) graph.Bytes

	context graph.Bytes // Device memory that a process takes by opening the device.
	shared  bool        // One process trains all jobs.

	lowest  bool // Without --budget, plan for the least memory that the policy can reach.
	apart   bool // In virtual time, each job has a device of its own.
	explain bool // Also ask for the reasons of storages that stay.

	whole bool // The jobs are replicas: each has an arena of its own, whatever --memory-sharing says.
}

func (f *planFlags) register(c *cobra.Command) {
	f.registerDevice(c)
	f.registerPolicy(c)
	c.Flags().StringVar(&f.budget, "budget", "",
		"device memory for all jobs: a size such as 512MiB, or a percentage of what they need without a plan, as "+
			"rewritten by --passes (default: no limit)")
	c.Flags().StringVar(&f.overhead, "max-overhead", "",
		"find the smallest budget at which no job is predicted to slow down by more than this: a percentage such as "+
			"5% or a factor such as 1.05 (default: minimize time within --budget)")
	c.Flags().StringVar(&f.priority, "priority", "",
		"job weights: whole numbers such as 4,1, one per MODEL or one for all (default: all equal)")
	c.Flags().StringVar(&f.swapRate, "max-swap-rate", "",
		"maximum share of a job's swappable storages to swap: numbers such as 0.1,1, one per MODEL or one for all; 0 "+
			"means no limit (default 0)")
	c.Flags().BoolVar(&f.json, "json", false, "print a single JSON document; on failure {\"error\": TEXT}")
	c.Flags().BoolVar(&f.wide, "wide", false, "print all columns")
	f.latency.register(c)
}

// registerDevice registers the flags of a device.
func (f *planFlags) registerDevice(c *cobra.Command) {
	c.Flags().StringVar(&f.device, "device", "cpu",
		"device: cpu, cuda or cuda:N (NVIDIA GPU), or sim:NAME to simulate a known device in virtual time ("+
			simNames()+")")
	complete(c, "device", append([]string{"cpu", "cuda"}, simDevices()...)...)
	c.Flags().BoolVar(&f.fake, "fake", false,
		"with --device cuda: emulate a GPU, slowly and in virtual time")
	c.Flags().MarkHidden("fake")
	c.Flags().StringVar(&f.link, "link", "none", "copy rate limit per direction: "+linkForms())
	complete(c, "link", append([]string{"none"}, cost.Names()...)...)
	c.Flags().IntVar(&f.threads, "threads", 0,
		"threads of the cpu device for all jobs of a process together; results are the same to the bit with any "+
			"number (default: all cores, divided among the executors of a run)")
	c.Flags().Bool("no-openblas", false, "has no effect any more: all products are computed by Tensile itself")
	c.Flags().MarkHidden("no-openblas")
}

// registerPolicy registers the flags of how it is planned for.
func (f *planFlags) registerPolicy(c *cobra.Command) {
	c.Flags().StringVar(&f.policy, "policy", "tensile", "policy: "+strings.Join(policies.Names(), ", "))
	c.Flags().Int64Var(&f.options.Work, "planning-work", 0,
		"planning effort limit in steps of a few nanoseconds; when it is reached, the best proven plan so far is "+
			"used (default 3000000000)")
	complete(c, "policy", policies.Names()...)
	c.Flags().BoolVar(&f.tensile.KeepOrder, "no-reorder", false, "keep parameter updates at the end of the iteration")
	c.Flags().BoolVar(&f.tensile.NoSwap, "no-free-swaps", false, "disable swaps that fit into free link time")
	c.Flags().BoolVar(&f.tensile.NoRecompute, "no-recompute", false, "disable recomputation")
	c.Flags().BoolVar(&f.tensile.NoChains, "no-chains", false,
		"disable recomputation of tensors whose inputs would be recomputed too")
	c.Flags().BoolVar(&f.tensile.NoStall, "no-stalls", false, "disable swaps that stall compute")
	c.Flags().BoolVar(&f.tensile.LateOut, "late-out", false,
		"swap out after the last access before the gap instead of right after the content is produced")
	c.Flags().BoolVar(&f.tensile.OneChannel, "one-channel", false,
		"plan both copy directions on one channel, as in the TENSILE paper")
	c.Flags().BoolVar(&f.tensile.NoRelax, "no-relax", false, "do not extend swaps beyond the peak that they relieve")
}

// registerSharing registers the flag of how jobs share memory, with words for what is done without it.
func (f *planFlags) registerSharing(c *cobra.Command, without string) {
	f.sharing.open = true
	c.Flags().Var(&f.sharing, "memory-sharing",
		"how jobs share memory: none (each has its own arena), gates (one job at a time reaches its peak, the others "+
			"keep what they hold between iterations), zico (gates, iterations start as in the paper), "+
			"waterwave (gates, groups paired as in the paper), or slices (time slicing: one job at a time has its "+
			"arena) (default: "+without+")")
	complete(c, "memory-sharing", "gates", "zico", "waterwave", "slices", "none")
}

// gatesInRun is what run and plan do without the flag.
const gatesInRun = "for several jobs on a device with paged arenas the faster of gates and none, by prediction; else " +
	"none"

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
		"do not replan when latencies change or a job leaves")
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

// needModels is the error for a command line that names no model.
func needModels(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: name a MODEL: tensile models lists them", c.CommandPath())
	}
	return nil
}

// modelHelp explains MODEL in the help texts.
const modelHelp = `MODEL is a built-in network (see tensile models), one of any size such as resnet:3,4,6,3 or
gpt:2,64,4, the path of a .json graph, which includes its sizes and optimizer, or the path of an .onnx
file, to which --batch, --sequence, --loss and --optimizer apply. MODEL:N means N copies.`

// completeModels completes MODEL in a shell: with the networks' names, else with files.
func completeModels(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return models.Names(), cobra.ShellCompDirectiveDefault
}

// weightsHelp explains --weights.
const weightsHelp = "initialize tensors from this FILE (safetensors as written by --save, or a torch state_dict " +
	".pt); tensors not in it are initialized at random"
