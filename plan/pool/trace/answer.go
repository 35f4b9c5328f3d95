package trace

import "errors"

// Answer says what is to be packed for a record. What has less than Peak at once is no layout of the record.
type Answer struct {
	Found     Iteration  // of the record; Repeats is 1 if it has none
	Part      *PartError // what repeats instead of an iteration; nil: nothing does, or there is an iteration
	Whole     bool       // the lifetimes are those of the whole record
	Lifetimes *Lifetimes

	Peak   int64 // bytes: the most that the record held at once
	WarmUp int64 // before the first iteration, or before what repeats instead
	Steady int64 // in the iterations, or in what repeats instead
	Tail   int64 // after the last of them
}

// AnswerOf finds the iteration of a record and takes the lifetimes of its blocks; or those of the whole record where it
// has no iteration, or holds more at once before the first one or after the last. inside takes the iteration even so.
// The error names the first event that does not fit those before it.
func AnswerOf(r *Record, inside bool) (*Answer, error) {
	a := &Answer{}
	it, err := Find(r.Trace, r.Before)
	if err != nil && !errors.Is(err, errNoIteration) {
		return nil, err
	}
	a.Part, _ = errors.AsType[*PartError](err)
	if a.Found = it; err != nil {
		a.Found = whole(r.Trace, r.Before)
	}
	inner := a.Found
	if a.Part != nil {
		inner = a.Part.Iteration
	}
	a.Peak = r.Trace.peak(0, len(r.Trace))
	a.WarmUp = r.Trace.peak(0, inner.From)
	a.Steady = r.Trace.peak(inner.From, inner.end())
	a.Tail = r.Trace.peak(inner.end(), len(r.Trace))
	packed := a.Found
	if a.Whole = err != nil || a.Peak > a.Steady && !inside; a.Whole {
		packed = whole(r.Trace, r.Before)
	}
	if packed.Events == 0 {
		packed = whole(r.Trace, 0) // nothing happens to what was there before
	}
	a.Lifetimes, err = LifetimesOf(r.Trace, packed, LifetimeOptions{})
	return a, err
}

// peak is the most bytes held at once from before event from on until after the last one before to.
func (t Trace) peak(from, to int) int64 {
	sizes := make(map[string]int64)
	var now, most int64
	for i, e := range t[:to] {
		if i == from {
			most = now
		}
		switch e.Kind {
		case Malloc:
			sizes[e.Block] = e.Bytes
			now += e.Bytes
		case Free:
			now -= sizes[e.Block]
		}
		if i >= from {
			most = max(most, now)
		}
	}
	if from == to {
		return now
	}
	return most
}
