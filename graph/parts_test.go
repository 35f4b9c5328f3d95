package graph

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Parts of two things, listed in any order, are found in the order in which they lie.
func TestParts(t *testing.T) {
	part := func(id StorageID, of string, begin Bytes) Storage {
		return Storage{ID: id, Role: State, PartOf: of, Begin: begin}
	}
	g := &Graph{Storages: []Storage{part(0, "m", 8), {ID: 1, Role: State}, part(2, "v", 0), part(3, "m", 0),
		part(4, "v", 4), part(5, "m", 4)}}
	if diff := cmp.Diff([][]StorageID{{3, 5, 0}, {2, 4}}, g.Parts()); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}
