package graph

import "testing"

func TestBytesString(t *testing.T) {
	for b, want := range map[Bytes]string{
		0: "0B", 1: "1B", 1023: "1023B", KiB: "1KiB", KiB + KiB/2: "1.5KiB",
		100 * MiB: "100MiB", GiB + GiB/4: "1.25GiB", GiB + GiB/3: "1.33GiB", 2048 * GiB: "2048GiB", -3 * MiB: "-3MiB", -7: "-7B",
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
