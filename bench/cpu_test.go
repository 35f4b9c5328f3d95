package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What ends instead of answering is told by what it said last, or else by how it ended, and an interrupt as such.
func TestAskTorchFails(t *testing.T) {
	stopped := errors.New("interrupted")
	for script, want := range map[string]string{
		"echo first >&2; echo last >&2; exit 1": "python with PyTorch: last",
		"exit 3":                                "python with PyTorch: exit status 3",
		"kill -9 $$":                            "python with PyTorch: signal: killed",
		"exit 0":                                "python with PyTorch: no answer in JSON: unexpected end of JSON input",
		"exec sleep 100":                        "interrupted",
	} {
		python := filepath.Join(t.TempDir(), "python")
		if err := os.WriteFile(python, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		if want == stopped.Error() {
			cancel(stopped)
		}
		err := askTorch(ctx, python, new(CPUStep), "time")
		cancel(nil)
		if err == nil || !strings.HasSuffix(err.Error(), want) || errors.Is(err, stopped) != (want == stopped.Error()) {
			t.Errorf("%s: error %v, want %s", script, err, want)
		}
	}
}
