// Package golden compares what code does with files that tell it, and rewrites these with -update.
package golden

import (
	"bufio"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Compare fails a test in which got is not what a file holds; with -update it becomes that.
func Compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// Player is something that is told commands, and answers with text.
type Player interface {
	Command(words []string)
	Answer() string // to all commands since the last one
}

// Play tells each script that a pattern matches to a new player. A script is prose behind '#', commands, and after "----"
// what the player has answered to them, up to an empty line.
func Play(t *testing.T, pattern string, player func(t *testing.T) Player) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts are %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			Compare(t, file, play(string(text), player(t)))
		})
	}
}

// play returns a script with the answers that a player gives now.
func play(text string, p Player) string {
	var got strings.Builder
	answering := false
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "":
			answering = false
			got.WriteByte('\n')
		case answering: // what it was before
		case line == "----":
			answering = true
			got.WriteString("----\n" + p.Answer())
		default:
			got.WriteString(line + "\n")
			if !strings.HasPrefix(line, "#") {
				p.Command(strings.Fields(line))
			}
		}
	}
	return got.String()
}
