package reduce

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"tensile/wire"
)

// OpenIn is Open for replicas on one host that find each other in a folder, which is of their job alone: all see it,
// and nobody else may write to it.
func OpenIn(folder string, p Place) *Line {
	l, own, err := Open(netip.MustParseAddr("127.0.0.1"), p)
	if err == nil && own != nil {
		err = write(filepath.Join(folder, strconv.Itoa(p.Number)), own)
	}
	if err != nil {
		if l == nil {
			l = &Line{number: p.Number, replicas: p.Replicas, joined: make(chan struct{}), cancel: func() {}}
			close(l.joined)
		}
		l.fail(fmt.Errorf("meet the other replicas in %s: %w", folder, err))
		return l
	}
	if p.Number > 0 {
		go l.look(filepath.Join(folder, strconv.Itoa(p.Number-1)))
	}
	return l
}

// look tells the line where the replica before it is, whenever that writes it down.
func (l *Line) look(file string) {
	const pause = 20 * time.Millisecond
	again := time.NewTicker(pause)
	defer again.Stop()
	var last wire.Meeting
	for {
		var m wire.Meeting
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &m) == nil && m != last {
			last = m
			l.Join(m)
		}
		select {
		case <-again.C:
		case <-l.joined:
			return
		}
	}
}

// write writes a meeting down, whole or not at all.
func write(file string, m *wire.Meeting) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".place-") // which nobody else may read
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
