package trace

// run is a part of a sequence, [from, to), that repeats with a period at least twice and cannot be longer.
type run struct{ from, to, period int }

func (r run) length() int { return r.to - r.from }

// runs returns every run with its smallest period, each once or twice: fewer than there are elements (Bannai et al.,
// The "runs" theorem, SIAM J. Comput. 2017). Every run has a Lyndon word as period under the order of the elements or
// under its reverse, and that word is the longest one which begins at its place; so it is enough to extend, for each
// place and both orders, the longest Lyndon word. O(n log n).
func runs(of []int32) []run {
	e := newExtender(of)
	var found []run
	ends := make([]int, len(of)) // of the longest Lyndon word at a place: where the next smaller suffix begins
	for _, reverse := range []bool{false, true} {
		for i := len(of) - 1; i >= 0; i-- {
			end := i + 1
			for end < len(of) && !e.smaller(end, i, reverse) {
				end = ends[end]
			}
			ends[i] = end
			r := run{period: end - i}
			r.from, r.to = i-e.backward(i, end), end+e.forward(i, end)
			if r.length() >= 2*r.period && i-r.from < r.period { // else it has another such word before this one
				found = append(found, r)
			}
		}
	}
	return found
}

// smaller compares the suffix at a later place with that at an earlier one. The end of the sequence is smaller than any
// element.
func (e *extender) smaller(later, earlier int, reverse bool) bool {
	same := e.forward(later, earlier)
	if later+same == len(e.of) {
		return true
	}
	return (e.of[later+same] < e.of[earlier+same]) != reverse
}
