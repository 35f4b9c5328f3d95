package data

import "math"

// stored is a set of images held in memory as bytes, one plane per channel, and normalised when they are asked for.
type stored struct {
	pixels []byte // examples*channels*plane
	labels []byte
	scale  [][256]float32 // per channel: the normalised value of each byte
}

// newStored measures the mean and standard deviation of every channel and makes the table that normalises by them.
func newStored(pixels, labels []byte, channels int) *stored {
	s := &stored{pixels: pixels, labels: labels, scale: make([][256]float32, channels)}
	for c, counts := range histograms(pixels, len(labels), channels) {
		var n, sum, squares uint64
		for value, count := range counts {
			v := uint64(value)
			n, sum, squares = n+count, sum+count*v, squares+count*v*v
		}
		mean := float64(sum) / float64(n)
		variance := float64(squares)/float64(n) - float64(mean*mean)
		deviation := math.Sqrt(max(variance, 0))
		if deviation < 1e-3 { // a channel of one value becomes zero
			deviation = 1
		}
		for value := range s.scale[c] {
			s.scale[c][value] = float32((float64(value) - mean) / deviation)
		}
	}
	return s
}

// newNormalized returns a set that is normalised as s is, by the mean and standard deviation of s.
func (s *stored) newNormalized(pixels, labels []byte) *stored {
	return &stored{pixels: pixels, labels: labels, scale: s.scale}
}

// histograms counts the byte values of every channel.
func histograms(pixels []byte, examples, channels int) [][256]uint64 {
	counts := make([][256]uint64, channels)
	plane := len(pixels) / (examples * channels)
	for at := 0; at < len(pixels); at += plane {
		h := &counts[at/plane%channels]
		for _, value := range pixels[at : at+plane] {
			h[value]++
		}
	}
	return counts
}

func (s *stored) example(index int, image []float32) (int, error) {
	pixels := s.pixels[index*len(image):][:len(image)]
	plane := len(image) / len(s.scale)
	for c := range s.scale {
		table := &s.scale[c]
		out := image[c*plane:][:plane]
		for i, value := range pixels[c*plane:][:plane] {
			out[i] = table[value]
		}
	}
	return int(s.labels[index]), nil
}
