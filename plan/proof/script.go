package proof

import "tensile/graph"

// follows checks what the plan of a script's graph cannot choose: its ops run in their order, and make all outputs when
// they run for the first time. It notes what is held until when.
func (v *validator) follows() bool {
	next := graph.OpID(0)
	for i, s := range v.p.Steps {
		switch {
		case s.Op > next:
			v.say(i, -1, ErrOrder, "%s runs before %s", v.g.Ops[s.Op].Name, v.g.Ops[next].Name)
			return false
		case s.Op == next:
			if next++; s.Want != 0 {
				v.say(i, -1, ErrOrder, "%s makes all its outputs when it runs for the first time", v.g.Ops[s.Op].Name)
			}
		}
	}
	v.until = make([][]graph.StorageID, len(v.g.Ops)+1)
	for i := range v.g.Storages {
		if until := v.g.Storages[i].Until; until != 0 {
			v.until[until] = append(v.until[until], graph.StorageID(i))
		}
	}
	return len(v.problems) == 0
}

// held checks that what something holds until an op, or until the end, is there when the op before it has run.
func (v *validator) held(slot int, op graph.OpID) {
	for _, s := range v.until[op] {
		if v.device[s] != v.last[s] && v.host[s] != v.last[s] {
			v.say(slot, s, ErrLost, "version %d of %s, which the script holds, is neither on the device nor on the "+
				"host", v.last[s], v.name(s))
		}
	}
}
