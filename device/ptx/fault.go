package ptx

import "fmt"

// Kind is what a kernel did wrong.
type Kind uint8

const (
	BadAddress Kind = iota + 1 // outside of any allocation
	Misaligned                 // an address that is no multiple of the size of what is accessed
	Unwritten                  // what nothing has written is read, in memory or a register
	Race                       // two threads use the same bytes, one writes them, and nothing orders them
	Divergent                  // threads that must come together cannot
	Endless                    // a thread executes too many instructions
	Trap                       // trap, or an operation that PTX leaves undefined
)

// Fault is the first thing that a kernel did wrong in a launch.
type Fault struct {
	Kind    Kind
	Kernel  string
	Line    int    // of the instruction in the text of the module
	Text    string // the instruction
	Block   [3]uint32
	Thread  [3]uint32
	Address uint64 // of an access
	What    string
}

func (f *Fault) Error() string {
	at := ""
	if f.Address != 0 || f.Kind == BadAddress {
		at = fmt.Sprintf(" at address 0x%x", f.Address)
	}
	return fmt.Sprintf("ptx: kernel %s, line %d, %q: block %v, thread %v%s: %s",
		f.Kernel, f.Line, f.Text, f.Block, f.Thread, at, f.What)
}

// fail records a fault of a lane, of which only the first counts, and returns false.
func (w *warp) fail(in *instruction, lane int, kind Kind, address uint64, format string, args ...any) bool {
	if w.fault == nil {
		at := w.k.where[in.index]
		w.fault = &Fault{
			Kind: kind, Kernel: w.k.Name, Line: at.line, Text: at.text, Address: address,
			Block: w.r.block, Thread: w.r.thread(w.number*32 + uint32(lane)), What: fmt.Sprintf(format, args...),
		}
	}
	return false
}
