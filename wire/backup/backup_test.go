package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
	"tensile/wire/bus"
	"tensile/wire/journal"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// folder is a state folder whose server and journal run, until stop is called.
func folder(t *testing.T, dir string) (store wire.Bus, stop func()) {
	t.Helper()
	server, err := bus.Start(bus.Options{Dir: dir})
	must(t, err)
	conn, err := server.Connect(t.Context(), bus.ConnOptions{})
	must(t, err)
	kept, err := journal.Open(dir, func(line string) { t.Errorf("the journal says: %s", line) })
	must(t, err)
	store, err = kept.Follow(t.Context(), conn)
	must(t, err)
	return store, func() {
		conn.Close()
		kept.Close()
		server.Close()
	}
}

// record is that of a job at an executor.
func record(name string, id int64, state wire.JobState) wire.Record {
	r := wire.Record{Spec: wire.Spec{Name: name, ID: id, Model: "lenet", Graph: graph.Digest(strings.Repeat("ab", 32)),
		Seed: 1, Iterations: 9, Priority: 1}, Order: id, State: state, Device: "cpu/x"}
	if !state.Over() {
		r.Executor, r.Incarnation, r.Epoch, r.Granted, r.Applied = "x7", 1, 1, 1, 1
	}
	return r
}

// made is a backup of a small state folder.
func made(t *testing.T) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	store, stop := folder(t, dir)
	defer stop()
	ctx := t.Context()
	a, b := record("a", 1, wire.JobRunning), record("b*", 2, wire.JobFinished)
	must(t, store.Put(ctx, wire.RecordKey("a"), wire.Encode(a)))
	must(t, store.Put(ctx, wire.RecordKey("b*"), wire.Encode(b)))
	must(t, store.Put(ctx, wire.OrdersKey("x7"), wire.Encode(wire.Orders{Executor: "x7", Number: 3})))
	must(t, store.Store(ctx, wire.Administration, wire.TenantsObject,
		wire.Encode(wire.Tenants{Shares: map[string]int{"ada": 3}})))
	must(t, store.Store(ctx, wire.Graphs, wire.GraphObject(a.Spec.Graph), []byte("a graph")))
	must(t, store.Store(ctx, wire.Bucket("x7"), wire.LayoutObject("a", 1, 1), []byte("a layout")))
	must(t, store.Store(ctx, wire.Results, wire.ResultObject("b*", 2), []byte("a result")))
	for name, text := range map[string]string{"checkpoints/identity": "a word", "http.json": "{}",
		"checkpoints/a-1/1-5.safetensors": "five", "checkpoints/a-1/1-6.safetensors.writing": "half",
		"checkpoints/b*-2/1-9.safetensors": "over", "executors/x3.lock": "lab, process 7"} {
		must(t, unpackFile(filepath.Join(dir, filepath.FromSlash(name)), strings.NewReader(text)))
	}
	var text bytes.Buffer
	damaged, err := Write(ctx, &text, dir, store)
	must(t, err)
	if len(damaged) > 0 {
		t.Errorf("%v are left out", damaged)
	}
	return text.Bytes()
}

// What was written is there again, in a folder that was not there, or was empty.
func TestRestore(t *testing.T) {
	text := made(t)
	for _, dir := range []string{filepath.Join(t.TempDir(), "below", "state"), t.TempDir()} {
		must(t, Restore(t.Context(), bytes.NewReader(text), dir))
		for name, want := range map[string]string{"checkpoints/identity": "a word",
			"checkpoints/a-1/1-5.safetensors": "five", "http.json": "{}", "format": "1\n",
			"executors/x3.lock": "lab, process 7", "executors/x7.lock": ""} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			got, err := os.ReadFile(path)
			info, _ := os.Stat(path)
			if err != nil || string(got) != want || info.Mode().Perm() != 0o600 {
				t.Errorf("%s is %q: %v", name, got, err)
			}
		}
		for _, name := range []string{"checkpoints/a-1/1-6.safetensors.writing", "checkpoints/b*-2"} {
			if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is there: %v", name, err)
			}
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v: %v", dir, info.Mode(), err)
		}
		ctx := t.Context()
		store, stop := folder(t, dir) // which finds that journal and store are the same
		for key, want := range map[string]wire.Message{wire.RecordKey("a"): record("a", 1, wire.JobRunning),
			wire.RecordKey("b*"): record("b*", 2, wire.JobFinished)} {
			value, err := store.Get(ctx, key)
			must(t, err)
			if got, err := wire.DecodeAs[wire.Record](value); err != nil ||
				!bytes.Equal(wire.Encode(got), wire.Encode(want)) {
				t.Errorf("%s is %s: %v", key, value, err)
			}
		}
		if value, err := store.Load(ctx, wire.Administration, wire.TenantsObject); err != nil {
			t.Errorf("the tenants are %s: %v", value, err)
		}
		for _, object := range [][3]string{{wire.Graphs, wire.GraphObject(record("a", 1, wire.JobRunning).Spec.Graph),
			"a graph"}, {wire.Bucket("x7"), wire.LayoutObject("a", 1, 1), "a layout"},
			{wire.Results, wire.ResultObject("b*", 2), "a result"}} {
			if data, err := store.Load(ctx, object[0], object[1]); err != nil || string(data) != object[2] {
				t.Errorf("%s of %s is %q: %v", object[1], object[0], data, err)
			}
		}
		stop()
	}
}

// A file that is cut anywhere, or in which a byte is another, another program's and one of another form are refused,
// and so is a folder that is not empty: nothing is left.
func TestRefuses(t *testing.T) {
	text := made(t)
	parent := t.TempDir()
	refused := func(what string, text []byte, want string) {
		t.Helper()
		err := Restore(t.Context(), bytes.NewReader(text), filepath.Join(parent, "state"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
			t.Fatalf("%s: %v is left: %v", what, left, err)
		}
	}
	const no, hurt = "it is no backup of a controller: ", "it is cut or damaged: "
	var other bytes.Buffer
	w := tar.NewWriter(&other)
	must(t, w.WriteHeader(&tar.Header{Name: "x", Size: 0, Mode: 0o600}))
	must(t, w.Close())
	for what, text := range map[string][]byte{"empty": nil, "text": []byte("a text"), "an archive": other.Bytes(),
		"a long text": bytes.Repeat([]byte("a text "), 1000), "zeros": make([]byte, 1<<20)} {
		refused(what, text, no)
	}
	refused("another form", bytes.Replace(text, []byte(`{"format":1}`), []byte(`{"format":7}`), 1),
		"it is of a state folder of form 7, and this release keeps form 1: ")
	ends := bytes.LastIndex(text, []byte(endName+"\x00")) + 512 + 64 // what comes then is nothing
	rng := rand.New(rand.NewPCG(1, 38))
	for range long.Rounds(200, 5000) {
		cut := 1024 + rng.IntN(ends-1024)
		refused("cut", text[:cut], hurt)
		flipped := bytes.Clone(text)
		flipped[1024+rng.IntN(ends-1024)] ^= byte(1 << rng.IntN(8))
		if err := check(bytes.NewReader(flipped)); err == nil && !same(t, text, flipped) {
			t.Errorf("a flip was not noticed")
		}
	}
	must(t, os.MkdirAll(filepath.Join(parent, "full", "x"), 0o700))
	err := Restore(t.Context(), bytes.NewReader(text), filepath.Join(parent, "full"))
	if err == nil || !strings.Contains(err.Error(), "full is not empty: ") {
		t.Errorf("a folder that is not empty: %v", err)
	}
}

// same reports whether two archives have the same parts: of a header some bits mean nothing.
func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	all := func(text []byte) (all strings.Builder) {
		must(t, parts(bytes.NewReader(text), func(name string, _ int64, from io.Reader) error {
			all.WriteString(name + "\n")
			_, err := io.Copy(&all, from)
			return err
		}))
		return all
	}
	x, y := all(a), all(b)
	return x.String() == y.String()
}
