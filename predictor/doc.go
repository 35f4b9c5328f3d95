// Package predictor says how long ops will take before any was run: a four-layer network per form of op, trained with
// gorgonia on measured latencies (TENSILE, IV-A), served by a forward pass of our own.
//
// A [Call] is an op as the model sees it, a [Device] what it runs on, a [Sample] a call that was measured. [Train]
// makes a [Model] of samples; [Model.Predict] gives a [Prediction] per call: p50, p95 and whether the call lies outside
// of what was trained on. [Evaluate] compares a model with samples. Package predictor/correct corrects predictions by
// reports (IV-E).
//
// What is learned is the logarithm of latency over roofline time, from features that are ratios: of arithmetic to
// traffic, of roofline time to launch time, of sizes to tiles, waves and caches. The identity of a device is a block of
// features that training drops at random, so that one network serves devices that were seen and, without the block,
// those that were not.
//
// Invariants:
//
//   - Equal calls on an equal model get equal predictions, whatever else is predicted beside them.
//   - 0 < P50 <= P95, both finite.
//   - Training is a function of samples and options: the same seed gives the same model.
//   - The package reads no clock and starts no goroutine; progress is told to a function.
package predictor
