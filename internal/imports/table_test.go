package imports

// module is the name of the module in import paths.
const module = "tensile"

// house are the folders, floor by floor from the ground: a package may import those of the folders on the floors below.
var house = [][]string{
	{"graph", "python"},
	{"plan", "data"},
	{"device", "predictor", "peak"},
	{"models", "swapexec"},
	{"scheduler"},
	{"wire"},
	{"executor"},
	{"controller"},
	{"observe"},          // what people see of all that
	{"scheduler/rivals"}, // methods of others, to compare with, which the product does not know
	{"bench"},            // measures the product, which does not know it
	{"cmd"},
}

// rooms are the packages of each folder in rows from the ground: a package may import those of the rows below its own.
// A trailing /... stands for all packages below a path; the longest match counts.
var rooms = map[string][][]string{
	"graph": {{"graph/invariants"}, {"graph"}, {"graph/autodiff", "graph/cost", "graph/text"}},
	"plan":  {{"plan/pool"}, {"plan", "plan/pool/trace"}, {"plan/program"}, {"plan/proof"}, {"plan/compile"}},
	"data":  {{"data/rooted"}, {"data/weights"}, {"data", "data/checkpoint"}},
	"device": {
		{"device", "device/lease", "device/lifelock", "device/nvml", "device/ptx", "device/cpu/crew",
			"device/cpu/vector",
			"device/cuda/cudaabi", "device/cuda/kernels"},
		{"device/lease/process", "device/cpu/gemm", "device/cuda",
			"device/sim"},
		{"device/cpu/kernel"},
		{"device/cpu", "device/cuda/driver", "device/cuda/fakecuda"},
		{"device/cuda/fakecuda/bridge"},
		{"device/cuda/fakecuda/library"},
	},
	"python":    {{"python"}}, // files alone
	"predictor": {{"predictor/correct"}, {"predictor"}},
	"peak":      {{"peak"}},
	"models":    {{"models", "models/external", "models/onnx", "models/passes"}, {"models/task"}},
	"swapexec":  {{"swapexec"}},
	"scheduler": {{"scheduler"}, {"scheduler/draft", "scheduler/explain"}, {"scheduler/policies/..."},
		{"scheduler/policies"}, {"scheduler/planner"}},
	"scheduler/rivals": {{"scheduler/rivals/bayes", "scheduler/rivals/each", "scheduler/rivals/layer",
		"scheduler/rivals/replay"}, {"scheduler/rivals/..."},
		{"scheduler/rivals"}},
	"wire": {{"wire", "wire/clock", "wire/limit", "wire/recording"}, {"wire/bus", "wire/journal", "wire/leader"},
		{"wire/backup"}},
	"executor": {{"executor", "executor/reduce"}, {"executor/sidecar", "executor/timeline"}, {"executor/agent"}},
	"controller": {{"controller/memory", "controller/learn", "controller/queue", "controller/fleet",
		"controller/recovery", "controller/gang"},
		{"controller/plans"}, {"controller/place"}, {"controller"},
		{"controller/local", "controller/simulate"}},
	"observe": {{"observe/metrics", "observe/report", "observe/web"}, {"observe/live", "observe/top"},
		{"observe/page"}},
	"bench": {{"bench", "bench/calibrate", "bench/onnxcases"}},
	"cmd":   {{"cmd/tensile"}},
}

// strangers are packages that must not know each other although their rows would allow it.
var strangers = map[string][]string{
	"plan/pool":              {"graph", "graph/invariants"}, // it imports nothing of ours
	"plan/pool/trace":        {"graph", "graph/invariants"}, // nor that, but pool
	"scheduler":              {"predictor"},                 // latencies are data
	"scheduler/draft":        {"predictor"},
	"scheduler/policies":     {"predictor"},
	"scheduler/policies/...": {"predictor"},
	"scheduler/rivals/...":   {"predictor"},
	"controller":             {"executor"}, // they talk over the bus
	"executor":               {"controller"},
}

// only are all packages of ours that a package may import, where that is less than its row allows.
var only = map[string][]string{
	"plan/proof": {"graph", "plan", "plan/program"}, // it trusts nothing that makes plans and programs
}

// helpers are packages for tests: only tests and other helpers import them, and they import what they like.
var helpers = []string{"models/graphtest", "scheduler/jobtest", "plan/randtest", "plan/plantest", "device/devicetest",
	"internal/imports",
	"internal/simtest", "wire/bustest", "internal/golden", "models/nettest", "internal/needs",
	"internal/torchtest", "data/npztest",
	"internal/testrun", "internal/mutants", "internal/long", "internal/reap", "internal/launches",
	"internal/words", "internal/walk", "internal/vectors"}

// foreign says which packages each foreign library enters through, the library given as a prefix of import paths.
var foreign = map[string][]string{
	"github.com/spf13/cobra":  {"cmd/tensile"},
	"github.com/spf13/pflag":  {"cmd/tensile"},             // cobra's flags
	"gonum.org/v1/gonum/blas": {"predictor"},               // the forward pass
	"gonum.org/v1/plot":       {"bench", "observe/report"}, // drawings
	"github.com/nats-io":      {"wire/bus"},
	"gonum.org/v1/gonum/mat":  {"scheduler/rivals/bayes"},
	"gorgonia.org":            {"predictor"},
	"gorgonia.org/cu":         {"device/cuda/driver"},
	"C": {"device/cuda/driver", "device/cuda/fakecuda/bridge",
		"device/cuda/fakecuda/library"},
	"go4.org/unsafe/assume-no-moving-gc": {"predictor"}, // gorgonia does not start without it
	"github.com/NVIDIA/go-nvml":          {"device/nvml"},
	"github.com/prometheus":              {"observe/metrics"},
	"github.com/google/renameio/v2":      {"wire/bus"},                             // files that are replaced whole
	"golang.org/x/sys/cpu":               {"device/cpu/vector", "device/cpu/gemm"}, // what the processor has
	"golang.org/x/term":                  {"cmd/tensile"},                          // what a terminal is
	"charm.land/bubbletea/v2":            {"observe/top"},                          // terminals that show what is live
	"github.com/charmbracelet/x/ansi":    {"observe/top"},                          // how wide texts are there
	"golang.org/x/image":                 {"data"},                                 // scales images
	"google.golang.org/protobuf":         {"models/onnx"},                          // the wire format of its files
}

// foreignInTests are the libraries that only tests use, and the package whose tests do; "": every.
var foreignInTests = map[string]string{
	"github.com/google/go-cmp":                   "",
	"github.com/cockroachdb/datadriven":          "",
	"github.com/rogpeppe/go-internal/testscript": "cmd/tensile",
	"github.com/goccy/go-yaml":                   "cmd/tensile",      // reads scripts/deploy/kubernetes
	"github.com/mmcloughlin/avo":                 "internal/vectors", // writes assembly
	"github.com/chromedp":                        "cmd/tensile",      // drives the browser in which the page is tested
}

// timeless are the packages that read no clock and start no goroutine.
var timeless = append([]string{"executor", "data", "data/weights", "models/onnx", "data/checkpoint", "device",
	"device/sim", "predictor"}, pure...)

// clocks are the functions of the package time that read a clock or wait for one.
var clocks = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// pure are the timeless packages that only compute: everything they depend on is an argument.
var pure = []string{"graph", "graph/autodiff", "graph/cost", "plan", "plan/pool", "plan/pool/trace", "plan/program",
	"plan/proof", "plan/compile",
	"peak", "predictor/correct", "device/lease",
	"models", "models/passes", "swapexec", "scheduler", "scheduler/rivals", "scheduler/rivals/...", "scheduler/draft",
	"scheduler/policies", "scheduler/policies/...", "observe/live",
	"controller/memory", "controller/learn", "controller/queue", "controller/fleet", "controller/recovery",
	"controller/place", "controller/gang"}

// unsafes are the packages that may convert pointers.
var unsafes = []string{"device", "device/cpu", "device/cpu/gemm", "device/cpu/kernel", "device/cpu/vector",
	"device/cuda/driver", "device/cuda/fakecuda", "device/cuda/fakecuda/bridge"}

// starters are the packages that start other programs. An executor is none of them: it runs no program of a user.
var starters = []string{"cmd/tensile", "bench", "device/lease/process"}

// programs are the packages main of what is not for tests.
var programs = []string{"cmd/tensile", "device/cuda/fakecuda/library"}

// waits are the packages without a clock of their own that wait with a limit.
var waits = []string{"executor"}

// seeded are the names of math/rand/v2 by which a pure package may make random numbers: all have a seed.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "PCG", "ChaCha8", "Rand", "Source", "Zipf"}

// outside are the standard packages, with those below them, that a pure package has no business with.
var outside = []string{"context", "crypto/rand", "log", "math/rand", "net", "os", "plugin", "runtime", "sync",
	"syscall", "unsafe"}

// asks are the functions of the package os, and flag the package, that only cmd/tensile uses.
var asks = []string{"Args", "Environ", "ExpandEnv", "Getenv", "LookupEnv"}
