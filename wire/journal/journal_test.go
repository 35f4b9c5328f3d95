package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/internal/long"
	"tensile/wire"
	"tensile/wire/bustest"
)

// office is a bus and a folder with its journal.
type office struct {
	t     *testing.T
	dir   string
	bus   *bustest.Bus
	lines []string // that the newest journal has logged

	journal *Journal
	follow  wire.Bus
}

func newOffice(t *testing.T) *office {
	o := &office{t: t, dir: t.TempDir(), bus: bustest.New()}
	t.Cleanup(func() { o.bus.Close() })
	return o
}

// begin starts a controller's life.
func (o *office) begin() {
	o.t.Helper()
	o.lines = nil
	var err error
	o.journal, err = Open(o.dir, func(line string) { o.lines = append(o.lines, line) })
	must(o.t, err)
	o.follow, err = o.journal.Follow(o.t.Context(), o.bus, wire.TenantsObject)
	must(o.t, err)
	o.t.Cleanup(func() { o.journal.Close() })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// orders is one of the values of a key.
func orders(job string, seq int64) []byte {
	return wire.Encode(wire.Orders{Executor: job, Number: seq, Jobs: []wire.Assignment{}, Life: "a life"})
}

// has is what a bus has under the keys of orders.
func (o *office) has() map[string]string {
	o.t.Helper()
	has := make(map[string]string)
	stop, err := o.bus.Watch(o.t.Context(), wire.OrdersKey("*"), func(key string, value []byte) {
		if value != nil {
			has[key] = string(value)
		}
	})
	must(o.t, err)
	stop()
	return has
}

// wants compares lines, of which each is to have a text.
func (o *office) wants(lines ...string) {
	o.t.Helper()
	if !slices.EqualFunc(o.lines, lines, strings.Contains) {
		o.t.Errorf("logged was %q, want %q", o.lines, lines)
	}
}

// Values that the bus has lost, that have become older ones or cannot be read are put back and told; so are settings.
// What is newer there counts, and what was deleted stays so.
func TestMends(t *testing.T) {
	o := newOffice(t)
	ctx := t.Context()
	o.begin()
	put := func(job string, seq int64) { must(t, o.follow.Put(ctx, wire.OrdersKey(job), orders(job, seq))) }
	for i, job := range []string{"a", "b", "c", "d", "e"} {
		put(job, int64(i))
	}
	early := o.has()
	put("b", 7)
	must(t, o.follow.Delete(ctx, wire.OrdersKey("e")))
	tenants := wire.Encode(wire.Tenants{Shares: map[string]int{"ada": 3}})
	must(t, o.follow.Store(ctx, wire.Administration, wire.TenantsObject, tenants))
	put("d", 8)
	put("z", 9) // what is written last may not have been stored
	want := o.has()
	o.begin()
	o.wants()

	must(t, o.bus.Delete(ctx, wire.OrdersKey("a")))
	must(t, o.bus.Put(ctx, wire.OrdersKey("b"), []byte(early[wire.OrdersKey("b")])))
	must(t, o.bus.Put(ctx, wire.OrdersKey("c"), []byte(early[wire.OrdersKey("c")])[:40]))
	must(t, o.bus.Put(ctx, wire.OrdersKey("e"), []byte(early[wire.OrdersKey("e")])))
	must(t, o.bus.Remove(ctx, wire.Administration, wire.TenantsObject))
	o.begin()
	o.wants("values were missing, of the orders of executor a, settings/tenants: they",
		"values could not be read, of the orders of executor c: they",
		"values were older ones, of the orders of executor b: they are put back from the journal",
		"values had been deleted, of the orders of executor e: they are deleted again")
	if has := o.has(); !maps.Equal(has, want) {
		t.Errorf("the bus has %v, want %v", has, want)
	}
	data, err := o.bus.Load(ctx, wire.Administration, wire.TenantsObject)
	must(t, err)
	if got, err := wire.DecodeAs[wire.Tenants](data); err != nil || got.Shares["ada"] != 3 {
		t.Errorf("the tenants are %+v: %v", got, err)
	}

	must(t, o.bus.Delete(ctx, wire.OrdersKey("z"))) // as if it had never been stored
	o.begin()
	o.wants()
	if has := o.has(); !maps.Equal(has, want) {
		t.Errorf("the bus has %v, want %v", has, want)
	}

	newer := wire.Numbered(orders("a", 77), 1000)
	must(t, o.bus.Put(ctx, wire.OrdersKey("a"), newer))
	o.begin()
	o.wants("did not have the newest 1 values")
	put("a", 78)
	if n, err := wire.NumberOf([]byte(o.has()[wire.OrdersKey("a")])); n != 1001 {
		t.Errorf("the next number is %d: %v", n, err)
	}
}

// What cannot be written to the journal is not stored.
func TestJournalFirst(t *testing.T) {
	o := newOffice(t)
	o.begin()
	must(t, o.journal.file.Close())
	if err := o.follow.Put(t.Context(), wire.OrdersKey("a"), orders("a", 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a value was stored: %v", err)
	}
	if has := o.has(); len(has) > 0 {
		t.Errorf("the bus has %v", has)
	}
	if !strings.HasPrefix(o.journal.Trouble(), "the controller's state cannot be written: ") || len(o.lines) != 1 {
		t.Errorf("the trouble is %q, and logged was %q", o.journal.Trouble(), o.lines)
	}
}

// Whatever becomes of the bus, a whole journal puts all of it back. Whatever becomes of the journal's newer file, a
// whole bus stays as it is, but for what was deleted if nothing else is left there, or if the journal has lost its end
// and nothing was stored in that; and of what both have lost some older value is there, or none.
func TestDamage(t *testing.T) {
	for seed := range long.Rounds(30, 1000) {
		rng := rand.New(rand.NewPCG(seed, 38))
		o := newOffice(t)
		o.begin()
		ctx := t.Context()
		ever := make(map[string][]string) // all values of a key
		var truth map[string]string
		key := func() (job, key string) { job = fmt.Sprint("j", rng.IntN(6)); return job, wire.OrdersKey(job) }
		for life := range 3 {
			for step := range rng.IntN(20) {
				job, k := key()
				if rng.IntN(5) == 0 {
					must(t, o.follow.Delete(ctx, k))
				} else {
					must(t, o.follow.Put(ctx, k, orders(job, int64(100*life+step))))
					ever[k] = append(ever[k], o.has()[k])
				}
				if rng.IntN(10) == 0 {
					must(t, o.journal.renew())
				}
			}
			truth = o.has()
			if life < 2 {
				o.begin()
				o.wants()
			}
		}
		hurtBus, hurtJournal := rng.IntN(3) > 0, rng.IntN(3) > 0
		if hurtBus {
			for range 1 + rng.IntN(4) {
				_, k := key()
				switch values := ever[k]; {
				case len(values) == 0:
				case rng.IntN(3) == 0:
					must(t, o.bus.Delete(ctx, k))
				case rng.IntN(2) == 0:
					must(t, o.bus.Put(ctx, k, []byte(values[rng.IntN(len(values))])))
				case truth[k] != "": // else it stays, and refuses the start
					v := []byte(values[len(values)-1])
					must(t, o.bus.Put(ctx, k, v[:rng.IntN(len(v))]))
				}
			}
		}
		cut := false
		if hurtJournal {
			cut = hurt(t, rng, filepath.Join(o.dir, FileName))
		}
		spoiled := o.has()
		o.begin()
		has := o.has()
		switch {
		case !hurtJournal && !maps.Equal(has, truth):
			t.Errorf("seed %d: a whole journal leaves %v, want %v: %q", seed, has, truth, o.lines)
		case hurtJournal && !hurtBus:
			extra := len(truth) == 0 || cut && !slices.ContainsFunc(o.lines, func(line string) bool {
				return strings.Contains(line, "did not have the newest")
			})
			for k, v := range has {
				if truth[k] != v && !(extra && truth[k] == "") {
					t.Errorf("seed %d: a whole bus has %s at %s, want %q: %q", seed, v, k, truth[k], o.lines)
				}
			}
			for k, v := range truth {
				if has[k] != v {
					t.Errorf("seed %d: a whole bus has %q at %s, want %s: %q", seed, has[k], k, v, o.lines)
				}
			}
		}
		for k, v := range has {
			if !slices.Contains(ever[k], v) && spoiled[k] != v {
				t.Errorf("seed %d: at %s is %s, which it never was", seed, k, v)
			}
		}
		o.begin()
		o.wants()
		if t.Failed() {
			return
		}
	}
}

// hurt damages a file as disks do, and reports whether it has lost its end.
func hurt(t *testing.T, rng *rand.Rand, path string) bool {
	t.Helper()
	whole, err := os.ReadFile(path)
	must(t, err)
	text := bytes.Clone(whole)
	switch at := rng.IntN(len(text)); rng.IntN(5) {
	case 0:
		must(t, os.Remove(path))
		return false
	case 1:
		text = text[:at]
	case 2:
		text[at] ^= byte(1 + rng.IntN(255))
	case 3:
		end := at + rng.IntN(len(text)-at)
		copy(text[at:end], make([]byte, end-at))
	case 4: // some lines are missing
		lines := bytes.SplitAfter(text, []byte("\n"))
		first := rng.IntN(len(lines))
		text = bytes.Join(slices.Delete(lines, first, first+rng.IntN(len(lines)-first)), nil)
	}
	must(t, os.WriteFile(path, text, 0o600))
	return bytes.HasPrefix(whole, text) || !bytes.HasSuffix(text, []byte("\n"))
}

// A file in which a line is cut, or from which one is missing, is told of; one that ends in half a line is not.
func TestLostLines(t *testing.T) {
	o := newOffice(t)
	o.begin()
	for i := range 5 {
		must(t, o.follow.Put(t.Context(), wire.OrdersKey(fmt.Sprint(i)), orders(fmt.Sprint(i), 1)))
	}
	path := filepath.Join(o.dir, FileName)
	whole, err := os.ReadFile(path)
	must(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for name, test := range map[string]struct {
		text []byte
		lost int
	}{
		"whole":       {whole, 0},
		"half a line": {whole[:len(whole)-5], 0},
		"a line":      {bytes.Join(slices.Delete(slices.Clone(lines), 2, 3), nil), 1},
		"the head":    {bytes.Join(lines[1:], nil), 1},
		"empty":       {nil, 1},
		"a flip":      {bytes.Replace(whole, []byte("a life"), []byte("a lifo"), 1), 1},
	} {
		must(t, os.WriteFile(path, test.text, 0o600))
		c, err := read(o.dir)
		if err != nil || c.lost != test.lost {
			t.Errorf("%s: %d lines are lost, want %d: %v", name, c.lost, test.lost, err)
		}
		if _, _, err := Read(o.dir); (err != nil) != (test.lost > 0) {
			t.Errorf("%s: Read says %v", name, err)
		}
	}
}

// The file is bounded by what is in force, however much is written.
func TestBounded(t *testing.T) {
	o := newOffice(t)
	o.begin()
	largest := int64(0)
	for i := range 6000 {
		must(t, o.follow.Put(context.Background(), wire.OrdersKey("a"),
			wire.Encode(wire.Orders{Executor: "a", Number: int64(i), Life: strings.Repeat("x", 1000)})))
		largest = max(largest, o.journal.size)
	}
	if largest < spare || largest > spare+3*2000 {
		t.Errorf("the file had up to %d bytes", largest)
	}
	if info, err := os.Stat(filepath.Join(o.dir, FileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v: %v", info, err)
	}
}

// A write beside a thousand jobs, with what new files take now and then.
func BenchmarkPut(b *testing.B) {
	bus := bustest.New()
	defer bus.Close()
	j, err := Open(b.TempDir(), func(line string) { b.Log(line) })
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	follow, err := j.Follow(b.Context(), bus)
	if err != nil {
		b.Fatal(err)
	}
	value := func(i int) []byte {
		return wire.Encode(wire.Orders{Executor: "a", Number: int64(i), Life: strings.Repeat("x", 1000)})
	}
	for i := range 1000 {
		if err := follow.Put(b.Context(), wire.OrdersKey(fmt.Sprint("x", i)), value(0)); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		if err := follow.Put(b.Context(), wire.OrdersKey(fmt.Sprint("x", i%1000)), value(i)); err != nil {
			b.Fatal(err)
		}
	}
}
