package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
)

// This file writes down in which order products and convolutions add up, in plain Go, and compares bits.

// fma is a·b + c of float32, rounded once. The product is exact in float64; the sum is rounded to odd there, so that
// rounding it again is as good as rounding once.
func fma(a, b, c float32) float32 {
	p, q := float64(a)*float64(b), float64(c)
	sum := p + q
	back := sum - p
	lost := (p - (sum - back)) + (q - back) // exactly
	if word := math.Float64bits(sum); lost != 0 && word&1 == 0 {
		if (lost > 0) == (sum > 0) {
			word++
		} else {
			word--
		}
		sum = math.Float64frombits(word)
	}
	return float32(sum)
}

// terms are the products that an element of an output adds up, in their order.
type terms func(yield func(a, b float32))

// inParts adds terms up as chains of fma over so many of them each, and then the chains, in order.
func inParts(all terms, part int) float32 {
	var total, chain float32
	n, first := 0, true
	end := func() {
		chain += 0 // not -0
		if first {
			total, first = chain, false
		} else {
			total += chain
		}
		n, chain = 0, 0
	}
	all(func(a, b float32) {
		if n == part {
			end()
		}
		chain = fma(a, b, chain)
		n++
	})
	end()
	return total
}

// additions say what each element of the output adds up, and its bias. The length of the parts of k follows from the
// shapes of the product that an element belongs to.
type additions struct {
	elements int
	terms    func(element int) terms
	bias     func(element int) float32
	product  func(element int) product // extents alone
}

// productAdditions are those of an example of a matrix product.
func productAdditions(e example, out graph.Shape) additions {
	x, y := floatsOf(e.in[0].bytes), floatsOf(e.in[1].bytes)
	xs, ys := e.in[0].shape, e.in[1].shape
	s := additions{elements: out.Elements(), bias: func(int) float32 { return 0 }}
	switch e.kind {
	case graph.Linear:
		n, i, o := xs[0], xs[1], ys[0]
		s.terms = dot(i, func(at, k int) (float32, float32) { return x[at/o*i+k], y[at%o*i+k] })
		s.product = func(int) product { return product{m: n, n: o, k: i, batch: 1} }
		if len(e.in) == 3 {
			b := floatsOf(e.in[2].bytes)
			s.bias = func(at int) float32 { return b[at%o] }
		}
	case graph.LinearDX:
		n, o, i := xs[0], xs[1], ys[1]
		s.terms = dot(o, func(at, k int) (float32, float32) { return x[at/i*o+k], y[k*i+at%i] })
		s.product = func(int) product { return product{m: n, n: i, k: o, batch: 1} }
	case graph.LinearDW:
		n, i, o, begin := xs[0], xs[1], ys[1], e.attrs.Begin
		s.terms = dot(n, func(at, k int) (float32, float32) { return y[k*o+begin+at/i], x[k*i+at%i] })
		tile := graph.Shape{o, i}.TileRows()
		s.product = func(at int) product {
			rows := min(tile, out[0]-at/i/tile*tile)
			return product{m: rows, n: i, k: n, batch: 1}
		}
	case graph.MatMul:
		m, n, k := out[1], out[2], xs[2]
		am, ak, bk, bn := k, 1, n, 1 // strides
		if e.attrs.TransposeA {
			k = xs[1]
			am, ak = 1, m
		}
		if e.attrs.TransposeB {
			bk, bn = 1, k
		}
		s.terms = dot(k, func(at, i int) (float32, float32) {
			batch, row, col := at/(m*n), at/n%m, at%n
			return x[batch*m*k+row*am+i*ak], y[batch*k*n+i*bk+col*bn]
		})
		s.product = func(int) product { return product{m: m, n: n, k: k, batch: out[0]} }
	}
	return s
}

// dot are terms over k.
func dot(k int, at func(element, k int) (a, b float32)) func(element int) terms {
	return func(element int) terms {
		return func(yield func(a, b float32)) {
			for i := range k {
				yield(at(element, i))
			}
		}
	}
}

// convolutionAdditions are those of an example of a convolution. Where a window reaches beyond the image, a term is 0
// times the weight (or the gradient); narrow groups leave such terms out, which makes no difference but for infinities.
func convolutionAdditions(e example, out graph.Shape) additions {
	x, w := floatsOf(e.in[0].bytes), floatsOf(e.in[1].bytes) // or dy and w, or x and dy
	xs, ys := e.in[0].shape, out
	switch e.kind {
	case graph.Conv2DDW:
		ys = e.in[1].shape
	case graph.Conv2DDX:
		xs, ys = out, e.in[0].shape
	}
	g := convolutionOf(e.attrs, xs, ys)
	all := g.groups * g.c // channels
	filters := g.groups * g.k
	// pixel of an image that weight (r, s) meets at output (p, q)
	pixel := func(x []float32, n, c, p, q, r, s int) float32 {
		h, w := p*g.stride[0]-g.pad[0]+r, q*g.stride[1]-g.pad[1]+s
		if h < 0 || w < 0 || h >= g.h || w >= g.w {
			return 0
		}
		return x[((n*all+c)*g.h+h)*g.w+w]
	}
	s := additions{elements: out.Elements(), bias: func(int) float32 { return 0 }}
	switch e.kind {
	case graph.Conv2D:
		s.terms = func(at int) terms {
			q, p, k, n := at%g.q, at/g.q%g.p, at/(g.q*g.p)%filters, at/(g.q*g.p*filters)
			return func(yield func(a, b float32)) {
				for i := range g.c * g.r * g.s {
					c, r, s := i/(g.r*g.s), i/g.s%g.r, i%g.s
					yield(w[k*g.c*g.r*g.s+i], pixel(x, n, k/g.k*g.c+c, p, q, r, s))
				}
			}
		}
		s.product = func(int) product {
			return product{m: g.k, n: g.n * g.p * g.q, k: g.c * g.r * g.s, batch: g.groups}
		}
		if len(e.in) == 3 {
			b := floatsOf(e.in[2].bytes)
			s.bias = func(at int) float32 { return b[at/(g.q*g.p)%filters] }
		}
	case graph.Conv2DDW:
		dy := w
		s.terms = func(at int) terms {
			s, r, c, k := at%g.s, at/g.s%g.r, at/(g.s*g.r)%g.c, at/(g.s*g.r*g.c)
			return func(yield func(a, b float32)) {
				for i := range g.n * g.p * g.q {
					q, p, n := i%g.q, i/g.q%g.p, i/(g.q*g.p)
					yield(dy[((n*filters+k)*g.p+p)*g.q+q], pixel(x, n, k/g.k*g.c+c, p, q, r, s))
				}
			}
		}
		s.product = func(int) product {
			return product{m: g.k, n: g.c * g.r * g.s, k: g.n * g.p * g.q, batch: g.groups}
		}
	case graph.Conv2DDX:
		dy := x
		// the weights in one direction that meet a pixel are first, first+stride, ..., whether or not their window is
		// there
		first := func(h, direction int) int { return (h + g.pad[direction]) % g.stride[direction] }
		s.terms = func(at int) terms {
			x, y, c, n := at%g.w, at/g.w%g.h, at/(g.w*g.h)%all, at/(g.w*g.h*all)
			return func(yield func(a, b float32)) {
				for i := range g.k {
					k := c/g.c*g.k + i
					for r := first(y, 0); r < g.r; r += g.stride[0] {
						for s := first(x, 1); s < g.s; s += g.stride[1] {
							p, q := (y+g.pad[0]-r)/g.stride[0], (x+g.pad[1]-s)/g.stride[1]
							v := float32(0)
							if y+g.pad[0] >= r && x+g.pad[1] >= s && p < g.p && q < g.q {
								v = dy[((n*filters+k)*g.p+p)*g.q+q]
							}
							yield(w[((k*g.c+c%g.c)*g.r+r)*g.s+s], v)
						}
					}
				}
			}
		}
		// pixels a stride apart are one product, of the weights that they meet
		s.product = func(at int) product {
			if g.pixelsAreColumns() {
				return product{m: g.c, n: g.n * g.h * g.w, k: g.k, batch: g.groups}
			}
			rows, r := samePhase(g.h, g.r, g.stride[0], g.pad[0], at/g.w%g.h)
			cols, s := samePhase(g.w, g.s, g.stride[1], g.pad[1], at%g.w)
			return product{m: g.c, n: g.n * rows * cols, k: g.k * r * s, batch: g.groups}
		}
	}
	return s
}

// samePhase counts the pixels that meet the same weights as pixel h in one direction, and those weights.
func samePhase(extent, kernel, stride, pad, h int) (pixels, weights int) {
	for i := range extent {
		if (i+pad)%stride == (h+pad)%stride {
			pixels++
		}
	}
	for r := (h + pad) % stride; r < kernel; r += stride {
		weights++
	}
	return pixels, weights
}

// check compares an output with the sums, whose parts are as long as part says of a product.
func (s *additions) check(t *testing.T, what string, got []float32, part func(p product) int) {
	t.Helper()
	for at := range s.elements {
		want := inParts(s.terms(at), part(s.product(at))) + s.bias(at)
		if math.Float32bits(got[at]) != math.Float32bits(want) {
			t.Fatalf("%s: element %d is %v (%#x), want %v (%#x)", what, at, got[at], math.Float32bits(got[at]), want,
				math.Float32bits(want))
		}
	}
}

// additionsOf are those of an example of any product.
func additionsOf(e example, out graph.Shape) additions {
	if _, ok := convolutions[e.kind]; ok {
		return convolutionAdditions(e, out)
	}
	return productAdditions(e, out)
}

// productsOf are the products of a call.
func productsOf(c *Call) []product {
	switch c.Kind {
	case graph.Linear:
		return linear(c)
	case graph.LinearDW:
		return linearDW(c)
	case graph.LinearDX:
		return linearDX(c)
	case graph.MatMul:
		return matmul(c)
	case graph.Conv2D:
		g := convolutionOf(c.Attrs, c.InShapes[0], c.OutShapes[0])
		return conv2D(c, &g)
	case graph.Conv2DDW:
		g := convolutionOf(c.Attrs, c.InShapes[0], c.InShapes[1])
		return conv2DDW(c, &g)
	case graph.Conv2DDX:
		g := convolutionOf(c.Attrs, c.OutShapes[0], c.InShapes[0])
		return conv2DDX(c, &g)
	}
	panic(c.Kind)
}

// Every product has the bits of chains of fma over k, with each tile, and with k in one part or several.
func TestOrderOfSums(t *testing.T) {
	examples := make(map[string]int) // of each kernel
	forEachProduct(t, true, func(t *testing.T, round int, e example) {
		parts := 1 + round%3
		p := e.prepare(t)
		list := productsOf(&p.call)
		size := 0 // of scratch
		for _, q := range list {
			size = max(size, int(q.memory(parts)))
		}
		scratch := p.memory.add(slices.Repeat([]byte{0xff}, size), false)
		var first []byte
		for _, tile := range tiles {
			clear(p.out[0].Written)
			for _, q := range list {
				clear(scratch.Written)
				launches := q.launchSplit(splitOf(tile, q.k, parts), scratch.Address)
				interpret(t, p.memory, launches)
				examples[launches[0].Kernel]++
			}
			what := fmt.Sprintf("%v, tile %d, %d parts", e, tile.size, parts)
			if first == nil {
				first = slices.Clone(p.out[0].Bytes)
				s := additionsOf(e, p.call.OutShapes[0])
				s.check(t, what, floatsOf(first), func(p product) int { return splitOf(tile, p.k, parts).part })
			} else {
				sameBits(t, what, graph.Float32, p.out[0].Bytes, first)
			}
		}
	})
	for _, text := range Texts() {
		for _, name := range text.Kernels {
			multiplies := (text.Name == "product" || text.Name == "conv") && name != "product_sum"
			if multiplies && examples[name] < long.Or(6, 20) {
				t.Errorf("%d examples of %s", examples[name], name)
			}
		}
	}
}

// forEachProduct calls check for examples of every kind that is a product, and of the kind's kernels if forms is set:
// there is a kernel that only products with both operands transposed have, and one only convolutions that are not of
// pixels.
func forEachProduct(t *testing.T, forms bool, check func(t *testing.T, round int, e example)) {
	for _, family := range []map[graph.Kind]generator{productGenerators, convolutionGenerators} {
		for kind, g := range family {
			first, step, end := 0, 1, rounds
			switch {
			case !forms:
			case kind == graph.MatMul:
				first, step, end = 3, 4, 4*rounds
			case family[graph.Conv2D].make != nil:
				end = rounds * 3 / 2
			}
			t.Run(string(kind), func(t *testing.T) {
				for round := first; round < end; round += step * long.Or(3, 1) {
					rng := rand.New(rand.NewPCG(uint64(round), 8))
					attrs, in := g.make(rng, round)
					check(t, round, example{kind: kind, attrs: attrs, in: in})
				}
			})
		}
	}
}

// What Launches chooses has the bits of the split that follows from the shapes, and of the kernels for narrow groups.
func TestOrderOfSumsAsLaunched(t *testing.T) {
	forEachProduct(t, false, func(t *testing.T, round int, e example) {
		p := e.prepare(t)
		launches := Launches(&p.call)
		interpret(t, p.memory, launches)
		got, s := floatsOf(p.out[0].Bytes), additionsOf(e, p.call.OutShapes[0])
		switch launches[0].Kernel {
		case "grouped_dw":
			for at := range s.elements {
				if want := inHalves(s.terms(at)); math.Float32bits(got[at]) != math.Float32bits(want) {
					t.Fatalf("%v: element %d is %v, want %v", e, at, got[at], want)
				}
			}
		case "grouped", "grouped_dx":
			s.check(t, e.String(), got, func(product) int { return math.MaxInt })
		default:
			s.check(t, e.String(), got, func(p product) int { return p.split().part })
		}
	})
}

// inHalves adds terms up as grouped_dw does: 128 chains, each over every 128th term, then the second half of them to
// the first, until one is left.
func inHalves(all terms) float32 {
	chains := make([]float32, groupedDWThreads)
	i := 0
	all(func(a, b float32) {
		chains[i%len(chains)] = fma(a, b, chains[i%len(chains)])
		i++
	})
	for i := range chains {
		chains[i] += 0
	}
	for ; len(chains) > 1; chains = chains[:len(chains)/2] {
		for i := range len(chains) / 2 {
			chains[i] += chains[len(chains)/2+i]
		}
	}
	return chains[0]
}

// A tile of the gradient of a large layer, made by itself, has the bits that it has in the whole.
func TestTileAlone(t *testing.T) {
	h := startHost(t)
	rng := rand.New(rand.NewPCG(1, 9))
	const n, i, o = 5, 70_001, 61 // tiles of 48 and 13 rows
	in := []operand{normalOperand(rng, n, i), normalOperand(rng, n, o)}
	whole := h.outputs(t, example{kind: graph.LinearDW, in: in})[0]
	tile := graph.Shape{o, i}.TileRows()
	if tile >= o {
		t.Fatalf("a tile of %d rows is the whole", tile)
	}
	for begin := 0; begin < o; begin += tile {
		a := graph.Attrs{Begin: begin, Length: min(tile, o-begin)}
		alone := h.outputs(t, example{kind: graph.LinearDW, attrs: a, in: in})[0]
		sameBits(t, fmt.Sprint("tile at ", begin), graph.Float32, alone, whole[4*i*begin:][:4*i*a.Length])
	}
}

// The same rows of a larger layer are split alike in the whole and by themselves, whatever its size.
func TestTileAloneIsLaunchedAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	split := 0
	for range 300 {
		n, i, o := 1+rng.IntN(60_000), 1+rng.IntN(100_000), 1+rng.IntN(5000)
		call := func(a graph.Attrs, rows int) []product {
			return linearDW(&Call{Kind: graph.LinearDW, Attrs: a, In: make([]uint64, 2), Out: make([]uint64, 1),
				InShapes: []graph.Shape{{n, i}, {n, o}}, OutShapes: []graph.Shape{{rows, i}}})
		}
		tile := graph.Shape{o, i}.TileRows()
		for j, p := range call(graph.Attrs{}, o) {
			begin := j * tile
			a := graph.Attrs{Begin: begin, Length: min(tile, o-begin)}
			alone := call(a, a.Length)
			if len(alone) != 1 || alone[0].split() != p.split() || alone[0].m != p.m {
				t.Fatalf("%d, %d, %d: tile %d alone is %v, in the whole %v", n, i, o, j, alone, p)
			}
			if p.split().parts > 1 {
				split++
			}
		}
	}
	if split == 0 {
		t.Error("no product was split")
	}
}

// Where k is long, there are enough blocks for a large chip, and no chain is longer than maxPart.
func TestSplitFillsTheGrid(t *testing.T) {
	for _, p := range []product{
		{m: 512, n: 16 * 7 * 7, k: 512 * 9, batch: 1},  // the last convolutions of ResNet-50
		{m: 512, n: 16 * 7 * 7, k: 2048, batch: 1},     //
		{m: 64, n: 147, k: 16 * 112 * 112, batch: 1},   // the gradient of its first one's weights
		{m: 64, n: 576, k: 16 * 224 * 224, batch: 1},   // VGG-16's second
		{m: 16, n: 4096, k: 25088, batch: 1},           // its first linear layer
		{m: 128, n: 768, k: 3072, batch: 1},            // a transformer's
		{m: 4608, n: 512, k: 16 * 14 * 14, batch: 1},   //
		{m: 64, n: 64, k: 64, batch: 96},               // its heads
		{m: 8192, n: 8192, k: 8192, batch: 1},          // enough without parts
		{m: 20, n: 20, k: 100_000, batch: 1},           //
		{m: 1, n: 1, k: 1 << 24, batch: 1},             // chains that must not be longer
		{m: 100_000, n: 1000, k: 1 << 18, batch: 1},    //
		{m: 1, n: 1, k: 1, batch: 1},                   //
		{m: 2048, n: 2048, k: maxPart + 1, batch: 100}, //
	} {
		s := p.split()
		blocks := p.batch * s.parts * ceil(p.m, s.tile.size) * ceil(p.n, s.tile.size)
		if p.k >= 2048 && blocks < 100 && s.part > 2*minPart {
			t.Errorf("%+v is made by %d blocks of %+v", p, blocks, s)
		}
		if s.part > maxPart || s.part*s.parts < p.k || s.part*(s.parts-1) >= p.k {
			t.Errorf("%+v is split into %+v", p, s)
		}
		if p.k <= maxPart && p.memory(s.parts) > maxScratch && s.parts > 1 {
			t.Errorf("%+v takes %v for parts", p, p.memory(s.parts))
		}
	}
}

// fma rounds once, even where rounding to float64 first would end in the middle between two float32.
func TestFMA(t *testing.T) {
	a, b, c := float32(1+0x1p-12), float32(1+0x1p-12), float32(0x1p-60)
	// a·b = 1 + 2^-11 + 2^-24, in the middle between two float32, and c is above
	if got, want := fma(a, b, c), float32(1+0x1p-11+0x1p-23); got != want {
		t.Errorf("fma(%v, %v, %v) = %v, want %v", a, b, c, got, want)
	}
	if got, want := fma(a, b, -c), float32(1+0x1p-11); got != want {
		t.Errorf("fma(%v, %v, %v) = %v, want %v", a, b, -c, got, want)
	}
}

// A chain that ends in -0 is +0, whether or not zeros follow it in a tile.
func TestNegativeZero(t *testing.T) {
	bias := floatOperand(graph.Shape{1}, func() float64 { return math.Copysign(0, -1) })
	for _, k := range []int{3, 16, 2000} { // 2000: in parts
		tiny := floatOperand(graph.Shape{1, k}, func() float64 { return 0x1p-120 })
		minus := floatOperand(graph.Shape{1, k}, func() float64 { return -0x1p-120 })
		for _, in := range [][]operand{{tiny, minus}, {tiny, minus, bias}} {
			p := example{kind: graph.Linear, in: in}.interpreted(t)
			if out := binary.LittleEndian.Uint32(p.out[0].Bytes); out != 0 {
				t.Errorf("k %d, %d inputs: %#x", k, len(in), out)
			}
		}
	}
}
