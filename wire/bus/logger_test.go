package bus

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
)

// What nats-server says after a kill about its own index, and about a full disk, does not concern a person who runs a
// controller. What is lost is.
func TestLogger(t *testing.T) {
	var got []string
	l := logger{func(kind, line string) { got = append(got, kind+" | "+line) }}
	l.Warnf("Filestore [KV_status] Stream state detected prior state, could not locate msg block %d", 3)
	l.Warnf("Filestore [KV_status] Recovering stream state from index errored: %v", "prior state file")
	l.Errorf("JetStream failed to store a msg on stream '$G > LOG': write x: no space left on device")
	l.Errorf(`127.0.0.1:4711 - cid:33 - Problem registering with account %q: %v`, "x-x1", "connection closed")
	l.Noticef("Listening")
	if len(got) > 0 {
		t.Errorf("it logs %q", got)
	}
	l.Warnf("Filestore [KV_status] loadBlock error: %v", "checksum")
	violation := `127.0.0.1:%d - cid:%d - "v1.55.0:go:x-lab" - Publish Violation - User "x-lab", Subject "made.up.%d"`
	l.Errorf(violation, 4711, 5, 1)
	l.Errorf(violation, 4712, 6, 2)
	if len(got) != 3 || got[0] != "nats: Filestore [KV_status] loadBlock error: checksum | nats: warning: Filestore "+
		"[KV_status] loadBlock error: checksum" {
		t.Fatalf("it logs %q", got)
	}
	one, _, _ := strings.Cut(got[1], " | ")
	if two, _, _ := strings.Cut(got[2], " | "); one != two || one != `nats: Publish Violation - User "x-lab"` {
		t.Errorf("the kinds of two violations of one user are %q and %q", one, two)
	}
}

// A client that is not allowed what it does fills no log.
func TestLogIsLimited(t *testing.T) {
	var mu sync.Mutex
	var said []string
	s := start(t, Options{Listen: "127.0.0.1:0", Log: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, line)
	}})
	rule(t, s)
	to := s.Credentials(Executor("lab"))
	c, err := nats.Connect(to.URL, nats.UserInfo(to.User, to.Password),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	must(t, err)
	defer c.Close()
	for i := range 2000 {
		must(t, c.Publish(fmt.Sprint("made.up.", i), []byte("x")))
	}
	must(t, c.Flush())
	for range 20 {
		if _, err := nats.Connect(to.URL, nats.UserInfo(to.User, "wrong")); err == nil {
			t.Fatal("a wrong password is taken")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) == 0 || len(said) > 20 {
		t.Errorf("%d lines: %q", len(said), said[:min(len(said), 30)])
	}
}
