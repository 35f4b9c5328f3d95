package policies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/internal/golden"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/policies/tensile"
	"tensile/scheduler/rivals/autoswap"
	"tensile/scheduler/rivals/capuchin"
	"tensile/scheduler/rivals/superneurons"
)

// TestDrawnCases plans the cases in testdata, each of which can be drawn by hand: a comment that tells what should
// happen, a line with the request, the storages from outside, the ops, and below the line what is planned.
func TestDrawnCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d cases: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sketch, _, _ := strings.Cut(string(text), "----\n")
			golden.Compare(t, file, sketch+"----\n"+outcome(t, parseSketch(t, sketch)))
		})
	}
}

// outcome prints the plan, proven, and what it is about.
func outcome(t *testing.T, r scheduler.Request) string {
	t.Helper()
	live := r
	live.Policy, live.Budget = "none-live", 0
	before := schedule(t, "none-live", live)
	result := schedule(t, r.Policy, r)
	mustHold(t, r.Policy, r, result)
	s, g := result.Jobs[0], r.Jobs[0].Graph
	timing := program.Time(compile.Compile(g, s.Plan, s.Layout, compile.Options{}),
		program.Durations{Steps: s.Plan.Made,
			Out: s.Out, In: s.In})
	var b strings.Builder
	b.WriteString(s.Plan.Text(g))
	fmt.Fprintf(&b, "peak %s in step %d without a plan, %s in step %d with it; zero-stall bound %s\n",
		before.Jobs[0].Footprint.Peak, before.Jobs[0].Footprint.At,
		s.Footprint.Peak, s.Footprint.At, s.Bounds.ZeroStall)
	fmt.Fprintf(&b, "iteration %v without a plan, %v with it\n", s.Unplanned, timing.Iteration)
	for _, d := range s.Decisions {
		fmt.Fprintf(&b, "%s %s: away for %d steps, %v; costs %v; %s\n", d.Kind, g.Storages[d.Storage].Name, d.Freed,
			d.Away,
			d.Cost, d.Reason)
	}
	return b.String()
}

// parseSketch reads a job and a request from a few words a line:
//
//	schedule policy=tensile budget=112MiB link=16MiB/ms     or: lowest instead of a budget
//	parameter w 8MiB                                        or: state, input
//	op 4ms a b -> c:16MiB                                   reads a and b, makes c
//	op 1ms w g -> w                                         updates w in place
//	op:conv2d 4ms a w -> b:16MiB                            of this kind; others are relu
//	grad<op 4ms a d -> g:16MiB                              a backward op of op; g is a gradient. Or grad:KIND<op
//	phase backward                                          of the ops that follow; forward before that
func parseSketch(t *testing.T, text string) scheduler.Request {
	t.Helper()
	g := &graph.Graph{Name: "drawn"}
	r := scheduler.Request{Align: 512, Explain: false}
	j := scheduler.Job{Name: "drawn", Graph: g}
	newest := map[string]graph.TensorID{}
	phase := graph.Forward
	add := func(name string, role graph.Role, bytes graph.Bytes) graph.TensorID {
		s := graph.StorageID(len(g.Storages))
		g.Storages = append(g.Storages, graph.Storage{ID: s, Name: name, Role: role, Bytes: bytes})
		return tensor(g, name, s, 0)
	}
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "phase":
			phase = graph.Phase(words[1])
		case words[0] == "schedule":
			parseRequest(t, &r, words[1:])
		case words[0] == "parameter" || words[0] == "state" || words[0] == "input":
			newest[words[1]] = add(words[1], graph.Role(words[0]), parseSize(t, words[2]))
		default:
			op := graph.Op{ID: graph.OpID(len(g.Ops)), Name: words[0], Kind: graph.ReLU, Forward: graph.NoOp,
				Phase: phase}
			if strings.HasPrefix(words[0], "update") {
				op.Phase = graph.Optimize
			}
			made := ofLayer(t, g, &op)
			took, err := time.ParseDuration(words[1])
			if err != nil {
				t.Fatal(err)
			}
			j.Latency = append(j.Latency, took)
			arrow := false
			for _, word := range words[2:] {
				name, size, fresh := strings.Cut(word, ":")
				switch {
				case word == "->":
					arrow = true
				case !arrow:
					op.Inputs = append(op.Inputs, newest[name])
				case fresh:
					newest[name] = add(name, made, parseSize(t, size))
					op.Outputs = append(op.Outputs, newest[name])
				default:
					of := g.Tensors[newest[name]]
					newest[name] = tensor(g, name, of.Storage, of.Version+1)
					op.Outputs = append(op.Outputs, newest[name])
				}
			}
			g.Ops = append(g.Ops, op)
		}
	}
	r.Jobs = []scheduler.Job{j}
	return r
}

// ofLayer takes the kind of an op, or the forward op that it belongs to, from its name. It returns the role of what the
// op makes.
func ofLayer(t *testing.T, g *graph.Graph, op *graph.Op) graph.Role {
	t.Helper()
	name, of, backward := strings.Cut(op.Name, "<")
	if plain, kind, ok := strings.Cut(name, ":"); ok {
		name, op.Kind = plain, graph.Kind(kind)
	}
	if op.Name = name; !backward {
		return graph.Activation
	}
	op.Phase = graph.Backward
	op.Forward = graph.OpID(slices.IndexFunc(g.Ops, func(o graph.Op) bool { return o.Name == of }))
	if op.Forward == graph.NoOp {
		t.Fatalf("%s: there is no op %s", name, of)
	}
	return graph.Gradient
}

func tensor(g *graph.Graph, name string, s graph.StorageID, version int) graph.TensorID {
	id := graph.TensorID(len(g.Tensors))
	g.Tensors = append(g.Tensors, graph.Tensor{ID: id, Name: name, Storage: s, Version: version,
		Shape: graph.Shape{int(g.Storages[s].Bytes / graph.ElementBytes)}})
	return id
}

func parseRequest(t *testing.T, r *scheduler.Request, words []string) {
	t.Helper()
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "policy":
			r.Policy = value
		case "budget":
			r.Budget = parseSize(t, value)
		case "lowest":
			r.Lowest = true
		case "link":
			rate := float64(parseSize(t, strings.TrimSuffix(value, "/ms"))) * 1000
			r.Out, r.In = cost.Link{Rate: cost.BytesPerSecond(rate)}, cost.Link{Rate: cost.BytesPerSecond(rate)}
		case "score":
			r.Options.Own = autoswap.Options{Score: autoswap.Score(value)}
		case "uncached":
			r.Options.Own = superneurons.Options{NoCache: true, NoRecompute: true}
		case "cached":
			r.Options.Own = superneurons.Options{NoRecompute: true}
		case "again":
			r.Options.Own = superneurons.Options{Always: true}
		case "norecompute":
			if r.Policy == "capuchin" {
				r.Options.Own = capuchin.Options{NoRecompute: true}
				break
			}
			own := scheduler.OptionsOf[tensile.Options](r)
			own.NoRecompute = true
			r.Options.Own = own
		case "keeporder":
			own := scheduler.OptionsOf[tensile.Options](r)
			own.KeepOrder = true
			r.Options.Own = own
		default:
			t.Fatalf("request: %s", word)
		}
	}
}

func parseSize(t *testing.T, text string) graph.Bytes {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSuffix(text, "MiB"))
	if err != nil {
		t.Fatal(err)
	}
	return graph.Bytes(n) << 20
}
