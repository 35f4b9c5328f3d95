package onnx

// RandomModel is for tests that train on a device.
var RandomModel = randomModel
