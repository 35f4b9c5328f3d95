package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tensile/observe/web"
)

// The tokens of a page are in no log; at a terminal the one for looking is printed. Their file is its owner's alone.
func TestTokenInNoLog(t *testing.T) {
	f := &controllerFlags{state: t.TempDir(), http: anyPort}
	p, err := f.openPage(func(line string) { t.Error(line) })
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	kept, err := web.Read(f.state)
	if err != nil {
		t.Fatal(err)
	}
	var log, terminal bytes.Buffer
	said := func(line string) { log.WriteString(line + "\n") }
	p.ready(said, f.state, nil)
	p.ready(said, f.state, &terminal)
	for _, token := range []string{kept.View, kept.Steer} {
		if strings.Contains(log.String(), token) {
			t.Errorf("the log has the token %s:\n%s", token, &log)
		}
	}
	want := "page at http://" + kept.Address + "/, for who has a token: tensile controller page --state " +
		f.state + "\n"
	if log.String() != want+want {
		t.Errorf("the log is\n%s\nwant twice\n%s", &log, want)
	}
	if want := kept.URL(web.View) + "\n"; terminal.String() != want {
		t.Errorf("the terminal has %q, want %q", &terminal, want)
	}
	info, err := os.Stat(filepath.Join(f.state, web.FileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of tokens has mode %v (%v)", info.Mode(), err)
	}
	if f.log.format = textLog; f.terminal(&log) != nil {
		t.Error("a buffer counts as a terminal")
	}
}
