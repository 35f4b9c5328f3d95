package bench

import (
	"os"
	"testing"

	"tensile/cost"
	"tensile/workload"
)

func TestShareTable(t *testing.T) {
	f, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	o := ShareOptions{Facts: f, Iterations: 30}
	for _, s := range []struct {
		name  []string
		batch int
	}{{[]string{"resnet50:2"}, 16}, {[]string{"nasnet-mobile:2"}, 64}, {[]string{"rhn:2"}, 64}, {[]string{"bert:2"}, 16}} {
		o.Sets = append(o.Sets, ShareSet{Jobs: s.name, Settings: workload.Settings{Batch: s.batch}, Percent: []int{100, 130}})
	}
	r, err := MeasureShare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.WriteTable(os.Stdout)
}
