package data

import "fmt"

// SyntheticName is the name of sets that are made up.
const SyntheticName = "synthetic"

const (
	syntheticExamples = 4096

	// cells is the number of cells along each side of the grid that a pattern is stretched over.
	cells = 4

	// A node is uniform in +-nodeRange: after interpolation, which leaves 4/9 of the variance, a pattern has standard
	// deviation 0.5. Noise is a 16-bit integer times noiseStep: uniform with deviation 0.866. Together they make 1.
	nodeRange = 1.299
	noiseStep = 0.866 / 18918.6
)

// Synthetic makes a set of 4096 images of any shape on which training makes progress: every class has a smooth random
// pattern of its own, and an example is its class's pattern plus noise. Classes are equally frequent. Images are
// computed when they are asked for, so that the set takes no memory. The seed decides patterns, noise and order.
// It panics when an extent or the number of classes is below 1.
func Synthetic(channels, height, width, classes int, seed uint64) *Dataset {
	if channels < 1 || height < 1 || width < 1 || classes < 1 {
		panic(fmt.Sprintf("data: Synthetic of %dx%dx%d in %d classes", channels, height, width, classes))
	}
	s := &synthetic{
		channels: channels, classes: classes, rows: blends(height), columns: blends(width),
		pattern: derive(seed, tagPattern), noise: derive(seed, tagNoise),
	}
	return &Dataset{name: SyntheticName, channels: channels, height: height, width: width, classes: classes,
		examples: syntheticExamples, order: derive(seed, tagOrder), contents: s}
}

type synthetic struct {
	channels, classes int
	rows, columns     []blend
	pattern, noise    uint64 // keys
}

// blend places a pixel between two nodes of the grid.
type blend struct {
	node  int     // the nodes are this one and the next
	share float32 // of the next one
}

// blends places the centres of n pixels evenly over the cells.
func blends(n int) []blend {
	all := make([]blend, n)
	for i := range all {
		middle := (2*i + 1) * cells // in units of 1/(2n) cells
		all[i] = blend{middle / (2 * n), float32(middle%(2*n)) / float32(2*n)}
	}
	return all
}

// interpolate interpolates. The product is rounded before the sum, for equal bits on machines that could fuse the two.
func (b blend) interpolate(low, high float32) float32 {
	return low + float32(b.share*(high-low))
}

func (s *synthetic) example(index int, image []float32) (int, error) {
	class := index % s.classes
	noise := derive(s.noise, index)
	plane := len(image) / s.channels
	for c := range s.channels {
		s.plane(derive(derive(s.pattern, class), c), derive(noise, c), image[c*plane:(c+1)*plane])
	}
	return class, nil
}

// plane writes one channel: the pattern of one key, the noise of another. A hash makes the noise of four pixels.
func (s *synthetic) plane(pattern, noise uint64, out []float32) {
	var nodes [cells + 1][cells + 1]float32
	for i := range nodes {
		for j := range nodes[i] {
			nodes[i][j] = float32(int16(mix(pattern+uint64(i*(cells+1)+j)))) * (nodeRange / 32768)
		}
	}
	var line [cells + 1]float32
	var bits uint64
	at := 0
	for _, row := range s.rows {
		for j := range line {
			line[j] = row.interpolate(nodes[row.node][j], nodes[row.node+1][j])
		}
		for _, column := range s.columns {
			if at%4 == 0 {
				bits = mix(noise + uint64(at))
			}
			smooth := column.interpolate(line[column.node], line[column.node+1])
			out[at] = smooth + float32(float32(int16(bits))*noiseStep)
			bits >>= 16
			at++
		}
	}
}
