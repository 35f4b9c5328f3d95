package reduce

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func meeting(folder string, number, replicas int) Meeting {
	return Meeting{Folder: folder, Number: number, Replicas: replicas, Network: "n"}
}

// Replicas meet in a folder, in any order, also where one that has ended has left its place, and whoever else connects.
func TestOpen(t *testing.T) {
	const replicas = 4
	folder := t.TempDir()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	if err := meeting(folder, 1, replicas).write(place{gone.Addr().String(), "old"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "2"), []byte("not a place"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := make([]*Line, replicas)
	for i, number := range rand.New(rand.NewPCG(1, 1)).Perm(replicas) {
		lines[number] = Open(meeting(folder, number, replicas))
		if i == 0 {
			continue
		}
		stranger(t, folder, replicas)
	}
	random := rand.New(rand.NewPCG(2, 2))
	g := gradients(random, replicas, 3*chunk+1)
	want := meanOf(g)
	for r, err := range reduceAll(t.Context(), lines, [][][]float32{g}) {
		if err != nil {
			t.Fatal(err)
		}
		if !sameBits(g[r], want) {
			t.Errorf("replica %d has other bits", r)
		}
	}
	for _, l := range lines {
		l.Close()
	}
}

// stranger connects to each place that is written down, says what is no hello, and sees the connection closed without
// an answer.
func stranger(t *testing.T, folder string, replicas int) {
	for number := range replicas {
		text, err := os.ReadFile(meeting(folder, number, replicas).file(number))
		var p place
		if err != nil || json.Unmarshal(text, &p) != nil {
			continue
		}
		c, err := net.Dial("tcp", p.Address)
		if err != nil {
			continue
		}
		if _, err := c.Write(make([]byte, 64)); err == nil {
			if answer, _ := io.ReadAll(c); len(answer) > 0 {
				t.Errorf("place %d answers a stranger: %x", number, answer)
			}
		}
		c.Close()
	}
}

// A place is read by its owner alone.
func TestPlaceIsPrivate(t *testing.T) {
	m := meeting(t.TempDir(), 0, 2)
	if err := m.write(place{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(m.file(0))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode %v", info.Mode())
	}
}

// Replicas that were not begun alike refuse each other.
func TestOpenDiffers(t *testing.T) {
	for name, change := range map[string]func(m *Meeting){
		"network":   func(m *Meeting) { m.Network = "other" },
		"iteration": func(m *Meeting) { m.Begin = 3 },
		"replicas":  func(m *Meeting) { m.Replicas = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			a, b := meeting(folder, 0, 2), meeting(folder, 1, 2)
			change(&b)
			lines := []*Line{Open(a), Open(b)}
			errs := reduceAll(t.Context(), lines, [][][]float32{make([][]float32, 2)})
			for r, err := range errs {
				want := fmt.Sprintf("replica %d trains another network, begins at another iteration", 1-r)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("replica %d: %v, want %q", r, err, want)
				}
				lines[r].Close()
			}
		})
	}
}

// A replica that waits for others ends its wait when it is told to, and says where it waited.
func TestOpenAlone(t *testing.T) {
	for _, number := range []int{0, 1, 2} {
		folder := t.TempDir()
		l := Open(meeting(folder, number, 3))
		ctx, cancel := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		waits.Go(func() {
			if err := l.Mean(ctx, 0, "a", []float32{1}); err == nil {
				t.Errorf("replica %d has a mean without the others", number)
			}
		})
		cancel()
		waits.Wait()
		l.Close()
	}
	if l := Open(meeting(filepath.Join(t.TempDir(), "none"), 0, 2)); l != nil {
		err := l.Mean(t.Context(), 0, "a", []float32{1})
		if err == nil || !strings.Contains(err.Error(), "meet the other replicas in ") {
			t.Errorf("without the folder: %v", err)
		}
		l.Close()
	}
}
