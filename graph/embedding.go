package graph

import "fmt"

// Tables whose rows are looked up. Operand orders are part of a kind's meaning.
const (
	Embedding Kind = "embedding" // table[V,D] ids[N] -> y[N,D]; an id is a whole number below V
	// ids dy -> dtable: rows of equal id are added in their order; Extent[0] is V; Begin and Length: these rows alone
	EmbeddingDW Kind = "embedding_dw"
)

var embeddings = map[Kind]kind{
	Embedding: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: embeddingShapes, flops: noArithmetic,
		dtypes: indexedBy(1, Int64), traffic: embeddingTraffic},
	EmbeddingDW: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: embeddingDWShapes, flops: embeddingDWFLOPs,
		dtypes: indexedBy(0, Int64), traffic: embeddingDWTraffic, attrs: names("extent", "begin", "length")},
}

func embeddingShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := firstError(checkExtents("table", in[0], -1, -1), checkExtents("ids", in[1], -1)); err != nil {
		return nil, err
	}
	return []Shape{{in[1][0], in[0][1]}}, nil
}

func embeddingDWShapes(a Attrs, in []Shape) ([]Shape, error) {
	if err := checkExtents("ids", in[0], -1); err != nil {
		return nil, err
	}
	if err := checkExtents("dy", in[1], in[0][0], -1); err != nil {
		return nil, err
	}
	if a.Extent[0] < 1 {
		return nil, fmt.Errorf("a table of %d rows: the extent must be positive", a.Extent[0])
	}
	rows, err := a.rows(a.Extent[0])
	return []Shape{{rows, in[1][1]}}, err
}

// embeddingDWFLOPs counts, for a tile, the share of dy's rows that fall into it if ids are spread evenly.
func embeddingDWFLOPs(a Attrs, in, _ []Shape) int64 {
	return part(a, int64(in[1].Elements()), a.Extent[0])
}

func embeddingTraffic(_ Attrs, _ []Shape, in, out []Bytes) Bytes { return in[1] + 2*out[0] }

func embeddingDWTraffic(a Attrs, _ []Shape, in, out []Bytes) Bytes {
	return in[0] + part(a, in[1], a.Extent[0]) + out[0]
}
