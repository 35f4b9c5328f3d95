package trace

import "io"

// lines notes where lines begin in what is read through it, so that an offset can be told as line and column. It holds
// on to those after the offset that was last forgotten.
type lines struct {
	r      io.Reader
	read   int64   // bytes
	starts []int64 // of the lines after that of at, as offsets
	begin  int64   // offset of the line of at
	at     place
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.starts = append(l.starts, l.read+int64(i)+1)
		}
	}
	l.read += int64(n)
	return n, err
}

// forget says that no place before an offset will be asked for.
func (l *lines) forget(offset int64) {
	passed := 0
	for ; passed < len(l.starts) && l.starts[passed] <= offset; passed++ {
		l.begin = l.starts[passed]
	}
	l.at.line += passed
	l.starts = l.starts[passed:]
}

// place is that of an offset.
func (l *lines) place(offset int64) place {
	l.forget(offset)
	at := l.at
	at.col = int(offset-l.begin) + 1
	return at
}
