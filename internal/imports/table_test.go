package imports

// module is the name of the module in import paths.
const module = "tensile"

// rows are the packages, top to bottom: one may import those of the rows above its own. A trailing /... stands for all
// packages below a path; the longest match counts.
var rows = [][]string{
	{"internal/invariants"},
	{"graph"},
	{"internal/ptx"},
	{"internal/text", "internal/rooted"},
	{"internal/bayes"},
	{"internal/cudaabi"},
	{"pool", "pool/trace"},
	{"lease"},
	{"lease/shift", "lease/pairs"},
	{"lease/method"},
	{"cost"},
	{"plan"},
	{"external"},
	{"peak"},
	{"program"},
	{"passes"},
	{"weights"},
	{"checkpoint"},
	{"predictor", "predictor/correct"},
	{"scheduler"},
	{"internal/replay"},
	{"scheduler/draft"},
	{"scheduler/policies/..."},
	{"scheduler/policies"},
	{"autodiff", "models", "onnx"},
	{"data"},
	{"device", "device/..."},
	{"internal/fakecuda"},
	{"internal/fakecuda/bridge"},
	{"internal/fakecuda/library"},
	{"task"}, // what a device is fed
	{"workload", "planner"},
	{"explain"},
	{"swapexec"},
	{"executor"},
	{"external/sidecar"},
	{"timeline"},
	{"wire"},
	{"internal/limit", "internal/recording", "internal/clock", "internal/lifelock", "internal/web",
		"internal/journal"},
	{"internal/leader"},
	{"lease/process", "reduce"},
	{"agent"},
	{"controller"},
	{"metrics"},
	{"internal/bus"},
	{"internal/backup"},
	{"report"},
	{"live"}, // what people see of all that
	{"internal/page"},
	{"top"},
	{"internal/local"},
	{"simulate"},
	{"onnx/cases"},
	{"calibrate"},
	{"bench"}, // measures the product, which does not know it
	{"cmd/tensile"},
}

// within are the imports between packages of one row.
var within = map[string][]string{
	"pool/trace":         {"pool"},
	"predictor":          {"predictor/correct"},
	"models":             {"autodiff"},
	"onnx":               {"autodiff"},
	"device/sim":         {"device"},
	"device/cpu":         {"device", "device/cpu/gemm", "device/cpu/kernel"},
	"device/cpu/kernel":  {"device/cpu/gemm"},
	"device/cuda":        {"device", "device/cuda/kernels"},
	"device/cuda/driver": {"device/cuda"},
}

// strangers are packages that must not know each other although their rows would allow it.
var strangers = map[string][]string{
	"pool":                   {"graph", "internal/invariants"}, // it imports nothing of ours
	"pool/trace":             {"graph", "internal/invariants"}, // nor that, but pool
	"scheduler":              {"predictor"},                    // latencies are data
	"scheduler/draft":        {"predictor"},
	"scheduler/policies":     {"predictor"},
	"scheduler/policies/...": {"predictor"},
	"controller":             {"executor"}, // they talk over the bus
	"executor":               {"controller"},
}

// helpers are packages for tests: only tests and other helpers import them, and they import what they like.
var helpers = []string{"internal/randgraph", "internal/randjobs", "internal/randplan", "device/devicetest",
	"internal/imports",
	"internal/simtest", "internal/localbus", "internal/golden", "internal/smallnet", "internal/needs",
	"internal/torchtest", "internal/npztest",
	"internal/testrun", "internal/mutants", "internal/long", "internal/reap", "internal/launches"}

// foreign says which packages each foreign library enters through, the library given as a prefix of import paths.
var foreign = map[string][]string{
	"github.com/spf13/cobra":       {"cmd/tensile"},
	"github.com/spf13/pflag":       {"cmd/tensile"}, // cobra's flags
	"github.com/ebitengine/purego": {"device/cpu/gemm"},
	"gonum.org/v1/gonum/blas":      {"device/cpu/gemm", "predictor"}, // kernels; the predictor's forward pass
	"gonum.org/v1/plot":            {"bench", "report"},              // drawings
	"github.com/nats-io":           {"internal/bus"},
	"gonum.org/v1/gonum/mat":       {"internal/bayes"},
	"gorgonia.org":                 {"predictor"},
	"gorgonia.org/cu":              {"device/cuda/driver"},
	"C": {"device/cuda/driver", "internal/fakecuda/bridge",
		"internal/fakecuda/library"},
	"go4.org/unsafe/assume-no-moving-gc": {"predictor"}, // gorgonia does not start without it
	"github.com/NVIDIA/go-nvml":          {"device/nvml"},
	"github.com/prometheus":              {"metrics"},
	"github.com/google/renameio/v2":      {"internal/bus"}, // files that are replaced whole
	"golang.org/x/term":                  {"cmd/tensile"},  // what a terminal is
	"charm.land/bubbletea/v2":            {"top"},          // terminals that show what is live
	"github.com/charmbracelet/x/ansi":    {"top"},          // how wide texts are there
	"golang.org/x/image":                 {"data"},         // scales images
	"google.golang.org/protobuf":         {"onnx"},         // the wire format of its files
}

// foreignInTests are the libraries that only tests use, and the package whose tests do; "": every.
var foreignInTests = map[string]string{
	"github.com/google/go-cmp":                   "",
	"github.com/cockroachdb/datadriven":          "",
	"github.com/rogpeppe/go-internal/testscript": "cmd/tensile",
	"github.com/goccy/go-yaml":                   "cmd/tensile", // reads deploy/kubernetes
	"github.com/chromedp":                        "cmd/tensile", // drives the browser in which the page is tested
}

// timeless are the packages that read no clock and start no goroutine.
var timeless = append([]string{"executor", "data", "weights", "onnx", "checkpoint", "device", "device/sim",
	"predictor"}, pure...)

// clocks are the functions of the package time that read a clock or wait for one.
var clocks = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// pure are the timeless packages that only compute: everything they depend on is an argument.
var pure = []string{"graph", "internal/bayes", "pool", "pool/trace", "lease", "lease/shift", "lease/pairs",
	"lease/method", "cost", "plan", "peak", "program", "passes", "predictor/correct",
	"scheduler", "internal/replay", "scheduler/draft", "scheduler/policies", "scheduler/policies/...",
	"autodiff", "models", "swapexec", "live"}

// outside are the standard packages that a pure package has no business with.
var outside = []string{"context", "log", "log/slog", "math/rand", "net", "os", "os/exec", "sync", "syscall", "unsafe"}

// asks are the functions of the package os, and flag the package, that only cmd/tensile uses.
var asks = []string{"Args", "Environ", "ExpandEnv", "Getenv", "LookupEnv"}
