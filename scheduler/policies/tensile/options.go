package tensile

import "tensile/scheduler/draft"

// Options switch parts of the policy off, for ablation. The zero value is the recommended setting.
type Options struct {
	KeepOrder   bool // leave updates at the end of the iteration
	NoSwap      bool // plan no swaps that fit into free link time; those that stall stay possible
	NoRecompute bool
	NoChains    bool // recompute nothing whose inputs have to be recomputed for it
	NoStall     bool // plan no swaps that stall
	LateOut     bool // copy out after the access before the gap, not as soon as the content is made
	OneChannel  bool // book both directions on one lane, as TENSILE does
	NoRelax     bool // prefetch as late and evict as early as the peak demanded
	MaxRounds   int  // of packing and tightening for one order of the ops; 0: 12
}

func (o *Options) style() draft.Style {
	return draft.Style{LateOut: o.LateOut, OneChannel: o.OneChannel}
}
