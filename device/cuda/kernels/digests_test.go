package kernels

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tensile/device"
	"tensile/device/ptx"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/internal/golden"
	"tensile/internal/long"
	"tensile/models/task"
	"tensile/wire"
)

// TestDigests trains the networks of testdata/digests.txt one op after the other, by the kernels' sources compiled with
// gcc, and compares what they come to with the digests there: what every GPU must come to, and the interpreter. What
// each op has written is compared with testdata/ops.txt.
func TestDigests(t *testing.T) {
	const file, ops = "testdata/digests.txt", "testdata/ops.txt"
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	long.Only(t) // TestVariations and others run the same kernels on single ops
	h := startHost(t)
	var b, each strings.Builder
	each.WriteString(Head)
	for line := range strings.Lines(string(content)) {
		digest, words, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || digest == "#" {
			b.WriteString(line)
			continue
		}
		jobs, iterations := jobsOf(t, strings.Fields(words))
		digest, digests := h.train(t, jobs[0], iterations)
		fmt.Fprintf(&b, "%s %s\n", digest, words)
		digests.Words = words
		each.WriteString(digests.String())
	}
	golden.Compare(t, file, b.String())
	golden.Compare(t, ops, each.String())
}

// jobsOf reads the words of tensile run that the file uses.
func jobsOf(t *testing.T, words []string) (jobs []task.Task, iterations int) {
	t.Helper()
	s := task.Settings{Seed: 1}
	optimizer := "adam"
	numbers := map[string]*int{"--batch": &s.Batch, "--image": &s.Image, "--sequence": &s.Sequence,
		"--vocabulary": &s.Vocabulary, "--iterations": &iterations}
	var err error
	for i := 1; i < len(words); i += 2 {
		if words[i] == "--optimizer" {
			optimizer = words[i+1]
		} else if *numbers[words[i]], err = strconv.Atoi(words[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if s.Optimizer, err = autodiff.ParseOptimizer(optimizer, nil); err != nil {
		t.Fatal(err)
	}
	if jobs, err = task.Load(words[:1], s); err != nil {
		t.Fatal(err)
	}
	return jobs, iterations
}

// train trains a job with all of its storages in memory, and returns the digest of what it has come to, and those of
// its ops.
func (h *host) train(t *testing.T, job task.Task, iterations int) (string, OpDigests) {
	t.Helper()
	digests := OpDigests{Graph: job.Graph.Digest(), Seed: job.Seed}
	g, m := job.Graph, new(memory)
	storages := make([]*ptx.Allocation, len(g.Storages))
	for i, s := range g.Storages {
		content := device.NewMemory(s.Bytes)
		if s.Role.Persistent() {
			job.Init(s, content.Float32())
		}
		storages[i] = m.add(content, true)
	}
	var need graph.Bytes
	for _, op := range g.Ops {
		need = max(need, Scratch(op.Kind, op.Attrs, g.Shapes(op.Inputs), g.Shapes(op.Outputs)))
	}
	scratch, word := m.add(make([]byte, need), true), m.add(make([]byte, 8), true)
	sums := m.add(make([]byte, 8*len(g.Ops)), true)
	var launches []Launch
	for i, op := range g.Ops {
		c := Call{Kind: op.Kind, Attrs: op.Attrs, InShapes: g.Shapes(op.Inputs), OutShapes: g.Shapes(op.Outputs),
			Scratch: scratch.Address, Seed: job.Seed, Iteration: word.Address}
		for _, x := range op.Inputs {
			c.In = append(c.In, storages[g.Tensors[x].Storage].Address)
		}
		for _, x := range op.Outputs {
			c.Out = append(c.Out, storages[g.Tensors[x].Storage].Address)
		}
		launches = append(launches, Launches(&c)...)
		for n, x := range op.Outputs {
			launches = append(launches, launch("digest_of", 1, 1, c.Out[n], int(g.Tensors[x].Bytes()),
				sums.Address+uint64(8*i)))
		}
	}
	var r wire.Result
	feed := job.Feeder(nil)
	read := job.Reader(func(_ int, loss float32) { r.Losses = append(r.Losses, loss) })
	for i := range iterations {
		binary.LittleEndian.PutUint64(word.Bytes, uint64(i))
		for _, s := range g.Storages {
			if s.Role == graph.Input {
				feed(i, s.ID, device.Memory(storages[s.ID].Bytes))
			}
		}
		for at := range g.Ops {
			binary.LittleEndian.PutUint64(sums.Bytes[8*at:], fnv.New64a().Sum64())
		}
		h.execute(t, m, launches)
		digests.Iterations = append(digests.Iterations, nil)
		for at := range g.Ops {
			digests.Iterations[i] = append(digests.Iterations[i], Fold(binary.LittleEndian.Uint64(sums.Bytes[8*at:])))
		}
		for _, s := range g.Storages {
			if s.Role == graph.Output {
				read(i, s.ID, device.Memory(storages[s.ID].Bytes).Float32())
			}
		}
	}
	r.Weights = make(map[int32]string)
	for _, s := range g.Storages {
		if s.Role.Persistent() {
			r.Weights[int32(s.ID)] = task.Digest(slices.Clone(device.Memory(storages[s.ID].Bytes).Float32()))
		}
	}
	return r.Digest(), digests
}
