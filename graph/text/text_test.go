package text

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tensile/graph"
)

func TestBytes(t *testing.T) {
	for b, want := range map[graph.Bytes]string{
		0:                "0.00KiB",
		600:              "0.59KiB",
		63 * graph.MiB:   "63.00MiB",
		-2 * graph.MiB:   "-2.00MiB",
		1288490189:       "1.20GiB",
		graph.MiB - 1024: "1023.00KiB",
	} {
		if got := Bytes(b); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", b, got, want)
		}
	}
}

func TestSameUnit(t *testing.T) {
	for _, test := range []struct {
		amounts []graph.Bytes
		want    string // of 1 GiB
	}{
		{nil, "1.00GiB"},
		{[]graph.Bytes{0, 2 * graph.GiB, graph.GiB}, "1.00GiB"},
		{[]graph.Bytes{2 * graph.GiB, 1000 * graph.MiB}, "1.00GiB"},
		{[]graph.Bytes{2 * graph.GiB, 500 * graph.MiB}, "1024.00MiB"},
		{[]graph.Bytes{2 * graph.GiB, 100 * graph.KiB}, "1024.00MiB"},
		{[]graph.Bytes{2 * graph.MiB, 100 * graph.KiB}, "1048576.00KiB"},
	} {
		if got := SameUnit(test.amounts...)(graph.GiB); got != test.want {
			t.Errorf("beside %v 1 GiB is %s, want %s", test.amounts, got, test.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                      "0s",
		999:                    "999ns",
		884607:                 "885µs",
		76410734:               "76.4ms",
		1559294595:             "1.56s",
		-1559294595:            "-1.56s",
		99999999999:            "1m40s",
		62*time.Second + 34e7:  "1m2.3s",
		144*time.Second + 51e7: "2m25s",
	} {
		if got := Duration(d).String(); got != want {
			t.Errorf("Duration(%d) = %s, want %s", d, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0.02: "2 %", 0.134: "13 %", 1.5: "150 %", 0.004: "0.4 %", 0.0002: "0 %", -0.0002: "0 %", -0.03: "-3 %",
		0.00951: "1 %",
	} {
		if got := Percent(share); got != want {
			t.Errorf("Percent(%v) = %s, want %s", share, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := Table(&out, [][]string{{"JOB", "TIME", "WHY"}, {"first", "885µs", ""}, {"é", "1s"}}); err != nil {
		t.Fatal(err)
	}
	if want := "JOB     TIME  WHY\nfirst  885µs\né         1s\n"; out.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", out.String(), want)
	}
	if err := Table(full{}, [][]string{{"JOB"}}); !errors.Is(err, errFull) {
		t.Errorf("Table to a full disk: %v", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestCount(t *testing.T) {
	for n, want := range []string{"0 jobs", "1 job", "2 jobs"} {
		if got := Count(n, "job"); got != want {
			t.Errorf("Count(%d) is %q, want %q", n, got, want)
		}
	}
}
