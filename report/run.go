package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"

	"tensile/wire"
)

// Run is the outcome of training several jobs together.
type Run struct{ Jobs []JobRun }

// JobRun is the outcome of one job, and what was measured on the way.
type JobRun struct {
	wire.Result
	Iterations int // that are complete
	Watched    Watched
}

// digest identifies what a job has come to: two runs have one digest if all losses and weights have the same bits. It
// is empty without data.
func (j *JobRun) digest() string {
	if j.Weights == nil {
		return ""
	}
	sum := sha256.New()
	for _, loss := range j.Losses {
		fmt.Fprintf(sum, "%08x\n", math.Float32bits(loss))
	}
	for _, storage := range slices.Sorted(maps.Keys(j.Weights)) {
		fmt.Fprintf(sum, "%d %s\n", storage, j.Weights[storage])
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
