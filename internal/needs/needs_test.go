package needs

import (
	"os"
	"strings"
	"testing"
)

func TestRoot(t *testing.T) {
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(dir + "/go.mod")
	if err != nil || !strings.HasPrefix(string(mod), "module tensile\n") {
		t.Fatalf("go.mod above the test's folder: %v, %q", err, mod)
	}
}
