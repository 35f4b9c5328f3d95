package live

import (
	"strconv"

	"tensile/wire"
)

// maxCurve is how many points a [Job.Curve] has at most.
const maxCurve = 32

// curveOf is the Curve of losses, oldest first. Each point is the newest loss up to its iteration, in four digits: more
// are not seen in a small picture.
func curveOf(losses []Loss) (curve []wire.Loss) {
	n := min(maxCurve, len(losses))
	if n < 2 {
		return nil
	}
	first, length := losses[0].Iteration, losses[len(losses)-1].Iteration-losses[0].Iteration
	at := 0
	for k := range n {
		for at+1 < len(losses) && losses[at+1].Iteration-first <= k*length/(n-1) {
			at++
		}
		curve = append(curve, roundedLoss(losses[at].Loss))
	}
	return curve
}

// roundedLoss returns a loss rounded to four digits.
func roundedLoss(l wire.Loss) wire.Loss {
	f, err := strconv.ParseFloat(strconv.FormatFloat(float64(l), 'g', 4, 32), 32)
	if err != nil { // rounded up it is too large
		return l
	}
	return wire.Loss(f)
}
