package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// The line that converts a pickle can be pasted into a shell, whatever the file is called.
func TestPickle(t *testing.T) {
	p := &packing{path: "my run.pickle", name: "my run.pickle"}
	err := p.readTrace(strings.NewReader("\x80\x04}."), nil, &swapFlags{})
	if err == nil || !strings.HasPrefix(err.Error(), "my run.pickle is a pickle, not JSON; convert it: python -c \"") ||
		!strings.HasSuffix(err.Error(), "\" 'my run.pickle' 'my run.pickle.json'") {
		t.Errorf("%v", err)
	}
	p.path, p.name = "-", "standard input"
	err = p.readTrace(strings.NewReader("\x80\x04}."), nil, &swapFlags{})
	if err == nil || !strings.HasPrefix(err.Error(), "standard input is a pickle, not JSON; convert it in the pipe: python") {
		t.Errorf("%v", err)
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"a/b-c_1.json": "a/b-c_1.json", "my run": "'my run'", "": "''", "~x": "'~x'",
		"it's": `'it'\''s'`, "$(id)": "'$(id)'", "a;b&c|d": "'a;b&c|d'", "é": "'é'", "*": "'*'"} {
		if got := shellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for _, word := range []string{"", "my run", "it's", "'", "''", `\`, `"$HOME"`, "`id`", "a\nb", "-x", "!1", "#", "{a,b}"} {
		var out bytes.Buffer
		c := exec.Command(shell, "-c", "printf %s "+shellWord(word))
		if c.Stdout = &out; c.Run() != nil || out.String() != word {
			t.Errorf("the shell takes %s for %q, want %q", shellWord(word), &out, word)
		}
	}
}
