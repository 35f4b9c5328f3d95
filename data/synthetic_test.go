package data

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestSyntheticStatistics(t *testing.T) {
	for _, shape := range [][3]int{{1, 28, 28}, {3, 32, 32}, {3, 64, 48}, {4, 5, 7}} {
		d := Synthetic(shape[0], shape[1], shape[2], 10, 1)
		images, labels := make([]float32, 400*shape[0]*shape[1]*shape[2]), make([]float32, 400)
		d.Fill(0, images, labels)
		var sum, squares float64
		for _, v := range images {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		mean := sum / float64(len(images))
		deviation := math.Sqrt(squares/float64(len(images)) - mean*mean)
		if math.Abs(mean) > 0.1 || math.Abs(deviation-1) > 0.1 {
			t.Errorf("%v: mean %.3f and deviation %.3f, want about 0 and 1", shape, mean, deviation)
		}
	}
}

func TestSyntheticClassesAreBalanced(t *testing.T) {
	d := Synthetic(1, 1, 1, 7, 1)
	labels := make([]float32, d.Examples())
	d.Fill(0, make([]float32, d.Examples()), labels)
	var counts [7]int
	for _, l := range labels {
		counts[int(l)]++
	}
	if low, high := slices.Min(counts[:]), slices.Max(counts[:]); high-low > 1 {
		t.Errorf("examples per class: %v", counts)
	}
}

// The mean over a class's examples is its pattern: close to the pattern without noise, and smooth.
func TestSyntheticExamplesAreAPatternAndNoise(t *testing.T) {
	const side, class, examples = 32, 3, 400
	d := Synthetic(1, side, side, 10, 9)
	s := d.contents.(*synthetic)
	var mean [side * side]float64
	image := make([]float32, side*side)
	for k := range examples {
		if got, _ := s.example(k*10+class, image); got != class {
			t.Fatalf("example %d has class %d, want %d", k*10+class, got, class)
		}
		for i, v := range image {
			mean[i] += float64(v) / examples
		}
	}
	var across, between float64
	for i := range side * (side - 1) {
		across += math.Abs(mean[i])
		between += math.Abs(mean[i+side] - mean[i])
	}
	if across < 3*between {
		t.Errorf("the mean image has size %.1f and differs by %.1f from row to row: not smooth, or nothing but noise",
			across, between)
	}
}

// Softmax regression, the least of all networks, learns the classes: the loss starts near ln(10) and falls far below.
// With labels that are random to the images it would stay there.
func TestSyntheticCanBeLearnt(t *testing.T) {
	const classes, batch = 10, 64
	d := Synthetic(1, 14, 14, classes, 2)
	const size = 14 * 14
	weights := make([]float64, classes*size)
	images, labels := make([]float32, batch*size), make([]float32, batch)
	step := func(iteration int) (loss float64) {
		d.Fill(iteration, images, labels)
		gradient := make([]float64, len(weights))
		for k, label := range labels {
			x := images[k*size : (k+1)*size]
			var p [classes]float64
			total := 0.0
			for c := range p {
				for i, v := range x {
					p[c] += weights[c*size+i] * float64(v)
				}
				p[c] = math.Exp(p[c])
				total += p[c]
			}
			loss -= math.Log(p[int(label)]/total) / batch
			for c := range p {
				d := p[c] / total
				if c == int(label) {
					d--
				}
				for i, v := range x {
					gradient[c*size+i] += d * float64(v) / batch
				}
			}
		}
		for i, g := range gradient {
			weights[i] -= 0.02 * g
		}
		return loss
	}
	first := step(0)
	var last float64
	for i := 1; i <= 120; i++ {
		last = step(i)
	}
	if math.Abs(first-math.Log(classes)) > 1e-9 || last > 0.3 {
		t.Errorf("the loss goes from %.3f to %.3f, want from ln 10 to below 0.3", first, last)
	}
}

func TestSyntheticSeedDecidesEverything(t *testing.T) {
	fill := func(seed uint64) []float32 {
		images := make([]float32, 4*3*6*6)
		Synthetic(3, 6, 6, 5, seed).Fill(2, images, make([]float32, 4))
		return images
	}
	if !slices.Equal(fill(1), fill(1)) || slices.Equal(fill(1), fill(2)) {
		t.Error("equal seeds must give equal images and other seeds others")
	}
}

// The bits are a promise: a job resumed on another machine, or with a later release, sees the same images.
func TestSyntheticBitsAreFixed(t *testing.T) {
	images, labels := make([]float32, 8*3*9*10), make([]float32, 8)
	Synthetic(3, 9, 10, 5, 42).Fill(1000, images, labels)
	digest := fnv.New64a()
	for _, v := range slices.Concat(images, labels) {
		fmt.Fprintf(digest, "%08x", math.Float32bits(v))
	}
	const want = 0x47f1b00504a165dd
	if got := digest.Sum64(); got != want {
		t.Errorf("digest %#x, want %#x", got, uint64(want))
	}
}

func TestSyntheticPanicsOnMisuse(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.HasPrefix(text, "data: Synthetic of 3x0x32") {
			t.Errorf("panic %q, want one that names the package and the shape", text)
		}
	}()
	Synthetic(3, 0, 32, 10, 1)
}

func BenchmarkFill(b *testing.B) {
	for _, shape := range [][4]int{{128, 1, 28, 28}, {16, 3, 224, 224}} {
		b.Run(fmt.Sprintf("batch=%d/shape=%dx%dx%d", shape[0], shape[1], shape[2], shape[3]), func(b *testing.B) {
			d := Synthetic(shape[1], shape[2], shape[3], 10, 1)
			images, labels := make([]float32, shape[0]*shape[1]*shape[2]*shape[3]), make([]float32, shape[0])
			i := 0
			for b.Loop() {
				d.Fill(i, images, labels)
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*shape[0]), "us/image")
		})
	}
}
