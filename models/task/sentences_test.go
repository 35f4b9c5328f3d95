package task

import (
	"slices"
	"testing"

	"tensile/data"
	"tensile/device"
	"tensile/graph"
	"tensile/models"
)

// fed returns what the inputs of a model are in an iteration, by name.
func fed(t *testing.T, model string, c models.Config, seed uint64, iteration int) map[string][]float32 {
	t.Helper()
	g, err := models.Build(model, c)
	if err != nil {
		t.Fatal(err)
	}
	task, err := Open(nil, g, seed, "")
	if err != nil {
		t.Fatal(err)
	}
	feed, all := task.Feeder(nil), make(map[string][]float32)
	for _, s := range g.Storages {
		if s.Role == graph.Input {
			memory := device.NewMemory(s.Bytes)
			feed(iteration, s.ID, memory)
			all[s.Name] = numbers(memory, g.DTypes()[s.ID])
		}
	}
	return all
}

// numbers returns the elements of an input; tokens are few enough to be float32.
func numbers(memory device.Memory, dtype graph.DType) []float32 {
	if dtype == graph.Float32 {
		return memory.Float32()
	}
	var all []float32
	for _, v := range memory.Int64() {
		all = append(all, float32(v))
	}
	return all
}

// What a language model is to say next is what it reads one place later; other iterations and seeds have other tokens.
func TestFeedNext(t *testing.T) {
	c := models.Config{Sequence: 8, Vocabulary: 50, Batch: 3}
	for _, model := range []string{"gpt:1,8,2", "rhn:1,8"} {
		in := fed(t, model, c, 5, 2)
		for i := range 3 {
			tokens, next := in["tokens"][8*i:8*i+8], in["next"][8*i:8*i+8]
			if !slices.Equal(tokens[1:], next[:7]) {
				t.Errorf("%s: reads %v, and is to say %v", model, tokens, next)
			}
			for _, v := range tokens {
				if v < 1 || v > 49 || v != float32(int(v)) {
					t.Errorf("%s: token %v", model, v)
				}
			}
		}
		if !slices.Equal(in["tokens"], fed(t, model, c, 5, 2)["tokens"]) {
			t.Errorf("%s: an iteration has other tokens the second time", model)
		}
		if slices.Equal(in["tokens"], fed(t, model, c, 5, 3)["tokens"]) || slices.Equal(in["tokens"],
			fed(t, model, c, 6, 2)["tokens"]) {
			t.Errorf("%s: two iterations, or seeds, have the same tokens", model)
		}
	}
}

// A translation is another text than its source; what is to be said is the translation.
func TestFeedTranslation(t *testing.T) {
	in := fed(t, "gnmt:2,4", models.Config{Sequence: 9, Vocabulary: 50, Batch: 1}, 5, 0)
	if !slices.Equal(in["target"][1:], in["next"][:8]) || slices.Equal(in["source"], in["target"]) {
		t.Errorf("source %v, target %v, next %v", in["source"], in["target"], in["next"])
	}
}

// Hidden tokens are to be guessed and not shown, others are shown and not to be guessed. The two texts are told apart.
func TestFeedHidden(t *testing.T) {
	const n, steps = 20, 16
	in := fed(t, "bert:1,8,2", models.Config{Sequence: steps, Vocabulary: 50, Batch: n}, 5, 1)
	hidden := 0
	for i, token := range in["tokens"] {
		guess := in["hidden"][i]
		if (token == 0) != (guess > 0) || token != 0 && guess != -1 {
			t.Errorf("place %d: token %v, to be guessed %v", i, token, guess)
		}
		if token == 0 {
			hidden++
		}
		if want := i % steps / (steps / 2); in["types"][i] != float32(want) {
			t.Errorf("place %d is of text %v, want %d", i, in["types"][i], want)
		}
	}
	if hidden < n*steps/14 || hidden > n*steps/4 {
		t.Errorf("%d of %d tokens are hidden", hidden, n*steps)
	}
	for i, follows := range in["follows"] {
		if want := data.NewSentences(5).Follows(n + i); (follows == 1) != want || follows != 0 && follows != 1 {
			t.Errorf("example %d: follows %v, want %v", i, follows, want)
		}
	}
}

// A sound's past is the sound a frame later, and it stops at its last frame.
func TestFeedSound(t *testing.T) {
	const n, frames, bands = 2, 10, 80
	in := fed(t, "tacotron:1,16", models.Config{Sequence: frames / 5, Vocabulary: 50, Batch: n}, 5, 0)
	for i := range n {
		sound, past := in["frames"][i*frames*bands:][:frames*bands], in["previous"][i*frames*bands:][:frames*bands]
		if !slices.Equal(past[bands:], sound[:len(sound)-bands]) || slices.ContainsFunc(past[:bands],
			func(v float32) bool { return v != 0 }) {
			t.Errorf("example %d: the past is not the sound, a frame later", i)
		}
		stop := make([]float32, frames)
		stop[frames-1] = 1
		if got := in["stop"][i*frames:][:frames]; !slices.Equal(got, stop) {
			t.Errorf("example %d: stops at %v", i, got)
		}
	}
}

// A graph with an input that does not say what it holds is fed noise, and ids are rows of their table.
func TestFeedUnknown(t *testing.T) {
	b := graph.NewBuilder("unknown")
	tokens := b.Input("tokens", graph.Tokens, graph.Int64, graph.Shape{2, 50})
	table := b.Persistent("table", graph.Parameter, graph.Shape{3, 4}, graph.Init{Kind: graph.InitOne})
	y := b.Op("y", graph.Embedding, graph.Attrs{}, table, b.View("ids", tokens, 0, graph.Shape{100}))[0]
	b.Output(b.Op("loss", graph.MeanSquare, graph.Attrs{}, y, b.Input("wish", graph.Anything, graph.Float32,
		graph.Shape{100, 4}))[0])
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if newReader(g, 1) != nil {
		t.Fatal("a graph with an input of no known meaning is fed sentences")
	}
	g.Storages[0].Holds = graph.Frames // of sound, where rows are looked up
	if newReader(g, 1) != nil {
		t.Fatal("an embedding is fed sound")
	}
	ids := device.NewMemory(800)
	Task{Graph: g, Seed: 1}.Feeder(nil)(0, 0, ids)
	var seen [3]bool
	for _, id := range ids.Int64() {
		if id != 0 && id != 1 && id != 2 {
			t.Fatalf("id %v of 3 rows", id)
		}
		seen[id] = true
	}
	if seen != [3]bool{true, true, true} {
		t.Errorf("of the rows only %v are looked up", seen)
	}
}
