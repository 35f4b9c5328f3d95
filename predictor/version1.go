package predictor

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// readVersion1 reads the form of model files before safetensors: a line with magic and version, and then, compressed, a
// line of JSON with everything but weights, and the weights as little-endian float32: per group and net, per layer, W
// row by row and B.
func readVersion1(r io.Reader) (*Model, error) {
	const limit = 64 << 20 // bytes of a model, uncompressed
	var v int
	if _, err := fmt.Fscanf(r, magic+" %d\n", &v); err != nil {
		return nil, errNoModel
	}
	if v != 1 {
		return nil, fmt.Errorf("%w: %d, this program reads 1 and %d: tensile predictor train or tensile calibrate "+
			"makes one", errVersion, v, version)
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("damaged model: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(z, limit))
	if err != nil {
		return nil, fmt.Errorf("damaged model: %w", err)
	}
	head, rest, _ := bytes.Cut(content, []byte("\n"))
	m, err := parse(head)
	if err == nil {
		err = m.fillVersion1(rest)
	}
	if err != nil {
		return nil, fmt.Errorf("damaged model: %w", err)
	}
	return m, nil
}

// fillVersion1 takes the weights from their bytes.
func (m *Model) fillVersion1(rest []byte) error {
	take := func(n int) ([]float32, error) {
		if len(rest) < 4*n {
			return nil, errors.New("weights are missing")
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:]))
		}
		rest = rest[4*n:]
		return x, checkFinite(x)
	}
	err := m.eachLayer(func(_ string, l *layer) (err error) {
		if l.W, err = take(l.In * l.Out); err == nil {
			l.B, err = take(l.Out)
		}
		return err
	})
	if err == nil && len(rest) != 0 {
		return fmt.Errorf("%d bytes follow the weights", len(rest))
	}
	return err
}
