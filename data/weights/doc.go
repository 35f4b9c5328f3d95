// Package weights keeps tensors in safetensors files, the format in which other tools read and write weights.
//
// A [File] is a list of named float32 [Tensor]s and free text beside them; [Write] saves one and [Read] loads one. On
// disk:
//
//	8 bytes     n, the length of the header, little-endian
//	n bytes     JSON: {"__metadata__": {"key": "text"},
//	            "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//	the rest    the tensors' elements, little-endian and row-major; offsets count from here
//
// Invariants:
//   - What is written is read back with the same bits, those of NaNs included.
//   - Files of others may have floats of 16 and 64 bits (F16, BF16, F64), which become float32, and whole numbers,
//     which [Read] leaves out. [Index] says where tensors of any type lie, for those who read a part ([Type]).
//   - Equal files give equal bytes: names are sorted, and data stands in the order of names without gaps. The header is
//     padded with spaces so that data starts at a multiple of 8 bytes.
//   - A file appears at its path whole or not at all, and a failed Write leaves what was there before.
//   - Read believes nothing: it allocates no more than in proportion to the file's true size, whatever the header
//     claims, and accepts a file only if tensors cover all of the data once.
//
// [Load] reads a state_dict of torch too: a zip file of a pickle and a file per storage of elements. It knows the
// opcodes and globals that a dict of tensors needs and passes over what others would make, so that a file runs nothing.
package weights
