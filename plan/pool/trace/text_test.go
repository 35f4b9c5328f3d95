package trace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	const text = "# recorded\n\ntrace 1\r\n malloc\t0x7f 4096 # x\nwrite 0x7f\nread 0x7f # y\nfree 0x7f\nmalloc a#b 0"
	want := Trace{{Malloc, "0x7f", 4096}, {Write, "0x7f", 0}, {Read, "0x7f", 0}, {Free, "0x7f", 0}, {Malloc, "a#b", 0}}
	got, err := parse(strings.NewReader(text), "t")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err := parse(strings.NewReader(""), "t"); err != nil || len(got) != 0 {
		t.Errorf("an empty file: %v, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"trace 2", "t:1:7: the header of the only version"},
		{"trace", "t:1:1: the header of the only version"},
		{"malloc a 1\ntrace 1", `t:2:1: "trace" is no event`},
		{"\nmaloc a 1", `t:2:1: "maloc" is no event`},
		{"malloc a", "t:1:8: malloc takes a block and its size"},
		{"malloc a 1 2", "t:1:12: malloc takes a block and its size"},
		{"malloc a 1\n\tfree", "t:2:2: free takes a block, nothing else"},
		{"malloc a 1\nfree a 1", "t:2:8: free takes a block, nothing else"},
		{"malloc a -1", `t:1:10: size "-1" is not a number`},
		{"malloc a 1e3", `t:1:10: size "1e3" is not a number`},
		{"malloc a 9223372036854775808", "t:1:10: size"},
		{"malloc a 9223372036854775807\n malloc b 1", `t:2:9: malloc of block "b": the blocks add up`},
		{"read a", `t:1:6: read of block "a", which is not there`},
		{"malloc a 1\nfree a\nwrite a", `t:3:7: write of block "a", which is not there`},
		{"malloc a 1\nmalloc a 2", `t:2:8: malloc of block "a", which is there already`},
		{"malloc \xff 1", "t:1:8: block id"},
		{"malloc a\x00b 1", "t:1:8: block id"},
		{"malloc a" + strings.Repeat("b", longest) + " 1", "t:1:1: the line is longer than 65536 bytes"},
	} {
		_, err := parse(strings.NewReader(c.text), "t")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
			len(err.Error()) > 200 {
			t.Errorf("%.40q: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestWriteTo(t *testing.T) {
	for seed := range uint64(500) {
		want := randomTrace(rand.New(rand.NewPCG(seed, 12)))
		var b strings.Builder
		n, err := want.WriteTo(&b)
		if err != nil || n != int64(b.Len()) {
			t.Fatalf("seed %d: %d of %d bytes, %v", seed, n, b.Len(), err)
		}
		got, err := parse(strings.NewReader(b.String()), "t")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
	for _, bad := range []Event{{Malloc, "", 1}, {Malloc, "a b", 1}, {Malloc, "#", 1}, {Malloc, "a", -1},
		{Free, "a", 0}, {9, "a", 0}} {
		if _, err := (Trace{bad}).WriteTo(&strings.Builder{}); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

func ExampleTrace_WriteTo() {
	var b strings.Builder
	Trace{{Malloc, "a", 4096}, {Write, "a", 0}, {Free, "a", 0}}.WriteTo(&b)
	fmt.Print(b.String())
	// Output:
	// trace 1
	// malloc a 4096
	// write a
	// free a
}
