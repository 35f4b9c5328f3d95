package bus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"tensile/wire"
)

// asked are the users and requests that a controller is told of.
func asked(t *testing.T, c *Conn) events {
	got := newEvents()
	_, err := c.Serve(wire.ControlSubject, func(user string, data []byte, reply func([]byte)) {
		got.each(user, data)
		reply([]byte("to " + user))
	})
	must(t, err)
	return got
}

// TestWhoAsks shows that a controller is told who asks, and that nobody can ask as another: by the subject, by a
// request seen elsewhere, or by the place for the answer.
func TestWhoAsks(t *testing.T) {
	s := listening(t)
	ctx, c := within(t), rule(t, s)
	got := asked(t, c)
	ada, bob := join(t, s, User("ada")), join(t, s, User("bob.2 é"))
	for _, test := range []struct {
		conn *Conn
		want string
	}{{ada, "ada"}, {bob, "bob.2 é"}, {join(t, s, Client), ""}, {join(t, s, Controller), ""}, {c, ""}} {
		answer, err := test.conn.Ask(ctx, wire.ControlSubject, []byte("x"))
		if err != nil || string(answer) != "to "+test.want {
			t.Errorf("%q is answered %q, %v", test.want, answer, err)
		}
		got.want(t, test.want+"=x")
	}

	for _, subject := range []string{"control.u-ada", "control.client", "control.controller", "control.u-bob_2e2",
		"control.", "control.x", "control.u-ada.x", "$KV.record.a", "report.a.job", "now.control"} {
		for _, m := range []*nats.Msg{{Subject: subject}, {Subject: subject, Reply: "control.u-ada"},
			{Subject: wire.ControlSubject, Reply: subject, Data: []byte("own")},
			{Subject: wire.ControlSubject, Reply: ada.inbox + "1", Data: []byte("own"),
				Header: nats.Header{"Nats-Request-Info": {`{"acc":"u-ada","user":"u-ada"}`}}}} {
			must(t, bob.nats.PublishMsg(m))
		}
	}
	_, err := bob.Ask(ctx, wire.ControlSubject, []byte("last"))
	must(t, err)
	for v := range got {
		if v.name != "bob.2 é" || v.value != "own" && v.value != "last" {
			t.Errorf("the controller was told %v", v)
		}
		if v.value == "last" {
			break
		}
	}
	if _, err := ada.Ask(ctx, wire.ControlSubject, []byte("hers")); err != nil { // no answer of bob's came to her
		t.Error(err)
	}
	for _, user := range []string{"u-", "u-*", "u->", "u-a.b", "u-A_", "u-_zz", "u-_2E", "u-.."} {
		if c, err := Connect(ctx, s.Credentials(user), ConnOptions{}); err == nil {
			c.Close()
			t.Errorf("user %q is let in", user)
		}
	}
}

// TestUserAccess shows that a user may what the administrator's command line may, and hears no request of others.
func TestUserAccess(t *testing.T) {
	s := listening(t)
	ctx, c := within(t), rule(t, s)
	must(t, c.Put(ctx, "record.job", []byte("genuine")))
	ada := join(t, s, User("ada"))
	if at := ada.Address(); at.String() != "127.0.0.1" {
		t.Errorf("it is connected by address %v, and the server listens at 127.0.0.1", at)
	}
	_, err := ada.Get(ctx, "record.job")
	must(t, err)
	must(t, c.Put(ctx, "orders.a", []byte("secret")))
	for what, err := range map[string]error{
		"put a record":   ada.Put(ctx, "record.job", []byte("forged")),
		"put a status":   ada.Put(ctx, "status.a", []byte("forged")),
		"store a graph":  ada.Store(ctx, wire.Graphs, "it", []byte("forged")),
		"store a layout": ada.Store(ctx, wire.Bucket("a"), "it", []byte("forged")),
		"read orders":    func() error { _, err := ada.Get(ctx, "orders.a"); return err }(),
		"serve": func() error {
			_, err := ada.Serve(wire.ControlSubject, func(string, []byte, func([]byte)) {})
			return err
		}(),
		"hear requests": func() error {
			_, err := ada.Subscribe("control.>", func(string, []byte) {})
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("a user may %s", what)
		}
	}
}

// TestRevoke revokes credentials of a user who is connected. Others do not notice. The name can be given out again.
func TestRevoke(t *testing.T) {
	dir := t.TempDir()
	logged := make(chan string, 1000)
	s := start(t, Options{Dir: dir, Listen: "127.0.0.1:0", Log: func(line string) {
		select {
		case logged <- line:
		default:
		}
	}})
	ctx, c := within(t), rule(t, s)
	got := asked(t, c)
	issue := func(user string) Credentials {
		t.Helper()
		issued, err := Issue(dir, s.Credentials(Client), user)
		must(t, err)
		return issued
	}
	first := issue(User("ada"))
	if again := issue(User("ada")); again != first {
		t.Error("credentials that were not revoked have changed")
	}
	lab := issue(Executor("lab"))
	lost, other := make(chan bool, 100), make(chan bool, 100)
	ada := joinWith(t, first, ConnOptions{OnState: func(connected bool) { lost <- connected }})
	bob := joinWith(t, issue(User("bob")), ConnOptions{OnState: func(connected bool) { other <- connected }})
	x := joinWith(t, lab, ConnOptions{})
	_, err := ada.Ask(ctx, wire.ControlSubject, []byte("before"))
	must(t, err)
	got.want(t, "ada=before")

	must(t, Revoke(dir, User("ada")))
	if <-lost {
		t.Error("the connection of a user who was revoked came back")
	}
	if c, err := Connect(ctx, first, ConnOptions{}); err == nil {
		c.Close()
		t.Error("credentials that were revoked let in")
	} else if !strings.Contains(err.Error(), "is refused") {
		t.Errorf("with credentials that were revoked: %v", err)
	}
	for {
		if line := <-logged; strings.Contains(line, `is refused: the credentials of user "u-ada" were revoked`) {
			break
		}
	}
	for told := false; !told; { // once it has tried to connect again
		_, err := ada.Ask(ctx, wire.ControlSubject, []byte("after"))
		if err == nil || ctx.Err() != nil {
			t.Fatalf("a user who was revoked asks, and is told %v", err)
		}
		told = strings.Contains(err.Error(), `user "u-ada" is refused: its credentials were revoked`)
	}
	_, err = bob.Ask(ctx, wire.ControlSubject, []byte("still"))
	must(t, err)
	got.want(t, "bob=still")
	must(t, x.Put(ctx, "status.lab", []byte("still")))
	if err := Revoke(dir, User("ada")); !errors.Is(err, ErrNotIssued) {
		t.Errorf("revoked twice: %v", err)
	}
	if err := Revoke(dir, User("eve")); !errors.Is(err, ErrNotIssued) {
		t.Errorf("nobody is revoked: %v", err)
	}

	second := issue(User("ada"))
	if second.Password == first.Password {
		t.Error("the credentials that follow are those that were revoked")
	}
	_, err = joinWith(t, second, ConnOptions{}).Ask(ctx, wire.ControlSubject, []byte("again"))
	must(t, err)
	got.want(t, "ada=again")
	must(t, Revoke(dir, Executor("lab")))
	for err := error(nil); err == nil; err = x.Put(ctx, "status.lab", []byte("late")) {
	}
	select {
	case <-other:
		t.Error("a connection of another was lost")
	default:
	}
	s.Close()

	s = start(t, Options{Dir: dir, Listen: "127.0.0.1:0"}) // which goes by the list from the beginning
	first.URL, second.URL = s.URL(), s.URL()
	if c, err := Connect(ctx, first, ConnOptions{}); err == nil {
		c.Close()
		t.Error("after a restart credentials that were revoked let in")
	}
	joinWith(t, second, ConnOptions{})
	list, err := Issues(dir)
	must(t, err)
	var said []string
	for _, i := range list {
		if time.Since(i.At) > time.Hour {
			t.Errorf("%s was given credentials at %v", i.User, i.At)
		}
		said = append(said, fmt.Sprint(i.User, " ", i.Revoked, " ", i.Valid))
	}
	if want := []string{"u-ada 1 true", "u-bob 0 true", "x-lab 1 false"}; !slices.Equal(said, want) {
		t.Errorf("the list says %q, want %q", said, want)
	}
}

// TestDamagedIssues shows that without the list of what was revoked nobody is let in but the server itself.
func TestDamagedIssues(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Options{Dir: dir, Listen: "127.0.0.1:0"})
	ctx, c := within(t), rule(t, s)
	to, err := Issue(dir, s.Credentials(Client), User("ada"))
	must(t, err)
	path := filepath.Join(dir, issuedFile)
	good, err := os.ReadFile(path)
	must(t, err)
	for _, spoil := range []func(){
		func() { must(t, writePrivate(path, []byte("[{"))) },
		func() { must(t, os.Remove(path)) },
	} {
		joinWith(t, to, ConnOptions{})
		spoil()
		if c, err := Connect(ctx, to, ConnOptions{}); err == nil {
			c.Close()
			t.Error("without the list a user is let in")
		}
		must(t, c.Put(ctx, "record.a", nil))
		must(t, writePrivate(path, good))
	}
	joinWith(t, to, ConnOptions{})
	s.Close()
	must(t, writePrivate(path, []byte("[{")))
	if s, err := Start(Options{Dir: dir}); err == nil {
		s.Close()
		t.Error("a server starts without the list")
	} else if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "restore it") {
		t.Errorf("a damaged list: %v", err)
	}
}
