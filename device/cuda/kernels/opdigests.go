package kernels

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tensile/graph"
)

// OpDigests are digests of what each op of a graph has written, iteration after iteration: FNV-1a of 64 bits over the
// elements of all outputs, folded.
type OpDigests struct {
	Words      string // Arguments of tensile run for the network.
	Graph      graph.Digest
	Seed       uint64     // Seed of weights, data and dropout.
	Iterations [][]uint32 // per iteration and op
}

// Fold makes a digest of a sum.
func Fold(sum uint64) uint32 { return uint32(sum>>32) ^ uint32(sum) }

// Head is the comment at the head of a file of such digests.
const Head = "# Of each network the digests of what its ops have written, in their order; " +
	"each iteration begins a line.\n" +
	"# tensile debug ops WORDS --device cuda --against FILE compares.\n"

// perLine is how many digests a line has.
const perLine = 12

// String is the form of a file: a line that says what it is of, and then the digests.
func (o OpDigests) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: graph %s seed %d\n", o.Words, o.Graph, o.Seed)
	for _, ops := range o.Iterations {
		for i, d := range ops {
			if i > 0 && i%perLine == 0 {
				b.WriteString("\n+ ")
			} else if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%08x", d)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// ReadOpDigests reads a file of networks' digests.
func ReadOpDigests(r io.Reader) ([]OpDigests, error) {
	var all []OpDigests
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if words, rest, ok := strings.Cut(line, ": "); ok {
			o := OpDigests{Words: words}
			if _, err := fmt.Sscanf(rest, "graph %s seed %d", &o.Graph, &o.Seed); err != nil {
				return nil, fmt.Errorf("line %d: %q is no graph with a seed", n, rest)
			}
			all = append(all, o)
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("line %d: digests of no network", n)
		}
		o := &all[len(all)-1]
		digests, goesOn := strings.CutPrefix(line, "+ ")
		if !goesOn {
			o.Iterations = append(o.Iterations, nil)
		} else if len(o.Iterations) == 0 {
			return nil, fmt.Errorf("line %d: it goes on with an iteration that has not begun", n)
		}
		ops := &o.Iterations[len(o.Iterations)-1]
		for word := range strings.FieldsSeq(digests) {
			d, err := strconv.ParseUint(word, 16, 32)
			if err != nil {
				return nil, fmt.Errorf("line %d: %q is no digest", n, word)
			}
			*ops = append(*ops, uint32(d))
		}
	}
	return all, lines.Err()
}
