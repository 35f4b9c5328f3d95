package needs

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
)

// Host is a network namespace, which serves as another host, of a name of its own: a cable leads to it that can be
// pulled out.
type Host struct {
	Here string // address of this host, as the other one sees it
	t    testing.TB
	name string // of the namespace
	says string // what it is called
}

var labs atomic.Int32 // of this process

// AnotherHost makes another host, and skips the test where it may not.
func AnotherHost(t testing.TB) *Host {
	t.Helper()
	return OtherHosts(t, 1)[0]
}

// OtherHosts makes hosts that reach this one and each other, five at most, and skips the test where it may not.
func OtherHosts(t testing.TB, count int) (hosts []*Host) {
	t.Helper()
	n := labs.Add(1)
	id := fmt.Sprintf("%d-%d", os.Getpid()%100_000, n)
	bridge := "tb" + id
	// of the addresses that are for tests of networks, eight for each lab of each process
	subnet := uint32(os.Getpid()<<3+int(n)) % (1 << 14) * 8
	at := func(last int) string {
		a := subnet + uint32(last)
		return fmt.Sprintf("198.%d.%d.%d", 18+a>>16, a>>8&255, a&255)
	}
	try := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Skipf("needs network namespaces with cables to a bridge (ip %s: %s): run the test as root, with ip of "+
				"iproute2", strings.Join(args, " "), strings.TrimSpace(string(out)+" "+err.Error()))
		}
	}
	remove := func(args ...string) {
		t.Cleanup(func() {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
			}
		})
	}
	try("link", "add", bridge, "type", "bridge")
	remove("link", "del", bridge)
	try("addr", "add", at(1)+"/29", "dev", bridge)
	try("link", "set", bridge, "up")
	for i := range count {
		h := &Host{Here: at(1), t: t, name: fmt.Sprintf("tensile-%s-%d", id, i), says: fmt.Sprintf("host%d", i)}
		port := fmt.Sprintf("t%d.%s", i, id)
		try("netns", "add", h.name)
		remove("netns", "del", h.name) // the cable goes with it
		try("link", "add", port, "type", "veth", "peer", "name", "cable", "netns", h.name)
		try("link", "set", port, "master", bridge)
		try("link", "set", port, "up")
		try("-n", h.name, "addr", "add", at(2+i)+"/29", "dev", "cable")
		try("-n", h.name, "link", "set", "cable", "up")
		try("-n", h.name, "link", "set", "lo", "up")
		hosts = append(hosts, h)
	}
	return hosts
}

// Command returns the command line that runs another there.
func (h *Host) Command(command ...string) []string {
	const named = `echo "$0" >/proc/sys/kernel/hostname && exec "$@"`
	return append([]string{"ip", "netns", "exec", h.name, "unshare", "--uts", "sh", "-c", named, h.says}, command...)
}

// Cut pulls the cable out: what is sent from now on is lost, and nobody is told.
func (h *Host) Cut() { h.set("down") }

// Heal puts the cable back in.
func (h *Host) Heal() { h.set("up") }

func (h *Host) set(state string) {
	h.t.Helper()
	if out, err := exec.Command("ip", "-n", h.name, "link", "set", "cable", state).CombinedOutput(); err != nil {
		h.t.Errorf("the cable of %s: %v: %s", h.says, err, out)
	}
}
