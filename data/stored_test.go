package data

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Every channel of the whole set has mean 0 and standard deviation 1 after normalisation.
func TestStoredIsNormalisedPerChannel(t *testing.T) {
	const examples, channels, plane = 50, 3, 24
	random := rand.New(rand.NewPCG(1, 2))
	pixels := make([]byte, examples*channels*plane)
	for i := range pixels {
		c := i / plane % channels
		pixels[i] = byte(60*c + random.IntN(20+40*c))
	}
	s := newStored(pixels, make([]byte, examples), channels)
	image := make([]float32, channels*plane)
	var sum, squares [channels]float64
	for i := range examples {
		s.example(i, image)
		for k, v := range image {
			sum[k/plane] += float64(v)
			squares[k/plane] += float64(v) * float64(v)
		}
	}
	for c := range channels {
		mean := sum[c] / (examples * plane)
		deviation := math.Sqrt(squares[c]/(examples*plane) - mean*mean)
		if math.Abs(mean) > 1e-5 || math.Abs(deviation-1) > 1e-5 {
			t.Errorf("channel %d has mean %g and deviation %g, want 0 and 1", c, mean, deviation)
		}
	}
}

func TestStoredKeepsOrderOfPixelsAndLabels(t *testing.T) {
	s := newStored([]byte{0, 1, 2, 3, 10, 11, 12, 13}, []byte{4, 9}, 2)
	image := make([]float32, 4)
	if class, _ := s.example(1, image); class != 9 {
		t.Errorf("class %d, want 9", class)
	}
	for i, value := range []int{10, 11, 12, 13} {
		if want := s.scale[i/2][value]; image[i] != want {
			t.Errorf("pixel %d is %v, want %v, the value of byte %d in channel %d", i, image[i], want, value, i/2)
		}
	}
	if s.scale[0][1] <= s.scale[0][0] {
		t.Error("a brighter byte is not a larger value")
	}
}

func TestStoredConstantChannelIsZero(t *testing.T) {
	s := newStored([]byte{200, 200, 200, 200}, []byte{0, 1}, 1)
	image := make([]float32, 2)
	s.example(0, image)
	if image[0] != 0 || image[1] != 0 {
		t.Errorf("a set of one colour becomes %v, want zeros", image)
	}
}
