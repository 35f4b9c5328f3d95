package main

import (
	"bufio"
	"io"
	"os"
	"strconv"
)

// bound is what binds an executor to the process that has started it: its standard input ends when that process does.
type bound struct {
	orphaned chan struct{} // closed when the input has ended
	removed  chan struct{} // closed when the folder is removed
}

// keepFolder is a line of the standard input: whoever sends it sees to the folder.
const keepFolder = "keep"

// bind reads numbers of iterations for until, which may be nil, from the standard input. When that has ended the folder
// is removed, unless a line said keepFolder, as nobody else is left to do it; then ended is called.
func bind(input io.Reader, folder string, until chan<- int, ended func()) *bound {
	b := &bound{orphaned: make(chan struct{}), removed: make(chan struct{})}
	go func() {
		lines, keeps := bufio.NewScanner(input), false
		for lines.Scan() {
			keeps = keeps || lines.Text() == keepFolder
			if n, err := strconv.Atoi(lines.Text()); err == nil && until != nil {
				until <- n
			}
		}
		close(b.orphaned)
		if !keeps {
			os.RemoveAll(folder)
		}
		close(b.removed)
		ended()
	}()
	return b
}

// leave waits until the folder is removed, if the parent has ended, so that the process does not end before that,
// whatever it has noticed first: the end of its input or of a connection.
func (b *bound) leave(parentEnded bool) {
	if !parentEnded {
		select {
		case <-b.orphaned:
		default:
			return
		}
	}
	<-b.removed
}
