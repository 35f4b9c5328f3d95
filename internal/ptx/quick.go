package ptx

// execution executes an instruction for the lanes m.
type execution func(w *warp, in *instruction, m uint32) bool

// quick returns a loop of its own for the most frequent instructions, or what was given.
func quick(key string, t typ, otherwise execution) execution { return otherwise }
