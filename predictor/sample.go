package predictor

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
)

// Sample is a call that was measured.
type Sample struct {
	Call
	Device  int // Index in the list of devices that comes with the samples.
	Seconds float64
}

// operands of the streams of public data: how many tensors of the full shape are read. u stands for a scalar partner.
var operands = map[string]int{
	"add": 2, "mul": 2, "div": 2, "pow": 2, "addu": 1, "mulu": 1, "divu": 1, "powu": 1,
	"relu": 1, "tanh": 1, "gelu": 1, "softmax": 1, "ln": 1,
}

// ReadSamples reads a CSV file of measured ops in NeuSight's form: columns op, device, latency_ms and those of the op's
// sizes. The error for what cannot be read names file, row and column.
func ReadSamples(path string, devices []Device) ([]Sample, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	head, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: row 1: no header: %w", path, err)
	}
	c := &cursor{path: path, head: head, devices: make(map[string]int)}
	for i := range devices {
		c.devices[devices[i].Name] = i
	}
	var samples []Sample
	for {
		fields, err := r.Read()
		switch {
		case err == io.EOF:
			if len(samples) == 0 {
				return nil, fmt.Errorf("%s: no rows", path)
			}
			return samples, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err) // with line and column
		}
		c.fields = fields
		c.row, _ = r.FieldPos(0)
		s, err := c.sample()
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
}

// cursor is a row that is being read. The first problem stays.
type cursor struct {
	path    string
	head    []string
	devices map[string]int
	row     int
	fields  []string
	err     error
}

// rawNames are columns of NeuSight's files as they are, and what they are called here.
var rawNames = []struct{ from, to string }{{"OpName", "op"}, {"Device", "device"}, {"Latency", "latency_ms"}}

func (c *cursor) fail(column, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: row %d: column %s: %s", c.path, c.row, column, fmt.Sprintf(format, args...))
	}
}

// text is the field of a column, known by any of its names.
func (c *cursor) text(names ...string) string {
	for _, name := range names {
		if i := slices.Index(c.head, name); i >= 0 {
			if i >= len(c.fields) {
				c.fail(name, "the row ends before it")
				return ""
			}
			return c.fields[i]
		}
	}
	c.row = 1
	for _, raw := range rawNames {
		if raw.to == names[0] && slices.Contains(c.head, raw.from) {
			c.fail(names[0], "the header has NeuSight's own names: rename OpName, Device and Latency to op, device "+
				"and latency_ms")
		}
	}
	c.fail(names[0], "the header does not have it")
	return ""
}

// size is a whole number of at least least.
func (c *cursor) size(minimum int, names ...string) int {
	const maxSize = 1 << 31
	t := c.text(names...)
	n, err := strconv.Atoi(t)
	if err != nil || n < minimum || n > maxSize {
		c.fail(names[0], "%q is not a whole number from %d to 2^31", t, minimum)
		return minimum
	}
	return n
}

func (c *cursor) sample() (Sample, error) {
	var s Sample
	s.Kind = c.text("op")
	switch d := &s.Dims; s.Kind {
	case "linear":
		s.Form = Gemm
		*d = Dims{B: 1, M: c.size(1, "B") * c.size(1, "M"), N: c.size(1, "N"), K: c.size(1, "K")}
	case "bmm":
		s.Form = Gemm
		*d = Dims{B: c.size(1, "B"), M: c.size(1, "M"), N: c.size(1, "N"), K: c.size(1, "K")}
	case "conv":
		s.Form = Conv
		*d = c.conv()
	default:
		read, known := operands[s.Kind]
		if !known {
			c.fail("op", "unknown op %q", s.Kind)
		}
		s.Form = Stream
		*d = stream(c.size(1, "B"), c.size(1, "H"), read, 1)
	}
	name := c.text("device")
	var known bool
	if s.Device, known = c.devices[name]; !known {
		c.fail("device", "no device file describes %q", name)
	}
	t := c.text("latency_ms")
	ms, err := strconv.ParseFloat(t, 64)
	if err != nil || !(ms > 0 && ms < 1e9) {
		c.fail("latency_ms", "%q is not a positive number of milliseconds", t)
	}
	s.Seconds = ms / 1e3
	return s, c.err
}

// conv are the dims of a square convolution.
func (c *cursor) conv() Dims {
	size, window := c.size(1, "Input_Size"), c.size(1, "Kernel_Szie", "Kernel_Size")
	stride, padding := c.size(1, "Stride"), c.size(0, "Padding")
	out := (size+2*padding-window)/stride + 1
	if c.err == nil && window > size+2*padding {
		c.fail("Kernel_Szie", "a window of %d is larger than the padded input", window)
		out = 1
	}
	return Dims{B: c.size(1, "B"), C: c.size(1, "Input_Channel"), K: c.size(1, "Output_Channel"), H: size, W: size,
		P: out, Q: out,
		R: window, S: window, Stride: stride}
}

var errNoSamples = errors.New("no samples to train on")
