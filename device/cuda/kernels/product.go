package kernels

import (
	"fmt"

	"tensile/graph"
)

// matrix is what a product reads. Distances are in elements.
type matrix struct {
	address uint64
	stride  int // between two rows, as it is stored
	image   int // between two images, if a dimension is made of images
	batch   int // between two entries of the batch
}

// target is the matrix that a product makes.
type target struct {
	address                     uint64
	stride, image, plane, batch int
	bias                        uint64 // 0: none
	biasOfRows                  bool   // a bias for each row, not column
	biasBatch                   int
	lattice                     [6]int // of src/product.h
}

// image is struct image of src/product.h up to x_first.
type image struct {
	height, width, js, is, kOuter, jStep, iStep, ys, xs, nOuter, yStep, xStep, yFirst, xFirst int
}

// product is c[m][n] = the sum over k of a[m][k]·b[k][n], for each entry of a batch.
type product struct {
	kernel         string // without the tile
	m, n, k, batch int
	a, b           matrix
	kPlane, nPlane int
	c              target
	image          *image  // nil: the kernel has none
	filter         *[3]int // f_outer, f_j, f_i of src/product.h; nil: the kernel has none, and no lattice
}

// none is the plane of a dimension that is not made of images, which has no more elements than that.
const none = 1 << 30

// A tile is a kernel's rows and columns of c in a block. The choice of the tile does not change bits.
type tile struct {
	size    int
	threads int
	cost    int // of a step of k, on a multiprocessor; the larger tiles load less for each multiplication
}

var tiles = []tile{{128, 256, 16}, {64, 256, 5}, {16, 64, 1}}

// maxIndex bounds what kernels count in 32 bits.
const maxIndex = 1<<31 - 256

const (
	processors = 128           // of the chip that products are split for, whatever chip there is
	fullGrid   = 2 * 128       // blocks from which on k is not split to have more
	minPart    = 128           // of k
	maxPart    = 1 << 14       // of k: rounding errors grow with the length of a chain
	maxScratch = 8 * graph.MiB // for parts that only fill the grid
	partUnit   = 16            // parts are multiples of it, so that four elements can be loaded at once
)

// split is how a product is made: by blocks of a tile, of parts of k.
type split struct {
	tile  tile
	parts int
	part  int // length of each but the last
}

// check refuses a product whose rows, columns or steps cannot be counted.
func (p *product) check() {
	n, k := none, none
	if p.c.plane != none && (p.image != nil || p.nPlane != none) {
		n = maxIndex
	}
	if p.kPlane != none {
		k = maxIndex
	}
	const elements = 1 << 46 // of c; more are in no memory, and further products of them might not fit an int
	if p.m > none || p.n > n || p.k > k || p.batch > maxIndex || p.batch > elements/p.m/p.n {
		p.refuse()
	}
}

func (p *product) refuse() {
	refuse("a product of %d rows, %d columns and %d summands, %d times, is too large", p.m, p.n, p.k, p.batch)
}

// split follows from the extents alone. It weighs the time that the blocks of each tile take on the processors, a
// processor being faster with two blocks or more, against what adding up the parts takes.
func (p *product) split() split {
	var best split
	var least int
	for _, t := range tiles {
		blocks := p.batch * ceil(p.m, t.size) * ceil(p.n, t.size)
		for parts := max(1, ceil(p.k, maxPart)); ; parts++ {
			s := splitOf(t, p.k, parts)
			cost := (2*ceil(blocks*s.parts, processors) + 1) * t.cost * min(s.part, p.k)
			if s.parts > 1 {
				cost += p.batch*p.m*p.n/1024*s.parts + 1200
			}
			if best.parts == 0 || cost < least {
				best, least = s, cost
			}
			if next := parts + 1; next*blocks > fullGrid || p.k/next < minPart || p.memory(next) > maxScratch {
				break
			}
		}
	}
	return best
}

func splitOf(t tile, k, parts int) split {
	part := max(partUnit, ceil(ceil(k, parts), partUnit)*partUnit)
	return split{t, max(1, ceil(k, part)), part}
}

func ceil(n, by int) int { return (n + by - 1) / by }

// scratch is the memory for the parts of c.
func (p *product) scratch() graph.Bytes {
	s := p.split()
	if s.parts == 1 {
		return 0
	}
	return (p.memory(s.parts) + 7) &^ 7
}

// memory returns the bytes of the partial results of c.
func (p *product) memory(parts int) graph.Bytes { return graph.Bytes(4 * p.batch * parts * p.m * p.n) }

// launches makes the product with the split that follows from its extents.
func (p *product) launches(scratch uint64) []Launch { return p.launchSplit(p.split(), scratch) }

// launchSplit makes the product with a split.
func (p *product) launchSplit(s split, scratch uint64) []Launch {
	blocks := p.batch * s.parts * ceil(p.m, s.tile.size) * ceil(p.n, s.tile.size)
	if blocks > maxIndex || s.parts > 1 && (p.n > none || p.batch*p.m*p.n > maxIndex) {
		p.refuse()
	}
	c, c_part := p.c, 0
	if s.parts > 1 {
		c_part = p.m * p.n
		c = target{address: scratch, stride: p.n, plane: none, batch: s.parts * c_part}
	}
	biasOfRows := 0
	if p.c.biasOfRows {
		biasOfRows = 1
	}
	args := []any{
		p.a.address, p.b.address, c.address, c.bias, p.m, p.n, p.k, s.part, s.parts,
		p.a.stride, p.a.image, p.a.batch, p.b.stride, p.b.image, p.b.batch, p.kPlane, p.nPlane,
		c.stride, c.image, c.plane, c.batch, c_part, biasOfRows, c.biasBatch,
	}
	if i := p.image; i != nil {
		args = append(args, i.height, i.width, i.js, i.is, i.kOuter, i.jStep, i.iStep,
			i.ys, i.xs, i.nOuter, i.yStep, i.xStep, i.yFirst, i.xFirst)
	}
	if f := p.filter; f != nil {
		args = append(args, f[0], f[1], f[2])
		for _, v := range c.lattice {
			args = append(args, v)
		}
	}
	all := []Launch{launch(fmt.Sprintf("%s_%d", p.kernel, s.tile.size), blocks, s.tile.threads, args...)}
	if s.parts > 1 {
		c := p.c
		args := []any{
			scratch, c.address, c.bias, p.m, p.n, s.parts, p.batch, c.stride, c.image, c.plane, c.batch, biasOfRows,
			c.biasBatch,
		}
		for _, v := range c.lattice {
			args = append(args, v)
		}
		all = append(all, launchEach("product_sum", p.batch*p.m*p.n, args...))
	}
	return all
}

// made is the entry of a kind that is made of products, one after the other.
func made(list func(c *Call) []product) entry {
	return entry{
		launches: func(c *Call) (all []Launch) {
			for _, p := range list(c) {
				p.check()
				all = append(all, p.launches(c.Scratch)...)
			}
			return all
		},
		scratch: func(a graph.Attrs, in, out []graph.Shape) (size graph.Bytes) {
			c := &Call{Attrs: a, InShapes: in, OutShapes: out}
			c.In, c.Out = make([]uint64, len(in)), make([]uint64, len(out))
			for _, p := range list(c) {
				size = max(size, p.scratch())
			}
			return size
		},
	}
}
