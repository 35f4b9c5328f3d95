package bus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A list of credentials that no release has written lets nobody in: what was revoked would be valid again.
func TestDamagedList(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"null":                      "is damaged: ",
		`{"sha256":"","issued":[]}`: "is damaged: its sum is another: ",
		`[{"user":"u-eve","revoked":0,"valid":false}]`: "is damaged: ",
		`[{"user":"u-eve","valid":false}]`:             "is damaged: ",
		`[{"user":"u-eve","revoked":-1,"valid":true}]`: "is damaged: ",

		`[{"user":"u-eve","revoked":1000000000000,"valid":true}]`: "is damaged: ",

		"":   "unexpected end",
		"[]": "",
		`[{"user":"u-eve","revoked":1,"valid":false},{"user":"x-lab","valid":true}]`: "",
	} {
		must(t, os.WriteFile(filepath.Join(dir, issuedFile), []byte(text), 0o600))
		_, err := Issues(dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
