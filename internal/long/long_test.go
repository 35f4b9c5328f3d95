package long

import "testing"

// The flag turns on full length without a value, and a number of rounds with one.
func TestFlag(t *testing.T) {
	defer func(was setting) { length = was }(length)
	for _, test := range []struct {
		value    string
		on, soak bool
		rounds   uint64
	}{
		{"false", false, false, 3},
		{"true", true, false, 50},
		{"1", true, true, 1},
		{"7000", true, true, 7000},
	} {
		if err := length.Set(test.value); err != nil {
			t.Fatal(err)
		}
		if On() != test.on || Soak() != test.soak || Rounds(3, 50) != test.rounds || Or(false, true) != test.on {
			t.Errorf("-long=%s: On() = %t, Soak() = %t, Rounds(3, 50) = %d", test.value, On(), Soak(), Rounds(3, 50))
		}
	}
	for _, value := range []string{"", "0", "-1", "much"} {
		if err := length.Set(value); err == nil {
			t.Errorf("-long=%s is taken", value)
		}
	}
}
