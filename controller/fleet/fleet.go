package fleet

import (
	"iter"
	"maps"
	"slices"
)

// Fleet has the executors that may live, or were heard of lately, by name.
type Fleet map[string]*Executor

// Sorted are the executors in the order of their names.
func (f Fleet) Sorted() []*Executor {
	list := make([]*Executor, 0, len(f))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		list = append(list, f[name])
	}
	return list
}

// AtDevice are the executors that have a device open, or are to have it open.
func (f Fleet) AtDevice(device string) iter.Seq[*Executor] {
	return func(yield func(*Executor) bool) {
		for _, x := range f {
			if x.Device == device && !x.IsGone() && !yield(x) {
				return
			}
		}
	}
}

// Count is how many executors of a device can be reached, and how many are out of reach.
func (f Fleet) Count(device string) (here, silent int) {
	for x := range f.AtDevice(device) {
		switch {
		case x.IsSilent():
			silent++
		case x.IsHere():
			here++
		}
	}
	return here, silent
}

// IsByHand reports whether there are executors that were started by hand and take jobs.
func (f Fleet) IsByHand() bool {
	for _, x := range f {
		if x.Kind == ByHand && x.LastStatus > 0 && !x.IsGone() && x.State != Leaving {
			return true
		}
	}
	return false
}
