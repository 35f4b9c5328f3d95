// Package devicetest is the conformance suite of devices, and the graphs and plans that it runs.
//
// A device's test file is one call:
//
//	func TestDevice(t *testing.T) {
//		devicetest.Run(t, func(t *testing.T) device.Device { return sim.New(facts, sim.Options{}) })
//	}
//
// On every device [Run] checks lanes, waits, drains, holds, memory and the ways in which Next returns. On a device with
// data it trains two small networks under many plans as well: results are right against a reference in float64, and the
// same to the bit whatever the plan.
//
// [Tiny] and [Zoo] are the networks; Zoo has an op of every kind. [KeepAll], [Swapped] and [RandomPlan] plan them, and
// [Build] turns a plan into a program through every proof that there is. Other packages' tests may use these.
package devicetest
