//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"tensile/observe/report"
)

// TestPoolSignal stops a search that would go on for an hour. The best layout up to then is printed and written.
func TestPoolSignal(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		c := exec.Command("tensile", "pool", "-", "--deadline", "1h", "--capacity", "1", "--json", "--output",
			"out.csv")
		c.Dir = t.TempDir()
		c.Env = append(os.Environ(), "GORACE="+noPause)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		text := hardCSV(6000)
		if _, err := in.Write(text); err != nil { // more than a pipe holds: when it is written, the program listens
			t.Fatal(err)
		}
		if err := c.Process.Signal(signal); err != nil {
			t.Error(err)
		}
		in.Close()
		err = c.Wait()
		if code := c.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%v: exit status %d: %v, stderr: %s", signal, code, err, &stderr)
		}
		const note = "tensile: interrupted: this is the best layout up to then; standard input: the layout needs "
		if line, ended := strings.CutSuffix(stderr.String(), "\n"); !ended || strings.Contains(line, "\n") ||
			!strings.HasPrefix(line, note) {
			t.Errorf("%v: stderr is not one line that begins with %q: %q", signal, note, &stderr)
		}
		var got, again report.Packing
		document(t, stdout.Bytes(), &got)
		if !got.Valid || got.Buffers != 6000 || got.Height < got.LowerBound {
			t.Errorf("%v: %+v", signal, got)
		}
		document(t, tensile(t, c.Dir, "pool", "out.csv", "--json"), &again)
		if again.Height != got.Height {
			t.Errorf("%v: what was written has height %d, what was printed %d", signal, again.Height, got.Height)
		}
	}
}

// hardCSV has buffers without any pattern, so that a search finds no end.
func hardCSV(n int) []byte {
	var text bytes.Buffer
	fmt.Fprintln(&text, "id,lower,upper,size")
	x := uint64(1)
	next := func(below uint64) uint64 {
		x = x*6364136223846793005 + 1442695040888963407
		return x >> 33 % below
	}
	for i := range n {
		from := next(1 << 20)
		fmt.Fprintf(&text, "buffer %d,%d,%d,%d\n", i, from, from+1+next(1<<18), 1+next(1<<16))
	}
	return text.Bytes()
}
