package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The version is that of the newest section of the changelog.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## (\S+)`).FindSubmatch(text)
	if newest == nil || string(newest[1]) != version {
		t.Errorf("version %s, the changelog's newest section is %q", version, newest)
	}
}

// NOTICE names every module that is linked, and no other.
func TestNotice(t *testing.T) {
	notice, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := make(map[string]bool)
	for _, module := range strings.Fields(string(out)) {
		linked[module] = true
	}
	named := make(map[string]bool)
	for _, line := range regexp.MustCompile(`(?m)^  ([a-z0-9.]+/\S+) `).FindAllStringSubmatch(string(notice), -1) {
		named[line[1]] = true
	}
	for module := range linked {
		if !named[module] {
			t.Errorf("NOTICE does not name %s: see its licence and add it", module)
		}
	}
	for module := range named {
		if !linked[module] {
			t.Errorf("NOTICE names %s, which is not linked any more", module)
		}
	}
}
