// Package superneurons is the method of SuperNeurons (Wang et al., PPoPP 2018) as a policy. Sections are those of the
// paper.
//
// Four parts, each of which [Options] leave out:
//
//   - Liveness (3.2): what is not used again leaves the device.
//   - The unified tensor pool (3.3): outputs of convolutions go to the host, and come back while the convolution behind
//     them is in its backward pass. The tensor cache keeps what fits: then nothing moves.
//   - Cost-aware recomputation (3.4): outputs of cheap layers are dropped after the forward pass and made again, by
//     segment, once (speed-centric) or for each backward layer (memory-centric).
//   - Workspaces (3.5): a convolution takes the fastest variant that fits into what the step leaves free.
//
// # How a plan is made
//
// The paper's runtime decides while it trains. Here the same decisions make a plan. What is made again depends on the
// graph alone, so the steps come first (recompute). Then the steps are gone through once against a capacity, with the
// cache's list, the lanes of the link and a clock (memory): that gives the moves. Each iteration begins with parameters
// and optimizer states on the device and nothing else.
//
// # Layers
//
//	checkpoint    CONV, FC, and every kind that is not cheap: its output is never made again (3.3, 3.4)
//	cheap         ACT, POOL, LRN, BN, dropout, and layers that only move data
//	join, fork    a layer that reads two layers, or that two layers read: never made again. Where others are, it is
//	              offloaded as CONV is. The paper does not say so, but its counts of table 1 come out this way
//	segment       cheap layers in a row, between those that are kept
//
// # Where it departs from the paper
//
//   - While everything fits with liveness alone, nothing is made again either: the paper says that of copies (3.3.2),
//     and its release has a switch for recomputation. [Options.Always] leaves that out, as the paper's tables do.
//   - The convolution outputs that the cache will evict are copied out as soon as they are made, as 3.3.1 says, and not
//     when their bytes are wanted: the plan knows which.
//   - The cache evicts until what is wanted fits, not until the evicted bytes alone suffice (algorithm 2).
//   - FC asks for what the layers before it need as CONV does (3.3.1 names CONV alone, 3 both): else nothing would
//     before the first CONV of the backward pass.
//   - Inputs are fetched a step ahead. Parameters, optimizer states and outputs stay on the device, as in the release;
//     all else is in the cache's list.
//   - Offsets come from Tensile's packing, not from a heap.
package superneurons
