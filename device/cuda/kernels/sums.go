package kernels

import "tensile/graph"

var sums = map[graph.Kind]entry{
	graph.BiasDB: {launches: biasDB, scratch: biasDBScratch},
}

// A long sum is cut into chunks of its elements, whose sums are made by blocks and then added up. Sums over the rows of
// a matrix are made by a thread per column, for parts of the rows, which are added up as well.
const (
	chunkSize = 8192 // chunk_size in src/block.h
	partRows  = 64
)

func chunksOf(count int) int { return (count + chunkSize - 1) / chunkSize }

func partsOf(rows int) int { return (rows + partRows - 1) / partRows }

// threadsFor is the number of threads of a block that adds up n elements: a power of two, some elements for each.
func threadsFor(n int) int {
	t := 32
	for t < threads && 8*t < n {
		t *= 2
	}
	return t
}

// threadsForChunk is that of a block that adds up a chunk of count elements.
func threadsForChunk(count int) int { return threadsFor(min(count, chunkSize)) }

// doubles are the bytes of n float64.
func doubles(n int) graph.Bytes { return 8 * graph.Bytes(n) }

// channels shows [N,C,...] as n*c planes of size elements, so that a channel is every c-th plane.
type channels struct{ n, c, size int }

func channelsOf(s graph.Shape) channels { return channels{s[0], s[1], s[2:].Elements()} }

// count is the number of elements of a channel.
func (ch channels) count() int { return ch.n * ch.size }

func biasDBScratch(_ graph.Attrs, in, _ []graph.Shape) graph.Bytes {
	ch := channelsOf(in[0])
	if ch.size == 1 {
		return doubles(partsOf(ch.n) * ch.c)
	}
	return doubles(chunksOf(ch.count()) * ch.c)
}

func biasDB(c *Call) []Launch {
	ch := channelsOf(c.InShapes[0])
	if ch.size == 1 {
		n := partsOf(ch.n) * ch.c
		return []Launch{
			launchEach("column_sums", n, c.In[0], c.Scratch, n, ch.n, ch.c, partRows),
			sumParts(c.Scratch, c.Out[0], ch.c, partsOf(ch.n)),
		}
	}
	count, chunks := ch.count(), chunksOf(ch.count())
	return []Launch{
		launch("chunk_sums", chunks*ch.c, threadsForChunk(count), c.In[0], c.Scratch, count, ch.c, ch.size, chunks),
		sumChunks(c.Scratch, c.Out[0], ch.c, chunks, 1),
	}
}

// sumParts adds up the sums of parts.
func sumParts(sums, to uint64, width, parts int) Launch {
	return launchEach("sum_parts", width, sums, to, width, parts)
}

// sumChunks adds up the sums of chunks per channel, and divides.
func sumChunks(sums, to uint64, channels, chunks int, divisor float64) Launch {
	return launch("sum_chunks", channels, threadsFor(chunks), sums, to, chunks, divisor)
}
