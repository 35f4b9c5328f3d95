package reduce

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Meeting is where the replicas of a job meet.
type Meeting struct {
	Folder           string // of this job alone, which all replicas see and nobody else writes to
	Number, Replicas int
	Begin            int    // the iteration before which this replica begins
	Network          string // what it trains; all replicas must name the same
}

// Open returns a replica's place in a line that is made meanwhile: the first Mean waits for it.
func Open(m Meeting) *Line {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Line{number: m.Number, replicas: m.Replicas, joined: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(l.joined)
		below, above, err := m.join(ctx)
		l.mu.Lock()
		if l.err == nil && err == nil {
			l.below, l.above = below, above
		}
		l.mu.Unlock()
		switch {
		case err != nil:
			l.fail(fmt.Errorf("meet the other replicas in %s: %w", m.Folder, err))
		case l.failure() != nil:
			closeAll(below, above)
		}
	}()
	return l
}

// place is what a replica writes down for the next one.
type place struct {
	Address string `json:"address"`
	Key     string `json:"key"`
}

func (m Meeting) file(number int) string { return filepath.Join(m.Folder, strconv.Itoa(number)) }

// join connects a replica with those before and behind it.
func (m Meeting) join(ctx context.Context) (below, above io.ReadWriteCloser, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var joining sync.WaitGroup
	var errs [2]error
	if m.Number > 0 {
		joining.Go(func() {
			if below, errs[0] = m.dial(ctx); errs[0] != nil {
				cancel()
			}
		})
	}
	if m.Number < m.Replicas-1 {
		joining.Go(func() {
			if above, errs[1] = m.listen(ctx); errs[1] != nil {
				cancel()
			}
		})
	}
	joining.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		closeAll(below, above)
		return nil, nil, err
	}
	return below, above, nil
}

func closeAll(all ...io.ReadWriteCloser) {
	for _, c := range all {
		if c != nil {
			c.Close()
		}
	}
}

// listen writes down where this replica is, and waits for the next one.
func (m Meeting) listen(ctx context.Context) (io.ReadWriteCloser, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	p := place{Address: l.Addr().String(), Key: rand.Text()}
	if err := m.write(p); err != nil {
		return nil, err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
		switch err := m.greet(ctx, c, p.Key, m.Number+1, false); {
		case err == nil:
			return c, nil
		case errors.As(err, new(*differsError)):
			c.Close()
			return nil, err
		}
		c.Close() // whoever that was, it was not the next replica
	}
}

// write writes a place down, whole or not at all.
func (m Meeting) write(p place) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(m.Folder, ".place-") // which nobody else may read
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), m.file(m.Number))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// dial connects to the replica before this one, as soon as that has written down where it is. What stands there may be
// of one that has ended.
func (m Meeting) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	const pause = 20 * time.Millisecond
	retry := time.NewTicker(pause)
	defer retry.Stop()
	for {
		c, err := m.try(ctx)
		if err == nil || errors.As(err, new(*differsError)) {
			return c, err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

func (m Meeting) try(ctx context.Context) (io.ReadWriteCloser, error) {
	text, err := os.ReadFile(m.file(m.Number - 1))
	if err != nil {
		return nil, err
	}
	var p place
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", m.file(m.Number-1), err)
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return nil, err
	}
	if err := m.greet(ctx, c, p.Key, m.Number-1, true); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// hello is what two neighbours tell each other: digests of equal length, so that nothing that a stranger sends is
// waited for or read for long.
type hello struct {
	key [sha256.Size]byte // of the place, and who says it
	job [sha256.Size]byte
}

func (m Meeting) hello(key string, number int) (h hello) {
	copy(h.key[:], digest(fmt.Sprintf("%s %d", key, number)))
	copy(h.job[:], digest(fmt.Sprintf("%d %d %s", m.Replicas, m.Begin, m.Network)))
	return h
}

// differsError tells of a neighbour that is the right one, and trains something else.
type differsError struct{ replica int }

func (e *differsError) Error() string {
	return fmt.Sprintf("replica %d trains another network, begins at another iteration or has another number of "+
		"replicas: begin all replicas of a job alike", e.replica)
}

// greet makes sure that a connection leads to a neighbour, which is to answer within a while. Who dials speaks first.
func (m Meeting) greet(ctx context.Context, c net.Conn, key string, neighbour int, first bool) error {
	const limit = time.Minute // for a stranger that says nothing; a neighbour that is so late comes again
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { c.Close() })()
	own, theirs := m.hello(key, m.Number), m.hello(key, neighbour)
	send := func() error {
		_, err := c.Write(append(own.key[:], own.job[:]...))
		return err
	}
	if first {
		if err := send(); err != nil {
			return err
		}
	}
	var said [2 * sha256.Size]byte
	if _, err := io.ReadFull(c, said[:]); err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(said[:sha256.Size], theirs.key[:]) != 1 {
		return errors.New("it does not know the key")
	}
	if !first {
		if err := send(); err != nil {
			return err
		}
	}
	if [sha256.Size]byte(said[sha256.Size:]) != theirs.job {
		return &differsError{neighbour}
	}
	return c.SetDeadline(time.Time{})
}

func digest(text string) []byte {
	d := sha256.Sum256([]byte(text))
	return d[:]
}
