package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// tensile runs a command line in a folder and wants it to succeed without a word on stderr. It returns stdout.
func tensile(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	c := exec.Command("tensile", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GORACE="+noPause)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("tensile %q: %v, stderr: %s", args, err, &stderr)
	}
	return out
}

// document decodes the one JSON document that text must be.
func document(t *testing.T, text []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("more than one document in:\n%s", text)
	}
}

// files lists a folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return slices.Sorted(slices.Values(names))
}
