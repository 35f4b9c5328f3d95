// Package rivals has the methods of others, to compare with: a package for each. Nobody needs them to train. A program
// that imports this package, as cmd/tensile and bench do, has them in the table of policies and as methods of a lease.
//
//	policies              paper, superneurons, checkpoint, dtr, capuchin, vdnn, autoswap
//	methods of a lease    zico, waterwave
//	what they share       replay turns a run-time method into a plan, each divides a budget among jobs, layer finds
//	                      the layers of a graph, bayes minimises functions
package rivals

import (
	"tensile/device/lease"
	"tensile/scheduler/policies"
	"tensile/scheduler/rivals/autoswap"
	"tensile/scheduler/rivals/capuchin"
	"tensile/scheduler/rivals/checkpoint"
	"tensile/scheduler/rivals/dtr"
	"tensile/scheduler/rivals/paper"
	"tensile/scheduler/rivals/superneurons"
	"tensile/scheduler/rivals/vdnn"
	"tensile/scheduler/rivals/waterwave"
	"tensile/scheduler/rivals/zico"
)

func init() {
	policies.Register(policies.Table{
		{Name: "tensile-paper", Policy: paper.Plan, Options: paper.Options{}},
		{Name: "tensile-authors", Policy: paper.Authors, Options: paper.Options{}},
		{Name: "superneurons", Policy: superneurons.Plan, Options: superneurons.Options{}},
		{Name: "checkpoint", Policy: checkpoint.SqrtN},
		{Name: "sublinear", Policy: checkpoint.Sublinear},
		{Name: "dtr", Policy: dtr.Plan, Options: dtr.Options{}},
		{Name: "dtr-eq", Policy: dtr.PlanEq},
		{Name: "lru", Policy: capuchin.LRU},
		{Name: "capuchin", Policy: capuchin.Plan, Options: capuchin.Options{}},
		{Name: "vdnn-conv", Policy: vdnn.Static(vdnn.Options{Offload: vdnn.Conv})},
		{Name: "vdnn-conv-keep", Policy: vdnn.Static(vdnn.Options{Offload: vdnn.Conv, Keep: true})},
		{Name: "vdnn-all", Policy: vdnn.Static(vdnn.Options{Offload: vdnn.All})},
		{Name: "vdnn-all-keep", Policy: vdnn.Static(vdnn.Options{Offload: vdnn.All, Keep: true})},
		{Name: "vdnn-dyn", Policy: vdnn.Dynamic(vdnn.Options{})},
		{Name: "vdnn-dyn-keep", Policy: vdnn.Dynamic(vdnn.Options{Keep: true})},
		{Name: "vdnn-tensile", Policy: vdnn.Tensile},
		{Name: "autoswap", Policy: autoswap.Plan, Options: autoswap.Options{}},
	})
	pairs := func() lease.Method { return waterwave.New(waterwave.Options{}) }
	shift := func() lease.Method { return zico.New() }
	lease.Register(map[string]func() lease.Method{"waterwave": pairs, "pairs": pairs, "zico": shift, "shift": shift})
}
