package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tensile/agent"
	"tensile/internal/bus"
	"tensile/lease"
	"tensile/lease/process"
	"tensile/wire"
)

// leaseName is what the lease of a controller's jobs is called on every host.
func leaseName(server hub) string {
	secret := sha256.Sum256([]byte("lease " + server.Credentials(bus.Executor("lease")).Password))
	return hex.EncodeToString(secret[:8])
}

// hostLeases opens leases of this host.
type hostLeases struct {
	folder string // of one without a name; "": there is none
	linger time.Duration
	log    func(string)
	flags  []string    // of how the process of a lease logs
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
	folder, err := h.folderOf(l)
	if err != nil {
		return nil, err
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h.sweep(folder)
	ctx, cancel := context.WithCancel(context.Background())
	c := &leaseOf{end: cancel, Client: process.NewClient(process.Options{Folder: folder, Log: h.log,
		Answer: func(o lease.Output) { answer(o) },
		Start: func() error {
			return process.Detach(filepath.Join(folder, process.LogName), binary, append([]string{"lease",
				"--folder", folder, "--linger", h.linger.String()}, h.flags...)...)
		}})}
	c.done.Go(func() {
		if err := c.Run(ctx); err != nil {
			h.failed(err)
		}
	})
	return c, nil
}

// sweep removes what leases of other controllers have left on this host whose processes were killed.
func (h *hostLeases) sweep(folder string) {
	if folder == h.folder {
		return
	}
	others, err := os.ReadDir(filepath.Dir(folder))
	if err != nil {
		return
	}
	for _, other := range others {
		if other.Name() != filepath.Base(folder) {
			process.Remove(filepath.Join(filepath.Dir(folder), other.Name()))
		}
	}
}

// folderOf is where the files of a lease are: the same for all executors of a controller on a host.
func (h *hostLeases) folderOf(l *wire.Lease) (string, error) {
	host, err := os.Hostname()
	if state := defaultState(); l.Name != "" && state != "" && err == nil { // a home may be shared by hosts
		return filepath.Join(state, "leases", host, l.Name), nil
	}
	if h.folder == "" {
		return "", cmp.Or(err, fmt.Errorf("neither HOME nor XDG_STATE_HOME is set, so there is no folder for it"))
	}
	return h.folder, nil
}
