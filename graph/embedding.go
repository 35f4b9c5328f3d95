package graph

import "fmt"

// Tables whose rows are looked up. Operand orders are part of a kind's meaning.
const (
	Embedding   Kind = "embedding"    // table[V,D] ids[N] -> y[N,D]; an id is a whole number below V
	EmbeddingDW Kind = "embedding_dw" // ids dy -> dtable: rows of equal id are added in their order; Extent[0] is V
)

var embeddings = map[Kind]kind{
	Embedding: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: embeddingShapes, flops: none,
		dtypes: indexedBy(1, Int64), traffic: embeddingTraffic},
	EmbeddingDW: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: embeddingDWShapes, flops: perSecond(1),
		dtypes: indexedBy(0, Int64), attrs: names("extent")},
}

func embeddingShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := first(wants("table", in[0], -1, -1), wants("ids", in[1], -1)); err != nil {
		return nil, err
	}
	return []Shape{{in[1][0], in[0][1]}}, nil
}

func embeddingDWShapes(a Attrs, in []Shape) ([]Shape, error) {
	if err := wants("ids", in[0], -1); err != nil {
		return nil, err
	}
	if err := wants("dy", in[1], in[0][0], -1); err != nil {
		return nil, err
	}
	if a.Extent[0] < 1 {
		return nil, fmt.Errorf("a table of %d rows: the extent must be positive", a.Extent[0])
	}
	return []Shape{{a.Extent[0], in[1][1]}}, nil
}

func embeddingTraffic(in, out []Bytes) Bytes { return in[1] + 2*out[0] }
