package report

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"tensile/graph/cost"
	"tensile/wire"
)

// Facts have all that a device's have but its name, in names that say units.
func TestControllerDevices(t *testing.T) {
	for _, d := range ControllerDevices([]wire.DeviceState{{Device: wire.Device{Name: "lab", Align: 64,
		Facts: cost.Facts{Compute: 2e9, Out: cost.Link{Rate: 5e9, Latency: 7}, Launch: 9}}}}) {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		const want = `"facts":{"compute_flops":2000000000,"launch_ns":9,"out":{"bytes":5000000000,"latency_ns":7},` +
			`"in":{"bytes":0,"latency_ns":0}}`
		if strings.Count(string(text), `"facts"`) != 1 || !strings.Contains(string(text), want) {
			t.Errorf("%s has not %s", text, want)
		}
	}
	if n, of := reflect.TypeFor[Facts]().NumField(), reflect.TypeFor[cost.Facts]().NumField(); n != of-1 {
		t.Errorf("%d of %d facts", n, of)
	}
}
