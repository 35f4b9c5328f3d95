package bus

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tensile/wire"
)

// jet returns JetStream as any NATS client that has the controller's credentials sees it.
func jet(t *testing.T, s *Server) jetstream.JetStream {
	t.Helper()
	to := s.Credentials(Controller)
	conn, err := nats.Connect(to.URL, nats.UserInfo(to.User, to.Password))
	must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(t, err)
	return js
}

// pattern is data in which no two chunks are equal.
func pattern(size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7 >> 3 * (i >> 17))
	}
	return data
}

// TestObjectsOfNATS has the object stores of NATS's own client read, list and delete what was stored here, and what
// they store is loaded here: by the controller, by the executor, by a command line.
func TestObjectsOfNATS(t *testing.T) {
	s := listening(t)
	ctx, c, js := within(t), rule(t, s), jet(t, s)
	x, client := join(t, s, Executor("e.1")), join(t, s, Client)
	small, large, none := []byte("small"), pattern(5*chunkBytes+3), []byte{}
	must(t, c.Store(ctx, wire.Bucket("e.1"), wire.LayoutObject("job.1", 5, 1), small))
	must(t, c.Store(ctx, wire.Bucket("e.1"), wire.LayoutObject("job.1", 5, 2), none))
	must(t, c.Store(ctx, wire.Graphs, wire.GraphObject("0123"), small))
	must(t, c.Store(ctx, wire.Graphs, wire.GraphObject("0123"), large)) // instead of that

	store, err := js.ObjectStore(ctx, wire.Bucket("e.1"))
	must(t, err)
	graphs, err := js.ObjectStore(ctx, wire.Graphs)
	must(t, err)
	for _, test := range []struct {
		store  jetstream.ObjectStore
		name   string
		want   []byte
		chunks uint32
	}{
		{store, wire.LayoutObject("job.1", 5, 1), small, 1}, {store, wire.LayoutObject("job.1", 5, 2), none, 0},
		{graphs, wire.GraphObject("0123"), large, 6},
	} {
		if got, err := test.store.GetBytes(ctx, test.name); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("nats.go reads %d bytes of %s, want %d: %v", len(got), test.name, len(test.want), err)
		}
		if info, err := test.store.GetInfo(ctx, test.name); err != nil || info.Chunks != test.chunks ||
			info.Size != uint64(len(test.want)) {
			t.Errorf("the info of %s: %+v, %v", test.name, info, err)
		}
	}
	list, err := store.List(ctx)
	must(t, err)
	if len(list) != 2 {
		t.Errorf("nats.go lists %d objects, want 2", len(list))
	}
	names := js.ObjectStoreNames(ctx)
	var stores []string
	for name := range names.Name() {
		stores = append(stores, name)
	}
	if slices.Sort(stores); !slices.Equal(stores, []string{wire.Graphs, wire.Bucket("e.1")}) || names.Error() != nil {
		t.Errorf("nats.go knows object stores %v, %v", stores, names.Error())
	}

	for _, data := range [][]byte{pattern(3 << 18), none, small} { // in chunks of 128 KiB, then instead of one another
		_, err := store.PutBytes(ctx, "theirs", data)
		must(t, err)
		_, err = graphs.PutBytes(ctx, "theirs", data)
		must(t, err)
		for name, load := range map[string]func() ([]byte, error){
			"the controller": func() ([]byte, error) { return c.Load(ctx, wire.Bucket("e.1"), "theirs") },
			"the executor":   func() ([]byte, error) { return x.Load(ctx, wire.Bucket("e.1"), "theirs") },
			"a command line": func() ([]byte, error) { return client.Load(ctx, wire.Graphs, "theirs") },
		} {
			if got, err := load(); err != nil || !slices.Equal(got, data) {
				t.Errorf("%s loads %d bytes, want %d: %v", name, len(got), len(data), err)
			}
		}
	}
	must(t, c.Store(ctx, wire.Bucket("e.1"), "theirs", large)) // instead of theirs
	if got, err := store.GetBytes(ctx, "theirs"); err != nil || !slices.Equal(got, large) {
		t.Errorf("nats.go reads %d bytes, want %d: %v", len(got), len(large), err)
	}
	must(t, store.Delete(ctx, "theirs"))
	if _, err := x.Load(ctx, wire.Bucket("e.1"), "theirs"); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("Load of what nats.go has deleted: %v", err)
	}
	must(t, c.Store(ctx, wire.Bucket("e.1"), "theirs", small))
	must(t, c.Remove(ctx, wire.Bucket("e.1"), "theirs"))
	if _, err := store.GetInfo(ctx, "theirs"); !errors.Is(err, jetstream.ErrObjectNotFound) {
		t.Errorf("nats.go knows what was removed here: %v", err)
	}
	if n := inStream(t, c, "OBJ_x-e_2e1"); n != 3 {
		t.Errorf("%d messages are stored, want two infos and a chunk", n)
	}
}

// TestKeysOfNATS has the key-value stores of NATS's own client read and write keys.
func TestKeysOfNATS(t *testing.T) {
	s := listening(t)
	ctx, c, js := within(t), rule(t, s), jet(t, s)
	must(t, c.Put(ctx, wire.StatusKey("e.1"), []byte("ours")))
	store, err := js.KeyValue(ctx, "status")
	must(t, err)
	if got, err := store.Get(ctx, "e_2e1"); err != nil || string(got.Value()) != "ours" {
		t.Errorf("nats.go reads %v, %v", got, err)
	}
	_, err = store.PutString(ctx, "e_2e1", "theirs")
	must(t, err)
	if got, err := c.Get(ctx, wire.StatusKey("e.1")); err != nil || string(got) != "theirs" {
		t.Errorf("Get of what nats.go has put: %q, %v", got, err)
	}
	must(t, store.Delete(ctx, "e_2e1"))
	if _, err := c.Get(ctx, wire.StatusKey("e.1")); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("Get of what nats.go has deleted: %v", err)
	}
}

// TestDamagedObjects loads what is not an object, or not a whole one; stores another in its place, and removes it. That
// never touches another object.
func TestDamagedObjects(t *testing.T) {
	s := listening(t)
	ctx, c, client := within(t), rule(t, s), join(t, s, Client)
	b := bucket{wire.Graphs}
	data := pattern(chunkBytes + 1)
	must(t, c.Store(ctx, wire.Graphs, "good", data))
	good, err := c.objectInfo(ctx, b, "good")
	must(t, err)
	for _, test := range []struct {
		name   string
		change func(*jetstream.ObjectInfo)
		want   string
	}{
		{"no chunks", func(i *jetstream.ObjectInfo) { i.NUID = "none" }, "a part is missing: store it again"},
		{"a chunk too many", func(i *jetstream.ObjectInfo) { i.Chunks++ }, "a part is missing: store it again"},
		{"a chunk too few", func(i *jetstream.ObjectInfo) { i.Chunks-- }, "it is damaged: store it again"},
		{"a byte too many", func(i *jetstream.ObjectInfo) { i.Size++ }, "it is damaged: store it again"},
		{"a byte too few", func(i *jetstream.ObjectInfo) { i.Size-- }, "it is damaged: store it again"},
		{"another digest", func(i *jetstream.ObjectInfo) { i.Digest = strings.Replace(i.Digest, "=", "=A", 1) },
			"it is damaged"},
		{"no digest", func(i *jetstream.ObjectInfo) { i.Digest = "" }, "it is damaged"},
		{"no id", func(i *jetstream.ObjectInfo) { i.NUID = "" }, "its info is damaged"},
		{"a pattern", func(i *jetstream.ObjectInfo) { i.NUID = "*" }, "its info is damaged"},
		{"all below", func(i *jetstream.ObjectInfo) { i.NUID = ">" }, "its info is damaged"},
		{"more chunks than bytes", func(i *jetstream.ObjectInfo) { i.Chunks, i.Size = 1<<31, 1 },
			"its info is damaged"},
		{"too large", func(i *jetstream.ObjectInfo) { i.Size = 1 << 60 }, "over the limit of"},
		{"a link", func(i *jetstream.ObjectInfo) {
			i.Opts = &jetstream.ObjectMetaOptions{Link: &jetstream.ObjectLink{Bucket: "x"}}
		}, "it is a link"},
		{"deleted", func(i *jetstream.ObjectInfo) { i.Deleted = true }, "not found"},
		{"nothing", nil, "its info is damaged"},
	} {
		for _, then := range []string{"store", "remove"} {
			info, text := good, []byte("x")
			if test.change != nil {
				test.change(&info)
				text, err = json.Marshal(info)
				must(t, err)
			}
			must(t, c.store(ctx, b.stream(), &nats.Msg{Subject: b.info("bad").subject, Header: replaceHeaders(),
				Data: text}))
			if _, err := client.Load(ctx, wire.Graphs, "bad"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
			if then == "store" && info.NUID != good.NUID { // else it is an object that has the chunks of another
				must(t, c.Store(ctx, wire.Graphs, "bad", []byte("new")))
				if got, err := client.Load(ctx, wire.Graphs, "bad"); string(got) != "new" {
					t.Errorf("%s: %q was stored instead, %v", test.name, got, err)
				}
			}
			if info.NUID != good.NUID {
				must(t, c.Remove(ctx, wire.Graphs, "bad"))
			}
		}
		if got, err := c.Load(ctx, wire.Graphs, "good"); err != nil || !slices.Equal(got, data) {
			t.Fatalf("%s: another object has %d bytes, want %d: %v", test.name, len(got), len(data), err)
		}
	}
}

// TestLongNames has buckets of executors whose names are as long as they may be, and end differently.
func TestLongNames(t *testing.T) {
	s := listening(t)
	ctx, c := within(t), rule(t, s)
	for _, last := range []string{"1", "2"} {
		name := strings.Repeat("ä", 63) + last
		must(t, wire.CheckName(name))
		must(t, c.Store(ctx, wire.Bucket(name), "layout", []byte(last)))
		x := join(t, s, Executor(name))
		if got, err := x.Load(ctx, wire.Bucket(name), "layout"); string(got) != last {
			t.Errorf("executor %s loads %q, %v", last, got, err)
		}
	}
}

// TestHalfMadeBucket starts a server where the folder of a bucket is there and nothing in it, as a kill at the wrong
// moment leaves it. The server counts as healthy, so it is not started again for that, and the bucket is made when it
// is used.
func TestHalfMadeBucket(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Options{Dir: dir})
	ctx := within(t)
	must(t, rule(t, s).Store(ctx, wire.Bucket("whole"), "layout", []byte("1")))
	s.Close()
	whole, err := filepath.Glob(filepath.Join(dir, "nats", "*", "*", "streams", "OBJ_"+wire.Bucket("whole")))
	if err != nil || len(whole) != 1 {
		t.Fatalf("the stream's folder is %v: %v", whole, err)
	}
	must(t, os.Mkdir(filepath.Join(filepath.Dir(whole[0]), "OBJ_"+wire.Bucket("half")), 0o700))
	s = start(t, Options{Dir: dir})
	if err := s.healthy(); err != nil {
		t.Errorf("a folder without a stream: %v", err)
	}
	c := rule(t, s)
	must(t, c.Store(ctx, wire.Bucket("half"), "layout", []byte("2")))
	for bucket, want := range map[string]string{"whole": "1", "half": "2"} {
		if got, err := c.Load(ctx, wire.Bucket(bucket), "layout"); string(got) != want {
			t.Errorf("bucket %s has %q, want %q: %v", bucket, got, want, err)
		}
	}
}
