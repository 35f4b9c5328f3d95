package process

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	"tensile/device/lease"
)

// A client that waits for an answer asks, after so many ticks, whether the lease lives at all, and kills its process
// when that is not answered for as many. Ticks are counted, and no time is measured, so that after a machine was
// suspended nobody counts as silent.
const (
	tickEvery = time.Second
	patience  = 15 // ticks
)

// onlyAlive is the version of a hello that asks for nothing but an answer. Every release refuses it, which shows that
// it lives.
const onlyAlive = 0

// watch counts how long jobs wait, and kills a lease that hangs: a new one is started then, and hears from the clients
// what was granted.
func (c *Client) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-c.ticks:
			c.mu.Lock()
			server, doubtful := c.server, c.book.tick(now)
			c.mu.Unlock()
			if !doubtful || server == nil || lives(ctx, c.options.Name, c.ticks) {
				continue
			}
			c.options.Log(fmt.Sprintf("the lease %s, process %d, hangs: it is killed and started anew", c.options.Name,
				server.Pid))
			server.Kill() // it may have ended meanwhile
		}
	}
}

// lives reports whether the process that serves a lease answers before patience is over.
func lives(ctx context.Context, name string, ticks <-chan time.Time) bool {
	answered := make(chan struct{})
	if conn, err := net.DialUnix("unix", nil, address(name, "")); err == nil {
		defer conn.Close()
		go func() {
			defer close(answered)
			if json.NewEncoder(conn).Encode(request{Hello: &hello{Version: onlyAlive}}) == nil {
				conn.Read(make([]byte, 1)) // whatever it says, or that it has ended
			}
		}()
	}
	for range patience {
		select {
		case <-ctx.Done():
			return true
		case <-answered:
			return true
		case <-ticks:
		}
	}
	return false
}

// Waits is what jobs wait for that have waited long, in words.
func (c *Client) Waits() map[lease.Job]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	what := "memory of the device that other jobs have"
	if !c.online {
		what = "the lease of the device's memory, which does not answer: see " + c.options.LogOf
	}
	waits := map[lease.Job]string{}
	for name, e := range c.book.jobs {
		if e.ticks >= patience {
			waits[name] = "it waits since " + e.since.UTC().Format("15:04:05 UTC") + " for " + what
		}
	}
	return waits
}

// serverOf is the process at the other end of a connection; nil: it has ended.
func serverOf(conn *net.UnixConn) *os.Process {
	peer, err := PeerOf(conn)
	if err != nil {
		return nil
	}
	process, err := os.FindProcess(int(peer.Pid))
	if err != nil {
		return nil
	}
	return process
}
