package ptx

import (
	"fmt"
	"strings"
)

// token is a piece of the text. Its kind is 'w' for a word (a name, a directive or a mnemonic with its modifiers, dots
// included), 'n' for a number, 's' for a string, the character itself for punctuation, and 0 at the end of the text.
type token struct {
	kind       byte
	text       string
	line       int
	begin, end int // in the text
}

// lexer cuts a text into tokens, without comments.
type lexer struct {
	text string
	at   int
	line int
}

// syntaxError is what is wrong with a line of the text.
type syntaxError struct {
	line int
	what string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("ptx: line %d: %s", e.line, e.what) }

func errorAt(line int, format string, args ...any) error {
	return &syntaxError{line, fmt.Sprintf(format, args...)}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '%' || c == '.'
}

// next returns the next token.
func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	begin := l.at
	if begin == len(l.text) {
		return token{line: l.line, begin: begin, end: begin}, nil
	}
	kind := l.text[begin]
	switch {
	case isDigit(kind):
		kind = 'n'
		l.word()
	case isWord(kind):
		kind = 'w'
		l.word()
	case kind == '"':
		kind = 's'
		length := strings.IndexAny(l.text[begin+1:], "\"\n")
		if length < 0 || l.text[begin+1+length] == '\n' {
			return token{}, errorAt(l.line, "the string has no end")
		}
		l.at += length + 2
	case strings.IndexByte("@!{}()[]<>,;:+-|=", kind) >= 0:
		l.at++
	default:
		return token{}, errorAt(l.line, "unexpected character %q", kind)
	}
	return token{kind, l.text[begin:l.at], l.line, begin, l.at}, nil
}

func (l *lexer) word() {
	for l.at < len(l.text) && isWord(l.text[l.at]) {
		l.at++
	}
}

// skip passes over white space and comments.
func (l *lexer) skip() error {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case rest[0] == '\n':
			l.line++
			l.at++
		case strings.IndexByte(" \t\r", rest[0]) >= 0:
			l.at++
		case strings.HasPrefix(rest, "//"):
			l.restOfLine()
		case strings.HasPrefix(rest, "/*"):
			length := strings.Index(rest, "*/")
			if length < 0 {
				return errorAt(l.line, "the comment has no end")
			}
			l.line += strings.Count(rest[:length], "\n")
			l.at += length + 2
		default:
			return nil
		}
	}
	return nil
}

// restOfLine passes over the rest of the line.
func (l *lexer) restOfLine() {
	length := strings.IndexByte(l.text[l.at:], '\n')
	if length < 0 {
		length = len(l.text) - l.at
	}
	l.at += length
}
