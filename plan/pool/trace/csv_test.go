package trace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCSV(t *testing.T) {
	want := Trace{{Malloc, "0x7f", 4096}, {Write, "0x7f", 0}, {Read, "0x7f", 0}, {Free, "0x7f", 0}}
	for _, text := range []string{
		"event,block,size\nmalloc,0x7f,4096\nwrite,0x7f,\nread,0x7f,0\nfree,0x7f,4096\n",
		"# of a run\nTime, Bytes ,ADDR,action\n1,4096,0x7f,Alloc\n2,,0x7f,WRITE\n3,,\"0x7f\",read\r\n4,x, 0x7f ,free",
	} {
		got, err := parseCSV(strings.NewReader(text), "t")
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestParseCSVRefuses(t *testing.T) {
	const head = "event,block,size\n"
	for _, c := range []struct{ text, want string }{
		{"", "t:1:1: the file is empty"},
		{"event,size\n", "t:1:1: the header has no column block"},
		{head + "malloc,a,1\nmalloc,b\n", "t:3:1: wrong number of fields"},
		{head + "malloc,a,\"1\n", "t:2:13: extraneous or missing"},
		{head + "grow,a,1\n", `t:2:1: "grow" is no event`},
		{head + "malloc,a,\n", `t:2:10: size "" is not a number`},
		{head + "malloc,a,1.5\n", `t:2:10: size "1.5" is not a number`},
		{head + "malloc,a,1\nmalloc,a,1\n", `t:3:8: malloc of block "a", which is there already`},
		{head + "malloc,a b,1\n", `t:2:8: block id "a b"`},
		{head + "free,,1\n", "t:2:6: block id"},
	} {
		_, err := parseCSV(strings.NewReader(c.text), "t")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}
