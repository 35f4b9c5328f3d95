package autodiff

import "tensile/graph"

// Why a kind has no gradient.
const (
	second   = "it is a gradient, and second derivatives are not taken"
	update   = "it is an update of a persistent storage"
	inPlace  = "it overwrites what its gradient would be of"
	later    = "passes put it in place of others after gradients were taken"
	notAlone = "how statistics depend on x is part of the gradient of " + string(graph.BatchNorm)
)

// without holds every kind that has no gradient, with the reason.
var without = map[graph.Kind]string{
	graph.Conv2DDW: second, graph.LinearDW: second, graph.LinearDX: second,
	graph.BiasDB: second,
	graph.ReLUDX: second, graph.MaxPoolDX: second, graph.AvgPoolDX: second, graph.LRNDX: second,
	graph.BatchNormGrad: second,
	graph.DropoutDX:     second, graph.SoftmaxXentDX: second, graph.SigmoidXentDX: second, graph.MeanSquareDX: second,
	graph.EmbeddingDW: second, graph.LayerNormGrad: second, graph.GELUDX: second, graph.SigmoidDX: second,
	graph.TanhDX:    second,
	graph.BlendGrad: second, graph.SoftmaxDX: second, graph.AdditiveScoresGrad: second, graph.LSTMGrad: second,

	graph.MaxPoolIndices: later, graph.MaxPoolIndicesDX: later,
	graph.AvgPoolDYDX: later,

	graph.BatchNormStats:  notAlone,
	graph.BatchNormUpdate: update, graph.SGD: update, graph.Momentum: update, graph.Adam: update,
	graph.Accumulate: inPlace, graph.Scale: inPlace, graph.SliceAccumulate: inPlace,
}
