package pool

import (
	"os"
	"strings"
	"testing"

	"tensile/internal/needs"
)

// readInstance reads a file of the shared data, which is named by slashes.
func readInstance(tb testing.TB, name string) []Buffer {
	tb.Helper()
	path := needs.Data(tb, strings.Split(name, "/")...)
	file, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	_, buffers, err := ReadCSV(file, path)
	if err != nil {
		tb.Fatal(err)
	}
	return buffers
}

// Real training steps, and instances made to be hard. The ratios are a little above what is reached.
func TestInstances(t *testing.T) {
	for _, c := range []struct {
		file    string
		buffers int
		ratio   float64
	}{
		{"somas/resnet50.csv", 1042, 1.001},
		{"somas/tiny_bert.csv", 1821, 1.0001},
		{"somas/bert_base.csv", 5620, 1.0001},
		{"minimalloc/A.1048576.csv", 154, 1.02},
		{"minimalloc/B.1048576.csv", 170, 1.03},
		{"minimalloc/C.1048576.csv", 203, 1},
		{"minimalloc/D.1048576.csv", 213, 1.15},
		{"minimalloc/E.1048576.csv", 215, 1.07},
		{"minimalloc/F.1048576.csv", 296, 1.01},
		{"minimalloc/G.1048576.csv", 308, 1.03},
		{"minimalloc/input.12.csv", 5, 1},
	} {
		t.Run(c.file, func(t *testing.T) {
			buffers := readInstance(t, c.file)
			if len(buffers) != c.buffers {
				t.Fatalf("%d buffers, want %d", len(buffers), c.buffers)
			}
			l := packed(t, c.file, buffers)
			ratio := float64(l.Height) / float64(l.LowerBound)
			t.Logf("height %d, lower bound %d, ratio %.5f", l.Height, l.LowerBound, ratio)
			if ratio > c.ratio {
				t.Errorf("ratio %.5f, want at most %.5f", ratio, c.ratio)
			}
		})
	}
}
