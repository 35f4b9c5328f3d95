package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// version is that of the text form; the word before it begins the header line.
const (
	header  = "trace"
	version = "1"
)

// longest is the longest line that is read, in bytes.
const longest = 1 << 16

// parse reads the text form (see the package's comment). name is the file's, for errors, which name line and column.
// Memory is a small multiple of the input.
func parse(r io.Reader, name string) (Trace, error) {
	p := parser{at: place{file: name}, ledger: newLedger(), names: make(map[string]string)}
	in := bufio.NewReaderSize(r, longest)
	for {
		p.at.line++
		line, err := in.ReadSlice('\n')
		if p.at.col = 1; errors.Is(err, bufio.ErrBufferFull) {
			return nil, p.at.errorf("the line is longer than %d bytes", longest)
		}
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := p.line(line); err != nil {
			return nil, err
		}
		if err == io.EOF {
			return p.trace, nil
		}
	}
}

type parser struct {
	at     place
	begun  bool // a line that is no comment was read
	ledger *ledger
	names  map[string]string // one string per id
	trace  Trace
}

// word is a part of a line and the column in which it begins.
type word struct {
	text []byte
	col  int
}

// split returns the words of a line up to a comment, at most one more than a line may have.
func split(line []byte) []word {
	words := make([]word, 0, 4)
	for i := 0; i < len(line) && len(words) < cap(words); {
		if blank(line[i]) {
			i++
			continue
		}
		if line[i] == '#' {
			break
		}
		start := i
		for i < len(line) && !blank(line[i]) {
			i++
		}
		words = append(words, word{line[start:i], start + 1})
	}
	return words
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// line reads one line.
func (p *parser) line(line []byte) error {
	words := split(line)
	if len(words) == 0 {
		return nil
	}
	first := !p.begun
	p.begun = true
	if first && string(words[0].text) == header {
		return p.header(words)
	}
	e, err := p.event(words)
	if err != nil {
		return err
	}
	if err := p.ledger.add(e); err != nil {
		p.at.col = words[1].col
		return p.at.errorf("%w", err)
	}
	p.trace = append(p.trace, e)
	return nil
}

func (p *parser) header(words []word) error {
	if len(words) != 2 || string(words[1].text) != version {
		p.at.col = words[min(1, len(words)-1)].col
		return p.at.errorf("the header of the only version there is reads %q", header+" "+version)
	}
	return nil
}

// event reads the words of an event.
func (p *parser) event(line []word) (Event, error) {
	p.at.col = line[0].col
	kind := slices.Index(kindWords[:], string(line[0].text))
	if kind < 0 {
		return Event{}, p.at.errorf("%s is no event; it takes malloc BLOCK SIZE, free BLOCK, read BLOCK or write BLOCK",
			shorten(string(line[0].text)))
	}
	e := Event{Kind: Kind(kind)}
	want := 2
	if e.Kind == Malloc {
		want = 3
	}
	if len(line) != want {
		p.at.col = line[min(want, len(line)-1)].col
		return e, p.at.errorf("%s takes %s", e.Kind, map[int]string{2: "a block, nothing else",
			3: "a block and its size"}[want])
	}
	if e.Kind == Malloc {
		var err error
		if e.Bytes, err = strconv.ParseInt(string(line[2].text), 10, 64); err != nil || e.Bytes < 0 {
			p.at.col = line[2].col
			return e, p.at.errorf("size %s is not a number of bytes from 0 to 2^63-1", shorten(string(line[2].text)))
		}
	}
	e.Block = intern(p.names, line[1].text)
	return e, nil
}

// intern returns the one string of an id.
func intern(names map[string]string, id []byte) string {
	if name, ok := names[string(id)]; ok {
		return name
	}
	name := string(bytes.ToValidUTF8(id, []byte("\uFFFD")))
	names[string(id)] = name
	return name
}

// WriteTo writes the text form, header included. The error names the first event that it cannot hold.
func (t Trace) WriteTo(w io.Writer) (int64, error) {
	count := &counter{w: w}
	out := bufio.NewWriter(count)
	fmt.Fprintf(out, "%s %s\n", header, version)
	known := newLedger()
	for i, e := range t {
		if err := known.add(e); err != nil {
			return count.n, fmt.Errorf("write a trace: event %d: %w", i, err)
		}
		if fmt.Fprintf(out, "%s %s", e.Kind, e.Block); e.Kind == Malloc {
			fmt.Fprintf(out, " %d", e.Bytes)
		}
		out.WriteByte('\n')
	}
	err := out.Flush()
	return count.n, err
}

// counter counts the bytes that were written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
