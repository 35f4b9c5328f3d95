package trace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func newRand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(1, stream)) }

func TestImport(t *testing.T) {
	want := Trace{{Malloc, "0x10", 4}, {Free, "0x10", 0}}
	for _, text := range []string{
		"malloc 0x10 4\nfree 0x10",
		"# a,b\n\ntrace 1\nmalloc 0x10 4\nfree 0x10",
		"\uFEFFmalloc 0x10 4 # a,b\nfree 0x10",
		"event,block,size\nmalloc,0x10,4\nfree,0x10,\n",
		"\uFEFF# of a run\nsize,block,event\n4,0x10,malloc\n,0x10,free\n",
		" \n{\"device_traces\":[[{\"action\":\"alloc\",\"addr\":16,\"size\":4},{\"action\":\"free_completed\"," +
			"\"addr\":16,\"size\":4}]]}",
	} {
		got, err := Import(iotest.OneByteReader(strings.NewReader(text)), "t", ImportOptions{})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(&Record{Trace: want}, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestImportRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"\x80\x04\x95", "t is a pickle, not JSON"},
		{"\x1f\x8b\x08", "t is compressed; unpack it with gunzip first"},
		{"id,lower,upper,size\n1,2,3,4\n", "t:1:1: the header has no column event"},
		{"hello\n", `t:1:1: "hello" is no event; it takes malloc BLOCK SIZE`},
	} {
		_, err := Import(strings.NewReader(c.text), "t", ImportOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	broken := errors.New("broken")
	for _, text := range []string{"", "malloc a 1\n", "event,block,size\n", "{", strings.Repeat("#\n", longest)} {
		if _, err := Import(iotest.ErrReader(broken), text, ImportOptions{}); !errors.Is(err, broken) {
			t.Errorf("a file that cannot be read: %v", err)
		}
	}
}

// What is imported is a trace: it can be written and read again, and everything can be done with it.
func FuzzImport(f *testing.F) {
	for _, text := range []string{
		"trace 1\nmalloc a 4\nwrite a\nfree a\nmalloc b 4\nwrite b\nfree b\n",
		"event,block,size\nmalloc,a,4\nfree,a,\nmalloc,a,4\nfree,a,\n",
		`{"segments":[{"device":0,"address":16,"blocks":[{"size":4,"state":"active_allocated"}]}],` +
			`"device_traces":[[{"action":"alloc","addr":32,"size":4},{"action":"free_completed","addr":32,"size":4}]]}`,
		"\x80\x04", "[[[[", "{\"a\":",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		record, err := Import(strings.NewReader(string(text)), "t", ImportOptions{})
		if err != nil {
			return
		}
		checkAnswer(t, fmt.Sprintf("%q", text), record)
		got := record.Trace
		var b strings.Builder
		if _, err := got.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Import(strings.NewReader(b.String()), "t", ImportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again.Trace); diff != "" {
			t.Fatal(diff)
		}
		it, err := Find(got, record.Before)
		if err != nil {
			it = whole(got, record.Before)
		}
		if _, err := LifetimesOf(got, it, LifetimeOptions{Tighten: true}); err != nil {
			t.Fatal(err)
		}
	})
}
