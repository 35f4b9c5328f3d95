// Package local trains planned tasks on a device of this process, with neither controller nor bus. [Train] is how run
// works on simulated devices and how calibrate measures. An [Evaluation] tries a trained network on images that it has
// not seen.
package local
