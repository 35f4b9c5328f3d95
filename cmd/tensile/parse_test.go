package main

import (
	"testing"

	"tensile/cost"
	"tensile/graph"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]graph.Bytes{
		"1": 1, "1B": 1, "1024": 1024, "1e3": 1000, "512MiB": 512 << 20, "2GB": 2e9, "0.5KiB": 512, "1.5KB": 1500,
		"3TB": 3e12, "1TiB": 1 << 40, "7GiB": 7 << 30, "8KB": 8000, "9MB": 9e6,
	} {
		if got, err := parseBytes("--budget", text); got != want || err != nil {
			t.Errorf("parseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "B", "MiB", "0", "0.5B", "-1", "-1GiB", "nan", "inf", "infGB", "1 MiB", "1mib", "12XB", "1e30", "0x", "1,5GB"} {
		got, err := parseBytes("--budget", text)
		if want := `--budget "` + text + `": give a size such as 512MiB or 2GB`; err == nil || err.Error() != want {
			t.Errorf("parseBytes(%q) = %d, %v; want error %s", text, got, err, want)
		}
	}
}

func TestParsePercent(t *testing.T) {
	for text, want := range map[string]float64{"60%": 60, "0.5%": 0.5, "1000%": 1000} {
		if got, ok, err := parsePercent(text); got != want || !ok || err != nil {
			t.Errorf("parsePercent(%q) = %v, %v, %v; want %v", text, got, ok, err, want)
		}
	}
	for _, text := range []string{"%", "0%", "-5%", "1001%", "nan%", "inf%", "x%", "6 0%"} {
		if got, ok, err := parsePercent(text); !ok || err == nil {
			t.Errorf("parsePercent(%q) = %v, %v, %v; want an error", text, got, ok, err)
		}
	}
	if _, ok, err := parsePercent("60"); ok || err != nil {
		t.Errorf("parsePercent of what is no percentage: %v, %v", ok, err)
	}
}

func TestParseLink(t *testing.T) {
	there, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	half := there
	half.Compute /= 2
	for _, test := range []struct {
		text string
		here cost.Facts
		want cost.BytesPerSecond
	}{
		{"", there, 0},
		{"none", there, 0},
		{"500MB/s", cost.Facts{}, 500e6},
		{"1GiB/s", there, 1 << 30},
		{"a6000", there, there.Out.Rate},
		{"a6000", half, there.Out.Rate / 2}, // half the arithmetic deserves half the link
	} {
		got, err := parseLink(test.text, test.here)
		if relative := float64(got.rate-test.want) / max(1, float64(test.want)); err != nil || relative > 1e-9 || relative < -1e-9 {
			t.Errorf("parseLink(%q) = %v, %v; want %v", test.text, got.rate, err, test.want)
		}
		if (got.why == "") != (got.rate == 0) {
			t.Errorf("parseLink(%q): rate %v, why %q", test.text, got.rate, got.why)
		}
	}
	for _, text := range []string{"fast", "500MB", "0/s", "-1GB/s", "/s", "x100", "50%"} {
		if got, err := parseLink(text, there); err == nil {
			t.Errorf("parseLink(%q) = %v, want an error", text, got)
		}
	}
}
