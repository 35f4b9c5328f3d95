// Package smallnet holds, for tests, the configuration at which each network of package models trains in moments and still
// holds every one of its ops: few images, small ones, and thin layers.
package smallnet

import "tensile/models"

// configs holds the networks that the usual configuration does not fit.
var configs = map[string]models.Config{
	"mlp":         {Image: 8, Batch: 32, Thin: 8},
	"lenet":       {Image: 12, Batch: 16},
	"alexnet":     {Image: 67, Batch: 4, Thin: 16},
	"inceptionv3": {Image: 75, Batch: 8, Thin: 16},
	"inceptionv4": {Image: 107, Batch: 4, Thin: 16},
}

// Config returns the small configuration of a network.
func Config(name string) models.Config {
	if c, ok := configs[name]; ok {
		return c
	}
	return models.Config{Image: 32, Batch: 4, Thin: 16}
}
