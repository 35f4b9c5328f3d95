package main

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"
)

// bar shows how far something is: a line that is redrawn on a terminal, else a line for each tenth.
type bar struct {
	out      io.Writer
	terminal bool
	tenth    int
	drawn    bool
}

func newBar(out io.Writer) *bar { return &bar{out: out, terminal: isTerminal(out)} }

// show draws the share that is done, from 0 to 1.
func (b *bar) show(done float64, what string) {
	const width = 30
	done = min(max(done, 0), 1)
	if b.terminal {
		full := int(done * width)
		fmt.Fprintf(b.out, "\r\x1b[2K[%s%s] %3.0f %%  %s", strings.Repeat("=", full), strings.Repeat(" ", width-full),
			100*done, what)
		b.drawn = true
		return
	}
	if tenth := int(done*10 + 1e-9); tenth > b.tenth {
		b.tenth = tenth
		fmt.Fprintf(b.out, "%3d %%  %s\n", 10*tenth, what)
	}
}

// end takes the line away.
func (b *bar) end() {
	if b.drawn {
		fmt.Fprint(b.out, "\r\x1b[2K")
	}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}
