package needs

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
)

// Host is a network namespace, which serves as another host: a cable leads to it that can be pulled out.
type Host struct {
	Here string // address of this host, as the other one sees it
	t    testing.TB
	name string
	port string // this host's end of the cable
}

var hosts atomic.Int32 // of this process

// AnotherHost makes a network namespace with a cable to it, and skips the test where it may not.
func AnotherHost(t testing.TB) *Host {
	t.Helper()
	n := hosts.Add(1)
	id := fmt.Sprintf("%d-%d", os.Getpid()%100_000, n)
	h := &Host{t: t, name: "tensile-" + id, port: "ts" + id}
	// of the addresses that are for tests of networks, four for each host of each process
	subnet := uint32(os.Getpid()<<3+int(n)) % (1 << 15) * 4
	at := func(last uint32) string {
		a := subnet + last
		return fmt.Sprintf("198.%d.%d.%d", 18+a>>16, a>>8&255, a&255)
	}
	h.Here = at(1)
	out, err := exec.Command("ip", "netns", "add", h.name).CombinedOutput()
	if err != nil {
		t.Skipf("needs network namespaces (%s): run the test as root, with ip of iproute2",
			strings.TrimSpace(string(out)+" "+err.Error()))
	}
	t.Cleanup(func() { h.ip("netns", "del", h.name) }) // the cable goes with it
	if out, err := exec.Command("ip", "link", "add", h.port, "type", "veth", "peer", "name", "cable", "netns",
		h.name).CombinedOutput(); err != nil {
		t.Skipf("needs network namespaces with a cable (%s)", strings.TrimSpace(string(out)))
	}
	h.ip("addr", "add", h.Here+"/30", "dev", h.port)
	h.ip("link", "set", h.port, "up")
	h.ip("-n", h.name, "addr", "add", at(2)+"/30", "dev", "cable")
	h.ip("-n", h.name, "link", "set", "cable", "up")
	h.ip("-n", h.name, "link", "set", "lo", "up")
	return h
}

// On returns the command line that runs another there.
func (h *Host) On(command ...string) []string {
	return append([]string{"ip", "netns", "exec", h.name}, command...)
}

// Cut pulls the cable out: what is sent from now on is lost, and nobody is told.
func (h *Host) Cut() { h.ip("-n", h.name, "link", "set", "cable", "down") }

// Heal puts the cable back in.
func (h *Host) Heal() { h.ip("-n", h.name, "link", "set", "cable", "up") }

func (h *Host) ip(args ...string) {
	h.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		h.t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
