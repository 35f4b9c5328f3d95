package needs

import (
	"os"
	"strings"
	"testing"
)

func TestRoot(t *testing.T) {
	mod, err := os.ReadFile(root(t) + "/go.mod")
	if err != nil || !strings.HasPrefix(string(mod), "module tensile\n") {
		t.Fatalf("go.mod above the test's folder: %v, %q", err, mod)
	}
}
