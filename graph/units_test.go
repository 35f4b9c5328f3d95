package graph

import "testing"

func TestBytesString(t *testing.T) {
	for b, want := range map[Bytes]string{
		0: "0B", 1: "1B", 1023: "1023B", KiB: "1KiB", KiB + KiB/2: "1.5KiB",
		100 * MiB: "100MiB", GiB + GiB/4: "1.25GiB", GiB + GiB/3: "1.33GiB", 2048 * GiB: "2048GiB", -3 * MiB: "-3MiB",
		-7: "-7B",
	} {
		if got := b.String(); got != want {
			t.Errorf("%d bytes print as %s, want %s", int64(b), got, want)
		}
	}
}

func TestShape(t *testing.T) {
	for _, test := range []struct {
		shape    Shape
		elements int
	}{{Shape{}, 1}, {Shape{7}, 7}, {Shape{2, 3, 4, 5}, 120}} {
		if got := test.shape.Elements(); got != test.elements || test.shape.Bytes() != Bytes(4*test.elements) {
			t.Errorf("%v has %d elements in %d bytes, want %d", test.shape, got, test.shape.Bytes(), test.elements)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"1": 1, "1B": 1, "1024": 1024, "1e3": 1000, "512MiB": 512 << 20, "2GB": 2e9, "0.5KiB": 512, "1.5KB": 1500,
		"3TB": 3e12, "1TiB": 1 << 40, "7GiB": 7 << 30, "8KB": 8000, "9MB": 9e6,
	} {
		if got, err := ParseBytes(text); got != want || err != nil {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "B", "MiB", "0", "0.5B", "-1", "-1GiB", "nan", "inf", "infGB", "1 MiB", "1mib",
		"12XB", "1e30", "0x", "1,5GB"} {
		got, err := ParseBytes(text)
		if want := `"` + text + `": give a size such as 512MiB or 2GB`; err == nil || err.Error() != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want error %s", text, got, err, want)
		}
	}
	// What String prints without rounding is read as the same.
	for _, b := range []Bytes{1, 1023, KiB, 3 * MiB / 2, 7 * GiB, 5000 * GiB} {
		if got, err := ParseBytes(b.String()); got != b || err != nil {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", b, got, err, b)
		}
	}
}
