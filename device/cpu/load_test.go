package cpu

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	got, err := parseStat(strings.NewReader("cpu  100 20 30 400 50 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"))
	if want := (usage{all: 621 * tick, busy: 151 * tick}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{"", "cpu 1 2 three\n", "intr 1 2\n"} {
		if _, err := parseStat(strings.NewReader(text)); !errors.Is(err, errNoLoad) {
			t.Errorf("%q: %v, want ErrNoLoad", text, err)
		}
	}
}

func TestUsageUntil(t *testing.T) {
	s := time.Second
	for _, test := range []struct {
		from, to usage
		want     float64
	}{
		// nothing to compare with
		{usage{}, usage{all: 10 * s, busy: 5 * s}, 0},
		// of two processors, for five seconds
		{usage{all: 10 * s}, usage{all: 20 * s, busy: 8 * s, own: 3 * s}, 0.5},
		{usage{all: 10 * s, busy: 2 * s, own: s}, usage{all: 20 * s, busy: 4 * s, own: 4 * s}, 0}, // ours alone
		{usage{all: 10 * s}, usage{all: 20 * s, busy: 10 * s}, 1},
		{usage{all: 10 * s, busy: 4 * s}, usage{all: 10 * s, busy: 4 * s}, 0}, // no time has passed
	} {
		if got := test.from.othersShare(test.to); got != test.want {
			t.Errorf("from %+v to %+v: %v, want %v", test.from, test.to, got, test.want)
		}
	}
}

// A reading of this machine is a share.
func TestMeter(t *testing.T) {
	var m Meter
	for range 3 {
		load, err := m.Load()
		if errors.Is(err, errNoLoad) {
			t.Skip("this system does not tell its load: ", err)
		}
		if err != nil || load < 0 || load > 1 {
			t.Fatalf("got %v, %v", load, err)
		}
	}
}
