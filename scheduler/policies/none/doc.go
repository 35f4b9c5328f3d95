// Package none holds the policies that move nothing within an iteration.
//
//	none-all   nothing is freed within an iteration: what frameworks without liveness do, and the paper's baseline
//	none-live  everything is freed after its last use: the honest baseline
package none
