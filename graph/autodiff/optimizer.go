package autodiff

import (
	"errors"
	"fmt"
	"math"

	"tensile/graph"
)

// Optimizer is a way to update parameters: SGD, Momentum or Adam. The zero value of each is the recommended setting.
type Optimizer interface {
	// Recommended replaces fields that are zero by their recommended values, the learning rate's times rate.
	Recommended(rate float64) Optimizer
	// update returns the kind of the op that updates one parameter, its attributes, and the suffixes of the names of
	// the moments it keeps, in operand order.
	update() (graph.Kind, graph.Attrs, []string)
}

// SGD is w -= lr*dw.
type SGD struct {
	LearningRate float64 // 0 means 0.01
}

// Momentum is SGD on a decaying sum of gradients: m = Momentum*m + dw, w -= lr*m.
type Momentum struct {
	LearningRate float64 // 0 means 0.01; the sum of gradients grows to 1/(1-Momentum) of one gradient
	Momentum     float64 // 0 means 0.9; for none, use SGD
}

// Adam is Kingma and Ba's method with bias correction.
type Adam struct {
	LearningRate float64 // 0 means 0.001
	Beta1        float64 // decay of the first moment; 0 means 0.9
	Beta2        float64 // decay of the second moment; 0 means 0.999
	Epsilon      float64 // 0 means 1e-8
}

// Recommended replaces fields that are zero.
func (o SGD) Recommended(rate float64) Optimizer {
	return SGD{valueOr(o.LearningRate, 0.01*rate)}
}

// Recommended replaces fields that are zero.
func (o Momentum) Recommended(rate float64) Optimizer {
	return Momentum{valueOr(o.LearningRate, 0.01*rate), valueOr(o.Momentum, 0.9)}
}

// Recommended replaces fields that are zero.
func (o Adam) Recommended(rate float64) Optimizer {
	return Adam{valueOr(o.LearningRate, 0.001*rate), valueOr(o.Beta1, 0.9), valueOr(o.Beta2, 0.999), valueOr(o.Epsilon,
		1e-8)}
}

func (o SGD) update() (graph.Kind, graph.Attrs, []string) {
	return graph.SGD, graph.Attrs{LearningRate: o.LearningRate}, nil
}

func (o Momentum) update() (graph.Kind, graph.Attrs, []string) {
	return graph.Momentum, graph.Attrs{LearningRate: o.LearningRate, Momentum: o.Momentum}, []string{"m"}
}

func (o Adam) update() (graph.Kind, graph.Attrs, []string) {
	attrs := graph.Attrs{LearningRate: o.LearningRate, Beta1: o.Beta1, Beta2: o.Beta2, Epsilon: o.Epsilon}
	return graph.Adam, attrs, []string{"m", "v"}
}

func valueOr(value, recommended float64) float64 {
	if value == 0 {
		return recommended
	}
	return value
}

// still is an optimizer with a learning rate of 0: parameters stay as they are.
type still struct{ Optimizer }

func (o still) Recommended(rate float64) Optimizer { return still{o.Optimizer.Recommended(rate)} }

func (o still) update() (graph.Kind, graph.Attrs, []string) {
	kind, attrs, moments := o.Optimizer.update()
	attrs.LearningRate = 0
	return kind, attrs, moments
}

// ParseOptimizer returns the optimizer of this name with a learning rate; nil means the recommended one.
func ParseOptimizer(name string, lr *float64) (Optimizer, error) {
	var rate float64
	if lr != nil {
		rate = *lr
	}
	var o Optimizer
	switch name {
	case "sgd":
		o = SGD{LearningRate: rate}
	case "momentum":
		o = Momentum{LearningRate: rate}
	case "adam":
		o = Adam{LearningRate: rate}
	default:
		return nil, fmt.Errorf("unknown optimizer %q: choose sgd, momentum or adam", name)
	}
	if lr != nil && rate == 0 {
		return still{o}, nil
	}
	if err := check(o); err != nil {
		return nil, err
	}
	return o, nil
}

// check reports every setting that cannot train.
func check(o Optimizer) error {
	kind, a, _ := o.Recommended(1).update()
	var problems []error
	if rate := a.LearningRate; !(rate >= 0) || math.IsInf(rate, 0) {
		problems = append(problems, fmt.Errorf("%s: learning rate %v must be at least 0 and finite", kind, rate))
	}
	decay := func(what string, v float64) {
		if !(v >= 0 && v < 1) {
			problems = append(problems, fmt.Errorf("%s: %s %v must be at least 0 and below 1", kind, what, v))
		}
	}
	decay("momentum", a.Momentum)
	decay("beta1", a.Beta1)
	decay("beta2", a.Beta2)
	if kind == graph.Adam && (!(a.Epsilon > 0) || math.IsInf(a.Epsilon, 0)) {
		problems = append(problems, fmt.Errorf("%s: epsilon %v must be positive and finite", kind, a.Epsilon))
	}
	return errors.Join(problems...)
}

// Optimize appends one update per gradient, in the given order, each in the layer of its gradient. What the optimizer
// remembers of a parameter w is a state storage of w's shape, "w.m" and "w.v", that starts at zero. nil means Adam{}.
func Optimize(b *graph.Builder, grads []Gradient, o Optimizer) error {
	if o == nil {
		o = Adam{}
	}
	if err := check(o); err != nil {
		return err
	}
	layers := writers(b.Peek())
	kind, attrs, moments := o.Recommended(1).update()
	b.SetPhase(graph.Optimize)
	b.SetForward(graph.NoOp)
	for _, grad := range grads {
		w := b.Peek().Tensors[grad.Parameter]
		inputs := []graph.TensorID{grad.Parameter, grad.Gradient}
		for _, m := range moments {
			inputs = append(inputs, b.Persistent(w.Name+"."+m, graph.State, w.Shape, graph.Init{Kind: graph.InitZero}))
		}
		b.SetLayer(layers[b.Peek().Tensors[grad.Gradient].Storage])
		b.Op(w.Name+".update", kind, attrs, inputs...)
	}
	return b.Err()
}

// writers returns the layer of the op that last wrote each storage.
func writers(g *graph.Graph) []string {
	layers := make([]string, len(g.Storages))
	for _, op := range g.Ops {
		for _, t := range op.Outputs {
			layers[g.Tensors[t].Storage] = op.Layer
		}
	}
	return layers
}
