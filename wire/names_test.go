package wire

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{OrdersKey("e1"), "orders.e1"},
		{StatusKey("*"), "status.*"},
		{RecordKey("lenet.1"), "record.lenet_2e1"},
		{RecordKey("a_2e1"), "record.a_5f2e1"}, // no two names have one key
		{ReportSubject("e 1", "a>b"), "report.e_201.a_3eb"},
		{LogSubject("*", "a*"), "log.*.a_2a"},
		{Bucket("e.1"), "x-e_2e1"},
		{GraphObject("0123"), "graph-0123"},
		{LayoutObject("ä", 7, 3), "layout-_c3_a4-7-3"},
	} {
		if test.got != test.want {
			t.Errorf("%s, want %s", test.got, test.want)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "lenet.1", "resnet:3,4", "ä", "A b", strings.Repeat("a", maxName)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "*", "a/b", `a\b`, "\x00", "a\n", "\xff", strings.Repeat("a", maxName+1)} {
		if err := CheckName(name); err == nil || !strings.Contains(err.Error(), "a name is 1 to 128 bytes") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
