package main

import (
	"slices"
	"testing"

	"tensile/graph/cost"
)

// The error of an amount names the flag.
func TestParseBytes(t *testing.T) {
	if got, err := parseBytes("--budget", "2GB"); got != 2e9 || err != nil {
		t.Errorf("parseBytes = %d, %v", got, err)
	}
	_, err := parseBytes("--budget", "8192TiB")
	if err == nil || err.Error() != "--budget 8192TiB: give at most 4194304GiB" {
		t.Errorf("parseBytes = %v", err)
	}
	_, err = parseBytes("--budget", "1mib")
	if want := `--budget "1mib": give a size such as 512MiB or 2GB`; err == nil || err.Error() != want {
		t.Errorf("parseBytes = %v, want %s", err, want)
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
		if relative := float64(got.rate-test.want) / max(1, float64(test.want)); err != nil || relative > 1e-9 ||
			relative < -1e-9 {
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

func TestParsePerModel(t *testing.T) {
	for _, test := range []struct {
		text   string
		models int
		want   []int
	}{
		{"", 2, nil}, {"4", 1, []int{4}}, {"4", 3, []int{4, 4, 4}}, {"1,1000", 2, []int{1, 1000}},
		{"3,2,1", 3, []int{3, 2, 1}},
	} {
		if got, err := parsePerModel("--priority", test.text, test.models, priorityValue); err != nil ||
			!slices.Equal(got, test.want) {
			t.Errorf("priorities %q of %d: %v, %v; want %v", test.text, test.models, got, err, test.want)
		}
	}
	if got, err := parsePerModel("--max-swap-rate", "0,0.1,1", 3, swapRateValue); err != nil ||
		!slices.Equal(got, []float64{0, 0.1, 1}) {
		t.Errorf("rates: %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"0":     `--priority "0": "0" is wrong: give whole numbers from 1 to 1000, one per MODEL or one for all`,
		"1,x":   `--priority "1,x": "x" is wrong: give whole numbers from 1 to 1000, one per MODEL or one for all`,
		"1,":    `--priority "1,": "" is wrong: give whole numbers from 1 to 1000, one per MODEL or one for all`,
		"1,2,3": `--priority "1,2,3": 3 values for 2 MODELs: give one per MODEL or one for all`,
	} {
		if got, err := parsePerModel("--priority", text, 2, priorityValue); err == nil || err.Error() != want {
			t.Errorf("priorities %q: %v, %v; want error %s", text, got, err, want)
		}
	}
	for _, text := range []string{"1001", "-1", "1.5"} {
		if got, err := parsePerModel("--priority", text, 1, priorityValue); err == nil {
			t.Errorf("priority %q: %v, want an error", text, got)
		}
	}
	for _, text := range []string{"1.1", "-0.1", "nan", "inf", "10%"} {
		if got, err := parsePerModel("--max-swap-rate", text, 1, swapRateValue); err == nil {
			t.Errorf("rate %q: %v, want an error", text, got)
		}
	}
}
