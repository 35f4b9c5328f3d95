package wire

import (
	"cmp"
)

// Sharing is how the jobs of a device share its memory.
type Sharing string

const (
	NoSharing Sharing = ""          // each job has an arena of its own while it is not in Home
	Gates     Sharing = "gates"     // a lease grants the pages of one group of commands after the other
	Zico      Sharing = "zico"      // like Gates, and Zico's scheduler says when an iteration begins
	Waterwave Sharing = "waterwave" // like Gates, and groups are issued in Waterwave's pairs
	Slices    Sharing = "slices"    // a lease grants whole arenas in time slices, from Home to Home
)

// ParseSharing returns the Sharing of a word. The words shift and pairs are aliases of zico and waterwave. Any other
// word is returned as it is: it may be none of the constants.
func ParseSharing(word string) Sharing {
	switch word {
	case "shift":
		return Zico
	case "pairs":
		return Waterwave
	}
	return Sharing(word)
}

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts the aliases of ParseSharing, which older messages
// have.
func (s *Sharing) UnmarshalText(text []byte) error {
	*s = ParseSharing(string(text))
	return nil
}

// Method returns the word of the lease's method; "" where the lease grants what its rule allows.
func (s Sharing) Method() string {
	if s == Zico || s == Waterwave {
		return string(s)
	}
	return ""
}

// Gated reports whether a lease grants the pages of one group of commands after the other.
func (s Sharing) Gated() bool { return s == Gates || s.Method() != "" }

func (s Sharing) String() string { return cmp.Or(string(s), "none") }
