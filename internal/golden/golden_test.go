package golden

import (
	"fmt"
	"strings"
	"testing"
)

// counter answers how many words it was told.
type counter struct{ words int }

func (c *counter) Command(words []string) { c.words += len(words) }

func (c *counter) Answer() string {
	defer func() { c.words = 0 }()
	return fmt.Sprintln(c.words, "words")
}

// Answers are replaced up to the next empty line; prose is nobody's command, and nothing else changes.
func TestPlay(t *testing.T) {
	script := "# some prose here\none two\nthree\n----\nWHAT\nIT WAS\n\n\nfour\n----\n\n# the end\n"
	want := "# some prose here\none two\nthree\n----\n3 words\n\n\nfour\n----\n1 words\n\n# the end\n"
	got := play(script, &counter{})
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if again := play(got, &counter{}); again != got {
		t.Errorf("played again:\n%s\nwant:\n%s", again, got)
	}
	if strings.Contains(got, "WHAT") {
		t.Error("an old answer is left")
	}
}
