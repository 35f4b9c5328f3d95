package trace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frames stand in every entry and are left out.
const frames = `"stream":0,"time_us":17,"frames":[{"filename":"a \"}b\".py","line":3,"name":"f"},{"filename":"??",` +
	`"line":0,"name":"[x]"}]`

func entryOf(action string, addr, size int) string {
	return fmt.Sprintf(`{"action":%q,"addr":%d,"size":%d,%s}`, action, addr, size, frames)
}

func TestParseSnapshot(t *testing.T) {
	entries := strings.Join([]string{
		`{"action":"segment_alloc","addr":4096,"size":2097152,` + frames + `}`,
		entryOf("alloc", 4096, 100),
		entryOf("free_requested", 8192, 50), // allocated before the history began, and waited for
		entryOf("free_requested", 4096, 100),
		entryOf("free_completed", 4096, 100),
		`{"action":"oom","size":99999,"device_free":5,` + frames + `}`,
		entryOf("alloc", 4096, 70),
		entryOf("free_completed", 8192, 50),
		entryOf("free_requested", 4096, 70), // still in use by another stream when the snapshot is taken
		entryOf("alloc", 8192, 60),
		entryOf("snapshot", 0, 0),
	}, ",\n")
	segments := `{"device":0,"address":4096,"total_size":9,"blocks":[` +
		`{"address":4096,"size":512,"requested_size":70,"state":"active_pending_free","frames":[]},` +
		`{"size":512,"state":"inactive"},{"size":256,"requested_size":200,"state":"active_allocated"},{"size":64,` +
		`"state":"active_allocated"}]},` +
		`{"device":1,"address":65536,"blocks":[{"address":65536,"size":512,"state":"active_allocated"}]},` +
		`{"device":0,"address":8192,"blocks":[{"address":8192,"size":512,"requested_size":60,` +
		`"state":"active_allocated"}]}`
	want := Trace{{Malloc, "0x1400", 200}, {Malloc, "0x1500", 64}, {Malloc, "0x2000", 50}, {Malloc, "0x1000", 100},
		{Free, "0x1000", 0}, {Malloc, "0x1000", 70}, {Free, "0x2000", 0}, {Malloc, "0x2000", 60}}
	for _, text := range []string{
		`{"segments":[` + segments + `],"device_traces":[[` + entries +
			`],[]],"allocator_settings":{"a":[1,{"b":null}]},"x":3}`,
		"{\n\"external_annotations\":[],\n\"device_traces\":[[],[" + entries + "]],\n\"segments\":[" +
			strings.NewReplacer(`"device":0`, `"device":1`, `"device":1`, `"device":0`).Replace(segments) + "]}\n",
	} {
		got, err := parseSnapshot(strings.NewReader(text), "t", ImportOptions{})
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(&Record{want, 3, []OOM{{5, 99999, 5, 314}}}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// What is active although its last entry frees it was allocated after the history ended.
func TestParseSnapshotAfterTheHistory(t *testing.T) {
	text := `{"segments":[{"device":0,"address":16,"blocks":[{"size":512,"requested_size":4,` +
		`"state":"active_allocated"}]}],"device_traces":[[` + entryOf("alloc", 16, 3) + "," +
		entryOf("free_completed", 16, 3) + `]]}`
	r, a := answer(t, "a block after the history", text)
	if want := (Event{Malloc, "0x10", 4}); r.Before != 0 || len(r.Trace) != 3 || r.Trace[2] != want || a.Peak != 4 {
		t.Errorf("%+v, peak %d", r, a.Peak)
	}
}

func TestParseSnapshotDevices(t *testing.T) {
	text := `{"segments":[],"device_traces":[[` + entryOf("alloc", 16, 1) + `],[],[` + entryOf("alloc", 32, 2) + `]]}`
	for device, want := range map[int]Trace{0: {{Malloc, "0x10", 1}}, 2: {{Malloc, "0x20", 2}}, 1: nil, 3: nil,
		-1: nil} {
		got, err := parseSnapshot(strings.NewReader(text), "t", ImportOptions{Device: &device})
		if (err == nil) != (want != nil) || err == nil && !slices.Equal(got.Trace, want) {
			t.Errorf("device %d: %v, %v", device, got, err)
		}
	}
	_, err := parseSnapshot(strings.NewReader(text), "t", ImportOptions{})
	if want := "t: the devices 0, 2 have events: choose one"; !errors.Is(err, ErrDevices) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	none := strings.NewReader(`{"device_traces":[[]]}`)
	if _, err := parseSnapshot(none, "t", ImportOptions{Device: new(0)}); err == nil ||
		!strings.Contains(err.Error(), "call torch.cuda.memory._record_memory_history()") {
		t.Errorf("of a device in a snapshot without events: %v", err)
	}
}

func TestParseSnapshotRefuses(t *testing.T) {
	const head = `{"device_traces":[[`
	for _, c := range []struct{ text, want string }{
		{`[{"device":0}]`, "t:1:2: a list of segments without events: call torch"},
		{`{}`, "t: the snapshot has no events: call torch"},
		{`{"device_traces":[[],[]]}`, "t: the snapshot has no events"},
		{`{"device_traces":3}`, "t:1:19: device_traces begins with 3, not with ["},
		{`{"device_traces":[3]}`, "t:1:20: device_traces[0] begins with 3"},
		{`{"segments":[],"device_traces":[[]],"device_traces":[[]]}`, "t:1:52: device_traces stands there twice"},
		{head + "\n\n  {\"action\":3}]]}", "t:3:"},
		{head + `{"addr":3}]]}`, "t:1:30: device 0, entry 0 has no action"},
		{head + `{"action":"alloc","addr":-3,"size":1}]]}`, "t:1:"},
		{head + entryOf("alloc", 16, -1) + `]]}`, `t: device 0, entry 0: malloc of block "0x10": size -1 is negative`},
		{head + entryOf("alloc", 16, 1) + "," + entryOf("alloc", 16, 1) + `]]}`,
			`t: device 0, entry 1: malloc of block "0x10", which`},
		{head + entryOf("free_completed", 16, 1) + "," + entryOf("free_completed", 16, 1) + `]]}`,
			"t: device 0, entry 1: free of"},
		{head + entryOf("alloc", 16, 1), "t:1:"},
		{head + entryOf("alloc", 16, 1) + "]]", "t:1:"},
		{head + entryOf("alloc", 16, 1) + "]]} {", "t:1:"},
		{"{\"INSTRUCTION\":\"CONSTANT\"}\n{\"INSTRUCTION\":\"MEMORY\"}\n",
			"t was taken for a PyTorch memory snapshot because it begins with {, but"},
		{`{"a":3}`, "t was taken for a PyTorch memory snapshot"},
		{`{"segments":[]} {`, "t:1:18: something follows the snapshot"},
		{`{"a":[1,2`, "t:1:10: the file ends in the middle"},
	} {
		_, err := parseSnapshot(strings.NewReader(c.text), "t", ImportOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %s", c.text, err, c.want)
		}
	}
}

// A snapshot of a training job becomes the trace that it was made of.
func TestSnapshotOfTraining(t *testing.T) {
	g := &training{rng: newRand(13), noReads: true}
	weights := g.start(8)
	start := len(g.t)
	for range 3 {
		g.iteration(weights, "", false)
	}
	var addr int
	var lines []string
	for _, e := range g.t[start:] { // the history begins after the start: the weights are known from the segments alone
		fmt.Sscanf(e.Block, "b%d", &addr)
		switch e.Kind {
		case Malloc:
			lines = append(lines, entryOf("alloc", 512*addr+512, int(e.Bytes)))
		case Free:
			lines = append(lines, entryOf("free_requested", 512*addr+512, 0), entryOf("free_completed", 512*addr+512,
				0))
		}
	}
	var blocks []string
	for _, w := range weights {
		fmt.Sscanf(w, "b%d", &addr)
		blocks = append(blocks, fmt.Sprintf(`{"device":0,"address":%d,"blocks":[{"size":512,"requested_size":64,`+
			`"state":"active_allocated"}]}`,
			512*addr+512))
	}
	text := `{"segments":[` + strings.Join(blocks, ",") + `],"device_traces":[[` + strings.Join(lines, ",") + `]]}`
	got, err := Import(strings.NewReader(text), "t", ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, from := lifetimesOf(t, g.t, LifetimeOptions{}), lifetimesOf(t, got.Trace, LifetimeOptions{})
	if diff := cmp.Diff(want.Buffers, from.Buffers); diff != "" || want.Load != from.Load {
		t.Errorf("load %d, want %d: %s", from.Load, want.Load, diff)
	}
}

func lifetimesOf(t *testing.T, tr Trace, o LifetimeOptions) *Lifetimes {
	t.Helper()
	it, err := Find(tr, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := LifetimesOf(tr, it, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
