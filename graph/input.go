package graph

import "slices"

// Holds says what an input holds, so that a loader knows what to fill it with. Networks that read sequences have
// examples of S steps; their tokens are int64, all else is float32.
type Holds string

const (
	Anything Holds = ""       // of no known meaning
	Images   Holds = "images" // [N,C,H,W]
	Labels   Holds = "labels" // [N]: the class of each image
	Counts   Holds = "counts" // whole numbers as float32, such as those of a mask

	Tokens       Holds = "tokens"  // [N,S]: a text
	SourceTokens Holds = "source"  // [N,S]: a text to be translated
	TargetTokens Holds = "target"  // [N,S]: its translation
	NextTokens   Holds = "next"    // [N,S]: the token after each of the text or translation, as a class
	HiddenTokens Holds = "hidden"  // [N,S]: the tokens that the text does not show, as classes; -1 where it shows them
	TokenTypes   Holds = "types"   // [N,S]: which of two sentences a token is of, 0 or 1
	Follows      Holds = "follows" // [N]: whether the second sentence follows the first, as a class

	Frames         Holds = "frames"   // [N,T,bands]: sound
	PreviousFrames Holds = "previous" // [N,T,bands]: the frame before each
	StopFlags      Holds = "stop"     // [N*T,1]: 1 at the last frame, else 0
)

var contents = []Holds{Anything, Images, Labels, Counts, Tokens, SourceTokens, TargetTokens, NextTokens, HiddenTokens,
	TokenTypes,
	Follows, Frames, PreviousFrames, StopFlags}

func (h Holds) isKnown() bool { return slices.Contains(contents, h) }
