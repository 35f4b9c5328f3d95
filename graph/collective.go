package graph

import "fmt"

// AllReduce replaces a gradient by its mean over the replicas of a job: d -> d, in place; Replicas. The mean of an
// element is the sum over replicas in the order of their numbers, each addition rounded, divided by their number. So
// its bits follow from the operands, whatever the timing. Every replica executes the all-reduces of its graph once each
// and in the order of the graph (proof.Validate), so that none waits for one that another comes to later.
const AllReduce Kind = "all_reduce"

// MaxReplicas bounds the replicas of a job.
const MaxReplicas = 1024

var collectives = map[Kind]kind{
	AllReduce: {inputs: [2]int{1, 1}, outputs: []int{0}, shapes: likeFirst(1), flops: perOutput(2),
		attrs: names("replicas"), check: replicasCheck},
}

func replicasCheck(a Attrs) error {
	if a.Replicas < 2 || a.Replicas > MaxReplicas {
		return fmt.Errorf("replicas %d: must be 2 to %d", a.Replicas, MaxReplicas)
	}
	return nil
}

// Replicas is over how many replicas the graph's gradients are reduced; 1 if they are not.
func (g *Graph) Replicas() int {
	for i := range g.Ops {
		if g.Ops[i].Kind == AllReduce {
			return g.Ops[i].Attrs.Replicas
		}
	}
	return 1
}

// replicas checks that all all-reduces are over the same replicas, and of gradients of float32.
func (v *validator) replicas() {
	want := v.g.Replicas()
	for i := range v.g.Ops {
		op := &v.g.Ops[i]
		if op.Kind != AllReduce || len(op.Inputs) != 1 {
			continue
		}
		if op.Attrs.Replicas != want {
			v.say("op %s: it is over %d replicas, others are over %d", op.Name, op.Attrs.Replicas, want)
		}
		in := v.g.Tensors[op.Inputs[0]]
		if role := v.g.Storages[in.Storage].Role; role != Gradient || in.DType != Float32 {
			v.say("op %s: %s is of role %s and type %v, want a gradient of %v", op.Name, in.Name, role, in.DType,
				Float32)
		}
	}
}
