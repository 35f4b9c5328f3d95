// Package onnxcases runs test cases of ONNX operators on a device and compares what comes out with what is stored
// beside them.
//
// A case is a folder with model.onnx and folders test_data_set_N of input_K.pb and output_K.pb, as the ONNX project has
// them. [Run] runs all cases of a folder; [Count] sums them up by operator. A case that uses what is not supported
// counts as such, with the reason; one whose outputs differ has failed.
package onnxcases
