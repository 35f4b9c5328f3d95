package bus

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tensile/wire"
)

// An executor of this machine is heard at Local, and hears of what is stored, also when the server's own process has
// started that again; without its password nobody is let in. At its end nothing is left.
func TestLocal(t *testing.T) {
	s := start(t, Options{Listen: Local})
	ctx := within(t)
	controller, err := s.Connect(ctx, ConnOptions{Log: lines(t)})
	must(t, err)
	defer controller.Close()
	heard := make(chan string, 16)
	stop, err := controller.Watch(ctx, wire.StatusKey("*"), func(key string, value []byte) { heard <- string(value) })
	must(t, err)
	defer stop()
	x := join(t, s, Executor("a"))
	if x.Address().IsValid() {
		t.Errorf("it has the address %v", x.Address())
	}
	large := strings.Repeat("x", 1<<20)
	must(t, x.Put(ctx, wire.StatusKey("a"), []byte(large)))
	if got := <-heard; got != large {
		t.Errorf("%d bytes are heard of %d", len(got), len(large))
	}
	stranger := s.Credentials(Executor("a"))
	stranger.Password = "another"
	if c, err := Connect(ctx, stranger, ConnOptions{Log: lines(t)}); err == nil {
		c.Close()
		t.Error("a stranger is let in")
	}
	url := s.URL()
	s.Close()
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if c, err := Connect(short, Credentials{URL: url, User: Executor("a")}, ConnOptions{}); err == nil {
		c.Close()
		t.Error("a server that has ended answers")
	}
	if sockets, err := os.ReadFile("/proc/net/unix"); err != nil || strings.Contains(string(sockets),
		strings.TrimPrefix(url, localScheme)) {
		t.Errorf("its address is taken: %v", err)
	}
}

// A host without any network address will do.
func TestLocalWithoutNetwork(t *testing.T) {
	const variable = "TENSILE_TEST_NO_NETWORK"
	if os.Getenv(variable) != "" {
		s := start(t, Options{Listen: Local})
		join(t, s, Executor("a"))
		return
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil || exec.Command(unshare, "-rn", "true").Run() != nil {
		t.Skip("needs a network namespace: run the tests as root")
	}
	c := exec.CommandContext(within(t), unshare, "-rn", os.Args[0], "-test.run", "^TestLocalWithoutNetwork$")
	c.Env = append(os.Environ(), variable+"=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
