package program

import "tensile/graph"

// Group is a part of a section that is issued as a whole: commands [From, To), and the pages that they use or that hold
// content across them.
type Group struct {
	From, To int
	Need     Pages
}

// Groups divides the sections of a program that a job trains with. Base is held while the job is between iterations,
// and by the prologue and the epilogue.
type Groups struct {
	Page     graph.Bytes
	Base     Pages
	Body     []Group
	Snapshot []Group
}
