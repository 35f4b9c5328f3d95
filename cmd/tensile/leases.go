package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tensile/device/lease"
	"tensile/device/lease/process"
	"tensile/executor/agent"
	"tensile/wire"
	"tensile/wire/bus"
)

// leaseName is what the lease of a controller's jobs is called on every host.
func leaseName(server hub) string {
	secret := sha256.Sum256([]byte("lease " + server.Credentials(bus.Executor("lease")).Password))
	return hex.EncodeToString(secret[:8])
}

// hostLeases opens leases of this host.
type hostLeases struct {
	logs   string // folder for what processes of leases log; "": nobody reads that
	linger time.Duration
	log    func(string)
	flags  []string    // Log flags of the lease's process.
	failed func(error) // a lease cannot go on
}

// leaseOf is a lease that a process of this host has.
type leaseOf struct {
	*process.Client
	end  context.CancelFunc
	done sync.WaitGroup
}

func (l *leaseOf) Close() error {
	l.end()
	l.done.Wait()
	return nil
}

// open becomes a client of a lease, and has its process started if there is none.
func (h *hostLeases) open(l *wire.Lease, answer func(...lease.Output)) (agent.HostLease, error) {
	c, err := h.client(l, answer)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (h *hostLeases) client(l *wire.Lease, answer func(...lease.Output)) (*leaseOf, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log := h.logOf(l)
	client, err := process.NewClient(process.Options{Name: l.Name, Log: h.log, LogOf: log,
		Answer: func(o lease.Output) { answer(o) },
		Start: func() error {
			return process.Detach(log, binary, append([]string{"lease", "--log", log, "--name", l.Name, "--linger",
				h.linger.String()}, h.flags...)...)
		}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &leaseOf{end: cancel, Client: client}
	c.done.Go(func() {
		if err := c.Run(ctx); err != nil {
			h.failed(err)
		}
	})
	return c, nil
}

// logOf is where the process of a lease logs.
func (h *hostLeases) logOf(l *wire.Lease) string {
	if h.logs == "" || os.MkdirAll(h.logs, 0o700) != nil {
		return os.DevNull
	}
	return filepath.Join(h.logs, l.Name+".log")
}

// leaseLogs is the folder for what processes of leases log, in one for state.
func leaseLogs(state string) string {
	if state == "" {
		return ""
	}
	return filepath.Join(state, "leases")
}
