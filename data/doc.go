// Package data is where a job's batches come from.
//
// A [Dataset] is a set of labelled images of one shape: read from files by [Open] (CIFAR-10 binary batches, the IDX
// files of MNIST and the sets that share its file names, or a folder of images for each class), or made up
// by [Synthetic]. [Dataset.Fill] writes the batch of an iteration.
//
// [Arrays] are named arrays of any shape, in a safetensors file or an .npz file of NumPy, of which [Arrays.Fill] reads
// the examples of a batch.
//
// [Sentences] is an endless stream of made-up texts, translations and sounds, for networks that read sequences.
//
// Examples are drawn without replacement, epoch after epoch, in one endless stream; iteration i of batch N takes
// positions i*N to (i+1)*N of it, so that a batch may straddle two epochs:
//
//	position   0 1 2 3 4 | 5 6 7 8 9 | ...       five examples
//	example    3 0 4 1 2 | 1 4 0 2 3 | ...       epoch e in the order of a permutation keyed by (seed, e)
//	batch of 3 ----- ------- ----- -----         iterations 0, 1, 2, ...
//
// Invariants:
//   - Fill is a pure function of (data, seed, batch size, iteration): iterations may be asked for in any order, again,
//     and by several goroutines at once; resuming a job needs no state of the loader. Of what is in
//     memory it allocates nothing.
//   - The same arguments give the same bits on any machine: the order of examples comes from integers alone, and
//     products are rounded before they are added, so that no machine fuses them.
//   - Pixels are normalised to about mean 0 and standard deviation 1 per channel; labels are class indices as float32.
//   - Images are resized in folders of images alone ([Dataset.AnySize], [Dataset.CheckImage]). That is done
//     by floating-point products, whose last bits may differ between architectures of processors.
package data
