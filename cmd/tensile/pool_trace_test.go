package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// The line that converts a pickle can be pasted into a shell, whatever the file is called.
func TestPickle(t *testing.T) {
	const pickle = "\x80\x04}."
	for _, c := range []struct{ path, name, start, end string }{
		{"my run.pickle", "my run.pickle", "my run.pickle is a pickle, not JSON; convert it: python -c \"",
			"\" 'my run.pickle' 'my run.pickle.json'"},
		{"a\nb", "a\nb", "a\nb is a pickle, not JSON; convert it in the pipe: python -c \"", "\""},
		{"-", "standard input", "standard input is a pickle, not JSON; convert it in the pipe: python -c \"", "\""},
	} {
		p := &packing{path: c.path, name: c.name}
		err := p.readTrace(strings.NewReader(pickle), nil, &swapFlags{})
		if err == nil || !strings.HasPrefix(err.Error(), c.start) || !strings.HasSuffix(err.Error(), c.end) {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"a/b-c_1.json": "a/b-c_1.json", "my run": "'my run'", "": "''",
		"~x": "'~x'", "it's": `'it'\''s'`, "$(id)": "'$(id)'", "a;b&c|d": "'a;b&c|d'", "é": "'é'", "*": "'*'"} {
		if got := shellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs sh: install Debian's dash")
	}
	for _, word := range []string{"", "my run", "it's", "'", "''", `\`, `"$HOME"`, "`id`", "a\nb", "-x", "!1", "#",
		"{a,b}"} {
		var out bytes.Buffer
		c := exec.Command(shell, "-c", "printf %s "+shellWord(word))
		if c.Stdout = &out; c.Run() != nil || out.String() != word {
			t.Errorf("the shell takes %s for %q, want %q", shellWord(word), &out, word)
		}
	}
}
