package trace

import (
	"fmt"
	"math"
	"strings"
	"unicode"
)

// Kind is what happens to a block.
type Kind uint8

const (
	Malloc Kind = iota // the block begins
	Free               // the block ends; its id may be given to another one
	Read               // something takes the block's content
	Write              // something changes the block's content, all of it or a part
)

var kindWords = [...]string{Malloc: "malloc", Free: "free", Read: "read", Write: "write"}

// String is the kind's word in the text form.
func (k Kind) String() string {
	if int(k) < len(kindWords) {
		return kindWords[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Event is one request or access.
type Event struct {
	Kind  Kind
	Block string // id, for example an address; printable, without spaces, no # at its start
	Bytes int64  // of a malloc; 0 for all others
}

// Trace is a sequence of events in the order in which they were issued. Every block is malloced before anything else
// happens to it, not malloced again before it is freed, and not touched after that. What was there before the trace
// began stands at its start as mallocs.
type Trace []Event

// ledger knows which blocks there are, and refuses events that do not fit.
type ledger struct {
	sizes map[string]int64
	load  int64
}

func newLedger() *ledger { return &ledger{sizes: make(map[string]int64)} }

func (l *ledger) add(e Event) error {
	size, there := l.sizes[e.Block]
	switch {
	case int(e.Kind) >= len(kindWords):
		return fmt.Errorf("%v is no kind of event", e.Kind)
	case e.Block == "" || e.Block[0] == '#' || strings.ContainsFunc(e.Block, strange):
		return fmt.Errorf("block id %s: an id is printable, has no spaces and does not begin with #", shorten(e.Block))
	case e.Kind != Malloc && !there:
		return fmt.Errorf("%s of block %s, which is not there: malloc it first; what was there before the trace "+
			"began stands"+
			" at its start as mallocs", e.Kind, shorten(e.Block))
	case e.Kind == Free:
		l.load -= size
		delete(l.sizes, e.Block)
	case e.Kind != Malloc:
	case there:
		return fmt.Errorf("malloc of block %s, which is there already: free it first", shorten(e.Block))
	case e.Bytes < 0:
		return fmt.Errorf("malloc of block %s: size %d is negative", shorten(e.Block), e.Bytes)
	case e.Bytes > math.MaxInt64-l.load:
		return fmt.Errorf("malloc of block %s: the blocks add up to more than an int64 holds", shorten(e.Block))
	default:
		l.load += e.Bytes
		l.sizes[e.Block] = e.Bytes
	}
	return nil
}

func strange(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == unicode.ReplacementChar
}

// shorten quotes a word for a message.
func shorten(s string) string { return fmt.Sprintf("%.40q", s) }

// place is a position in a file, for messages.
type place struct {
	file      string
	line, col int // from 1; columns count bytes
}

func (p place) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: "+format, append([]any{p.file, p.line, p.col}, args...)...)
}
