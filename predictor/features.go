package predictor

import "math"

// identity is how many features, after those of the op, describe the device alone; the flags of known families follow.
const identity = 5

// row collects features, and their names where asked for.
type row struct {
	x     []float32
	names []string
	named bool
}

func (r *row) add(name string, v float64) {
	r.x = append(r.x, float32(v))
	if r.named {
		r.names = append(r.names, name)
	}
}

// addRatio puts a logarithm to base 2: a step of 1 is a doubling.
func (r *row) addRatio(name string, v float64) { r.add(name, math.Log2(v)) }

func (r *row) flag(name string, b bool) {
	v := 0.0
	if b {
		v = 1
	}
	r.add(name, v)
}

// waste is by how much v grows when it is filled up to a multiple.
func (r *row) waste(name string, v, multiple float64) {
	r.addRatio(name, math.Ceil(v/multiple)*multiple/v)
}

// aligned puts whether v is a multiple of what vector loads and tiles want.
func (r *row) aligned(name string, v float64, of ...float64) {
	for _, m := range of {
		r.flag(name, math.Mod(v, m) == 0)
	}
}

// features puts what is known of a call on a device: TENSILE's dims, parameters and utilisation, and what follows from
// them.
func (r *row) features(d *Device, c *Call) {
	arithmetic, traffic := d.bounds(c)
	roof, launch := max(arithmetic, traffic), 2*d.Launch.Seconds()
	r.add("load", c.Load)
	r.addRatio("arithmetic/traffic", max(arithmetic/traffic, 1e-3)) // copies have none
	r.addRatio("roofline/launch", roof/launch)
	r.addRatio("1+roofline/launch", 1+roof/launch)
	r.addRatio("arithmetic/launch", arithmetic/launch+1e-3)
	r.addRatio("traffic/launch", traffic/launch+1e-3)
	r.addRatio("bytes/cache", c.bytes()/float64(d.Cache))
	switch c.Form {
	case Stream:
		r.stream(d, c)
	case Conv:
		r.products(d, c)
		r.conv(d, c)
	default:
		r.products(d, c)
	}
	r.device(d)
}

// device puts what describes the device alone.
func (r *row) device(d *Device) {
	r.addRatio("units", float64(d.Units)/64)
	r.addRatio("ridge", d.FLOPs/d.Bandwidth/16)
	r.addRatio("flops/unit", d.FLOPs/float64(d.Units)/128e9)
	r.addRatio("cache", float64(d.Cache)/8e6)
	r.addRatio("clock", d.Clock/1.25e9)
}

// tiles are output tiles of matrix kernels, whose count in waves over the device's units is a feature.
var tiles = [][2]float64{{32, 32}, {64, 64}, {128, 64}, {64, 128}, {128, 128}, {256, 128}}

func (r *row) products(d *Device, c *Call) {
	b, m, n, k := c.product()
	units, cache := float64(d.Units), float64(d.Cache)
	r.addRatio("b", b)
	r.addRatio("m", m)
	r.addRatio("n", n)
	r.addRatio("k", k)
	r.addRatio("left/cache", m*n*4/cache)
	r.addRatio("right/cache", n*k*4/cache)
	r.addRatio("result/cache", b*m*k*4/cache)
	for _, t := range tiles {
		down, across := math.Ceil(m/t[0]), math.Ceil(k/t[1])
		waves := b * down * across / units
		r.addRatio("waves", waves)
		r.addRatio("last wave", math.Ceil(waves)/waves)
		r.addRatio("tile waste", down*t[0]/m*across*t[1]/k)
	}
	r.addRatio("splits", 1+n/256)
	r.waste("n to 8", n, 8)
	r.waste("n to 32", n, 32)
	for _, v := range []float64{m, n, k} {
		r.aligned("alignment", v, 2, 4, 8, 32)
	}
	r.flag("n=1", n == 1)
	r.flag("m=1", m == 1)
	r.flag("k=1", k == 1)
}

// conv adds what the choice between direct, unfolded, Winograd and FFT convolution depends on.
func (r *row) conv(d *Device, c *Call) {
	b, in, k := float64(c.Dims.B), float64(c.Dims.C), float64(c.Dims.K)
	h, w := float64(c.Dims.H), float64(c.Dims.W)
	r.addRatio("batch", b)
	r.addRatio("channels", in)
	r.addRatio("size", h*w)
	r.addRatio("window", float64(c.Dims.R*c.Dims.S))
	r.addRatio("stride", float64(c.Dims.Stride))
	for _, multiple := range []float64{2, 4, 8, 16, 32} {
		r.waste("size waste", w, multiple)
	}
	for _, tile := range []float64{2, 4, 8} {
		patches := b * math.Ceil(float64(c.Dims.P)/tile) * math.Ceil(float64(c.Dims.Q)/tile)
		r.addRatio("winograd/launch", patches*k*in/(d.FLOPs*2*d.Launch.Seconds())+1e-3)
		r.addRatio("winograd waves", math.Ceil(patches/32)*math.Ceil(k/32)/float64(d.Units))
		r.aligned("size alignment", w, tile)
	}
	r.aligned("channel alignment", in, 2, 4, 8, 32)
	r.waste("channels to 8", in, 8)
	r.waste("channels to 32", in, 32)
	r.addRatio("input/cache", c.Dims.inputElements()*4/float64(d.Cache))
}

func (r *row) stream(d *Device, c *Call) {
	rows, width := float64(c.Dims.M), float64(c.Dims.K)
	elements, units := rows*width, float64(d.Units)
	r.addRatio("rows", rows)
	r.addRatio("width", width)
	r.addRatio("elements", elements)
	r.addRatio("rows/units", rows/units)
	r.addRatio("read", float64(c.Dims.Read)/elements+1e-3)
	r.addRatio("written", float64(c.Dims.Write)/elements+1e-3)
	r.addRatio("operations", float64(c.Dims.Ops)/elements+1e-3)
	waves := elements / (units * 1024)
	r.addRatio("waves", waves)
	r.addRatio("last wave", math.Ceil(waves)/waves)
	r.addRatio("last rows", math.Ceil(rows/units/4)/(rows/units/4))
	r.aligned("width alignment", width, 4)
	r.aligned("alignment", elements, 4)
	r.waste("width to 1024", width, 1024)
	r.waste("width to 32", width, 32)
	r.flag("short rows", width <= 1024)
	r.flag("middling rows", width <= 2048)
}
