package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"tensile/wire"
	"tensile/wire/leader"
)

// others are NATS servers that somebody else runs: a cluster with users who may what ExternalAccess says.
type others struct {
	servers []*server.Server
	urls    string
}

// password is that of every user.
const password = "pw"

// startOthers starts so many servers, which end with the test.
func startOthers(t testing.TB, count int, change func(*server.Options), users ...string) *others {
	t.Helper()
	var list []*server.User
	for _, user := range users {
		publish, deny, subscribe, ok := ExternalAccess(user)
		if !ok {
			t.Fatalf("there is no user %q", user)
		}
		list = append(list, &server.User{Username: user, Password: password, Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: publish, Deny: deny},
			Subscribe: &server.SubjectPermission{Allow: subscribe}}})
	}
	var ports []net.Listener // of routes
	var routes []*url.URL
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		ports = append(ports, l)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
	}
	o := new(others)
	for i, l := range ports {
		options := &server.Options{ServerName: fmt.Sprintf("s%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT,
			NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: wire.MaxMessage,
			Users: list}
		if count > 1 {
			options.Cluster = server.ClusterOpts{Name: "others", Host: "127.0.0.1",
				Port: l.Addr().(*net.TCPAddr).Port}
			options.Routes = routes
		}
		if change != nil {
			change(options)
		}
		must(t, l.Close())
		s, err := server.NewServer(options)
		must(t, err)
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
		o.servers = append(o.servers, s)
	}
	var urls []string
	for _, s := range o.servers {
		eventually(t, "a server to be ready", func() bool { return s.ReadyForConnections(time.Second) })
		urls = append(urls, s.ClientURL())
	}
	if count > 1 {
		eventually(t, "the servers to agree on a leader", func() bool {
			for _, s := range o.servers {
				if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == count {
					return true
				}
			}
			return false
		})
	}
	o.urls = strings.Join(urls, ",")
	return o
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for ctx := within(t); !ok(); time.Sleep(10 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

func (o *others) credentials(user string) Credentials {
	return Credentials{URL: o.urls, User: user, External: true, Login: Login{User: user, Password: password}}
}

func (o *others) join(t testing.TB, user string) *Conn {
	t.Helper()
	return joinWith(t, o.credentials(user), ConnOptions{Log: lines(t)})
}

// leader is the server that leads a stream.
func (o *others) leader(t testing.TB, stream string) *server.Server {
	t.Helper()
	var found *server.Server
	eventually(t, "a leader of "+stream, func() bool {
		for _, s := range o.servers {
			if s.Running() && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
				found = s
			}
		}
		return found != nil
	})
	return found
}

// persist does something again until it works.
func persist(t testing.TB, do func() error) {
	t.Helper()
	var err error
	for ctx := within(t); ; time.Sleep(10 * time.Millisecond) {
		if err = do(); err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// A bus on the external servers is as good as one of its own: what is stored is on three servers, and one of them may
// end, also the one that leads. Watchers and followers miss nothing.
func TestExternal(t *testing.T) {
	t.Parallel()
	o := startOthers(t, 3, nil, Controller, Client, User("ada"), Executor("lab"))
	ctx := within(t)
	c, ada, lab := o.join(t, Controller), o.join(t, User("ada")), o.join(t, Executor("lab"))
	for _, stream := range external() {
		var is struct {
			Config struct {
				Replicas int `json:"num_replicas"`
			} `json:"config"`
		}
		must(t, c.callAPI(ctx, "STREAM.INFO."+stream.Name, nil, &is))
		if is.Config.Replicas != 3 {
			t.Errorf("%s is on %d servers, want 3", stream.Name, is.Config.Replicas)
		}
	}
	if _, err := c.Get(ctx, "record.a"); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("a record that is not there: %v", err)
	}
	if _, err := lab.Load(ctx, wire.Bucket("lab"), "g"); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("an object of a bucket that is not there: %v", err)
	}
	stop, err := c.Serve(wire.ControlSubject, func(user string, data []byte, reply func([]byte)) {
		reply([]byte(user + " says " + string(data)))
	})
	must(t, err)
	defer stop()
	var answer []byte
	persist(t, func() error { // her server hears a little later that somebody serves
		answer, err = ada.Ask(ctx, wire.ControlSubject, []byte("hello"))
		return err
	})
	if string(answer) != "ada says hello" {
		t.Errorf("the answer is %q", answer)
	}
	orders, records, log := newEvents(), newEvents(), newEvents()
	for _, w := range []struct {
		conn *Conn
		key  string
		each func(string, []byte)
	}{{lab, "orders.lab", orders.each}, {ada, "record.*", records.each}} {
		stop, err := w.conn.Watch(ctx, w.key, w.each)
		must(t, err)
		defer stop()
	}
	stop, err = ada.Follow(ctx, "log.*.a", func(_ string, line []byte) { log.each("line", line) })
	must(t, err)
	defer stop()
	object := []byte(strings.Repeat("layout", 1<<19)) // of three chunks
	for i, stream := range []string{"KV_record", "KV_orders", "LOG"} {
		value := []byte(fmt.Sprint(i))
		persist(t, func() error { return c.Put(ctx, "record.a", value) })
		persist(t, func() error { return c.Put(ctx, "orders.lab", value) })
		persist(t, func() error { return lab.Append(ctx, "log.lab.a", value) })
		persist(t, func() error { return c.Store(ctx, wire.Bucket("lab"), "g", object) })
		records.until(t, fmt.Sprintf("record.a=%d", i))
		orders.until(t, fmt.Sprintf("orders.lab=%d", i))
		log.until(t, fmt.Sprintf("line=%d", i))
		var got []byte
		persist(t, func() (err error) { got, err = lab.Load(ctx, wire.Bucket("lab"), "g"); return err })
		if string(got) != string(object) {
			t.Errorf("an object of %d bytes is stored, %d are loaded", len(object), len(got))
		}
		if i == 0 {
			s := o.leader(t, stream)
			s.Shutdown()
			s.WaitForShutdown()
		}
	}
	persist(t, func() error { return c.Delete(ctx, "record.a") })
	records.until(t, "record.a=deleted")
	persist(t, func() error { return c.Remove(ctx, wire.Bucket("lab"), "") })
	persist(t, func() error { return c.Clear(ctx, "log.*.a") })
}

// What JetStream cannot do for now, since it has no leader, is asked for again.
func TestExternalWithoutLeader(t *testing.T) {
	t.Parallel()
	c := startOthers(t, 1, nil, Controller).join(t, Controller)
	var asked atomic.Int64
	_, err := c.nats.Subscribe(wire.ControlSubject, func(m *nats.Msg) {
		text := `{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`
		if asked.Add(1) == 3 {
			text = `{}`
		}
		if err := m.Respond([]byte(text)); err != nil {
			t.Error(err)
		}
	})
	must(t, err)
	_, err = c.requestWithRetry(within(t), &nats.Msg{Subject: wire.ControlSubject}, c.acknowledged)
	if err != nil || asked.Load() != 3 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// A client asks again for what it wants to read when no answer came, as from a server that was killed.
func TestExternalWithoutAnswer(t *testing.T) {
	t.Parallel()
	c := startOthers(t, 1, func(o *server.Options) {
		for _, u := range o.Users {
			u.Permissions = nil
		}
	}, Controller, Client).join(t, Client)
	var asked atomic.Int64
	subject := directGet + "of_another"
	_, err := c.nats.Subscribe(subject, func(m *nats.Msg) {
		if asked.Add(1) == 1 {
			return
		}
		if err := m.Respond([]byte("stored")); err != nil {
			t.Error(err)
		}
	})
	must(t, err)
	m, err := c.requestWithRetry(within(t), &nats.Msg{Subject: subject}, func(*nats.Msg) error { return nil })
	if err != nil || string(m.Data) != "stored" || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// On one server, without a cluster, each stream is there once.
func TestExternalAlone(t *testing.T) {
	t.Parallel()
	o := startOthers(t, 1, nil, Controller)
	c := o.join(t, Controller)
	must(t, c.Put(within(t), "record.a", []byte("x")))
	if got, err := c.Get(within(t), "record.a"); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
}

// A reader comes to what a stream has stored and never published again.
func TestExternalPolls(t *testing.T) {
	t.Parallel()
	o := startOthers(t, 1, nil, Controller, Client)
	c, client := o.join(t, Controller), o.join(t, Client)
	heard := newEvents()
	stop, err := client.Watch(within(t), "record.*", heard.each)
	must(t, err)
	defer stop()
	mute := keyValueConfig("KV_record", "$KV.record.>", -1)
	mute.RePublish = nil
	must(t, c.callAPI(within(t), "STREAM.UPDATE.KV_record", mute, nil))
	must(t, c.Put(within(t), "record.a", []byte("x")))
	heard.until(t, "record.a=x")
}

// What a leader writes after another has taken its place is not stored, whatever it believes.
func TestFence(t *testing.T) {
	t.Parallel()
	o := startOthers(t, 1, nil, Controller)
	ctx := within(t)
	before, after := o.join(t, Controller), o.join(t, Controller)
	must(t, before.Fence(ctx, 1))
	must(t, before.Put(ctx, "record.a", []byte("1")))
	must(t, before.Store(ctx, wire.Bucket("lab"), "layout", []byte("1")))
	must(t, after.Fence(ctx, 2))
	must(t, after.Store(ctx, wire.Bucket("lab"), "layout", []byte("2")))
	for what, err := range map[string]error{
		"put":         before.Put(ctx, "record.a", []byte("late")),
		"put another": before.Put(ctx, "record.b", []byte("late")),
		"orders":      before.Put(ctx, "orders.lab", []byte("late")),
		"delete":      before.Delete(ctx, "record.a"),
		"store":       before.Store(ctx, wire.Bucket("lab"), "layout", []byte("late")),
		"remove":      before.Remove(ctx, wire.Bucket("lab"), "layout"),
		"remove all":  before.Remove(ctx, wire.Bucket("lab"), ""),
		"clear":       before.Clear(ctx, "log.*.a"),
		"fence":       before.Fence(ctx, 1),
	} {
		if !errors.Is(err, wire.ErrDeposed) {
			t.Errorf("%s of a leader that was deposed: %v", what, err)
		}
	}
	if got, err := after.Get(ctx, "record.a"); err != nil || string(got) != "1" {
		t.Errorf("the record is %q, %v", got, err)
	}
	if _, err := after.Get(ctx, "record.b"); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("a record that a deposed leader has made: %v", err)
	}
	if got, err := after.Load(ctx, wire.Bucket("lab"), "layout"); err != nil || string(got) != "2" {
		t.Errorf("the layout is %q, %v", got, err)
	}
	must(t, after.Put(ctx, "record.a", []byte("2")))
	must(t, after.Put(ctx, "record.a", []byte("3")))
	seen := newEvents()
	stop, err := after.Watch(ctx, "record.*", seen.each)
	must(t, err)
	stop()
	seen.want(t, "record.a=3") // and no fence
	seen.none(t)
	again := o.join(t, Controller) // that did not hear of its own first word
	must(t, again.Fence(ctx, 2))
	must(t, again.Put(ctx, "record.a", []byte("4")))
}

// stoppable is a connection whose process can be stopped as far as its word that it leads is concerned, so that it
// believes that it leads when another does.
type stoppable struct {
	*Conn
	stopped chan struct{} // closed when it is
}

func (s *stoppable) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	select {
	case <-s.stopped:
		<-ctx.Done()
		return 0, ctx.Err()
	default:
	}
	return s.Conn.Update(ctx, key, value, revision)
}

// A leader that is stopped does not know of the next one: what it has sent to be stored before it looks is refused.
func TestFenceOfLeaders(t *testing.T) {
	t.Parallel()
	o := startOthers(t, 1, nil, Controller)
	ctx, cancel := context.WithCancel(within(t))
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	leads := func(c leader.Bus, id string) chan wire.Bus {
		told := make(chan wire.Bus, 1)
		ended.Go(func() {
			_ = leader.Run(ctx, c, leader.Config{ID: id, Lease: "lease"}, slog.New(slog.DiscardHandler),
				func(ctx context.Context, bus wire.Bus, _ wire.Leadership) error {
					told <- bus
					<-ctx.Done()
					return context.Cause(ctx)
				})
		})
		return told
	}
	first := &stoppable{o.join(t, Controller), make(chan struct{})}
	led := <-leads(first, "a")
	persist(t, func() error { return led.Put(ctx, "record.a", []byte("1")) })
	close(first.stopped)
	next := <-leads(o.join(t, Controller), "b")
	if err := first.Put(ctx, "record.a", []byte("late")); !errors.Is(err, wire.ErrDeposed) {
		t.Errorf("what a leader that was stopped has sent: %v", err)
	}
	if err := first.Put(ctx, "orders.x1", []byte("late")); !errors.Is(err, wire.ErrDeposed) {
		t.Errorf("orders that a leader that was stopped has sent: %v", err)
	}
	persist(t, func() error { return next.Put(ctx, "record.b", []byte("2")) })
	if got, err := next.Get(ctx, "record.a"); err != nil || string(got) != "1" {
		t.Errorf("the record is %q, %v", got, err)
	}
}

// A key is set if it has not changed.
func TestUpdate(t *testing.T) {
	t.Parallel()
	o := startOthers(t, 1, nil, Controller)
	ctx, c := within(t), o.join(t, Controller)
	if _, _, err := c.Revision(ctx, wire.LeaderKey); !errors.Is(err, wire.ErrNotFound) {
		t.Fatal(err)
	}
	first, err := c.Update(ctx, wire.LeaderKey, []byte("a"), 0)
	must(t, err)
	if _, err := c.Update(ctx, wire.LeaderKey, []byte("b"), 0); !errors.Is(err, wire.ErrConflict) {
		t.Errorf("a key that is there was made: %v", err)
	}
	second, err := c.Update(ctx, wire.LeaderKey, []byte("c"), first)
	must(t, err)
	if _, err := c.Update(ctx, wire.LeaderKey, []byte("d"), first); !errors.Is(err, wire.ErrConflict) {
		t.Errorf("a key that has changed was set: %v", err)
	}
	value, revision, err := c.Revision(ctx, wire.LeaderKey)
	if err != nil || string(value) != "c" || revision != second {
		t.Errorf("got %q, %d, %v; want c, %d", value, revision, err, second)
	}
}

// What users may at external servers that let them do what ExternalAccess says.
func TestExternalAccess(t *testing.T) {
	t.Parallel()
	o := startOthers(t, 1, nil, Controller, Client, User("ada"), Executor("a"))
	ctx := within(t)
	c, client, ada, a := o.join(t, Controller), o.join(t, Client), o.join(t, User("ada")), o.join(t, Executor("a"))
	for _, key := range []string{"orders.a", "orders.b", "status.a", "record.job"} {
		must(t, c.Put(ctx, key, []byte("genuine")))
	}
	for _, bucket := range []string{wire.Bucket("a"), wire.Bucket("b"), wire.Graphs} {
		must(t, c.Store(ctx, bucket, "it", []byte("genuine")))
	}
	stop, err := c.Serve(wire.ControlSubject, func(user string, _ []byte, reply func([]byte)) { reply([]byte(user)) })
	must(t, err)
	defer stop()
	_, orders := func() (any, error) { v, err := a.Get(ctx, "orders.a"); return v, err }()
	_, bucket := a.Load(ctx, wire.Bucket("a"), "it")
	_, record := client.Get(ctx, "record.job")
	_, graph := client.Load(ctx, wire.Graphs, "it")
	_, asked := client.Ask(ctx, wire.ControlSubject, nil)
	for what, err := range map[string]error{
		"orders": orders, "bucket": bucket, "status": a.Put(ctx, "status.a", []byte("new")),
		"log": a.Append(ctx, "log.a.job", []byte("new")), "result": a.Put(ctx, "result.a.1", []byte("new")),
		"record": record, "graph": graph, "ask": asked,
	} {
		if err != nil {
			t.Errorf("%s is refused: %v", what, err)
		}
	}
	_, orders = a.Get(ctx, "orders.b")
	_, bucket = a.Load(ctx, wire.Bucket("b"), "it")
	_, record = a.Get(ctx, "record.job")
	_, status := client.Get(ctx, "status.a")
	_, leader := client.Get(ctx, wire.LeaderKey)
	_, admin := ada.Ask(ctx, wire.ControlSubject+"."+Client, nil)
	_, raw := client.Ask(ctx, "$JS.API.STREAM.MSG.GET.KV_orders", []byte(`{"seq":1}`))
	for what, err := range map[string]error{
		"orders of b": orders, "bucket of b": bucket, "record": record, "status": status, "leader": leader,
		"as the administrator": admin, "all orders": raw, "put orders": a.Put(ctx, "orders.a", []byte("new")),
		"status of b": a.Put(ctx, "status.b", nil), "put record": client.Put(ctx, "record.job", nil),
		"layout": a.Store(ctx, wire.Bucket("a"), "it", []byte("new")),
		"graph":  client.Store(ctx, wire.Graphs, "new", []byte("new")),
		"depose": func() error { _, err := ada.Ask(ctx, "$O.graphs.C.fence", []byte("99")); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "may not publish to") {
			t.Errorf("%s: %v, want a refusal", what, err)
		}
	}
}

// What is wrong with external servers is said in one line, with what to do.
func TestExternalErrors(t *testing.T) {
	t.Parallel()
	small := startOthers(t, 1, func(o *server.Options) { o.MaxPayload = 1 << 20 }, Controller)
	plain := startOthers(t, 1, func(o *server.Options) { o.JetStream = false }, Controller)
	bare := startOthers(t, 1, func(o *server.Options) {
		o.Users[0].Permissions = &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.>"}}}
	}, Controller)
	wrong := plain.credentials(Controller)
	wrong.Login.Password = "another"
	nobody := Credentials{URL: "nats://127.0.0.1:1,nats://127.0.0.1:2", User: Controller, External: true}
	for _, test := range []struct {
		to   Credentials
		want string
	}{
		{small.credentials(Controller), "set max_payload: 8388608 in the configuration of each server"},
		{plain.credentials(Controller), "enable JetStream on the servers and for the account"},
		{bare.credentials(Controller), "let this user publish to $JS.API.>"},
		{wrong, "this login is refused: give one that the servers know with --nats-auth"},
		{nobody, "connection refused: start the servers, or correct --nats"},
	} {
		c, err := Connect(within(t), test.to, ConnOptions{Log: lines(t)})
		if err == nil {
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// Servers with a certificate are trusted if who signed it is named.
func TestExternalTLS(t *testing.T) {
	t.Parallel()
	a, err := openAuthority(t.TempDir())
	must(t, err)
	certificate, err := a.issue("127.0.0.1")
	must(t, err)
	o := startOthers(t, 1, func(o *server.Options) {
		o.TLS, o.TLSConfig = true, &tls.Config{Certificates: []tls.Certificate{certificate}}
	}, Controller)
	to := o.credentials(Controller)
	to.URL, to.CA = strings.Replace(to.URL, "nats://", "tls://", 1), string(a.pem)
	c := joinWith(t, to, ConnOptions{Log: lines(t)})
	must(t, c.Put(within(t), "record.a", []byte("x")))
	to.CA = ""
	if _, err := Connect(within(t), to, ConnOptions{}); err == nil ||
		!strings.Contains(err.Error(), "give the certificate that signed the servers' with --nats-ca") {
		t.Errorf("without the certificate: %v", err)
	}
}

// A user of an nkey connects with it.
func TestLogin(t *testing.T) {
	t.Parallel()
	key, err := nkeys.CreateUser()
	must(t, err)
	seed, err := key.Seed()
	must(t, err)
	public, err := key.PublicKey()
	must(t, err)
	o := startOthers(t, 1, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} }, Controller)
	l, err := parseLogin(string(seed) + "\n")
	must(t, err)
	c := joinWith(t, Credentials{URL: o.urls, User: Controller, External: true, Login: l}, ConnOptions{Log: lines(t)})
	must(t, c.Put(context.Background(), "record.a", []byte("x")))
}

// What is read as a login says the same when it is written and read again, and an error tells nothing of it.
func FuzzLogin(f *testing.F) {
	key, err := nkeys.CreateUser()
	must(f, err)
	seed, err := key.Seed()
	must(f, err)
	account, err := nkeys.CreateAccount()
	must(f, err)
	wrong, err := account.Seed()
	must(f, err)
	creds := "-----BEGIN NATS USER JWT-----\nabc\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" +
		string(seed) + "\n------END USER NKEY SEED------\n"
	for _, text := range []string{"ada:secret", "ada:", ":x", "", "a\nb:c", string(seed), string(wrong), creds,
		creds[:60]} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parseLogin(text)
		if err != nil {
			if l != (Login{}) || len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Errorf("%q: %+v, %v", text, l, err)
			}
			return
		}
		written := l.Creds + l.NKey
		if l.User != "" {
			written = l.User + ":" + l.Password
		}
		if again, err := parseLogin(written); err != nil || again != l {
			t.Errorf("%q is read as %+v, and that as %+v, %v", text, l, again, err)
		}
		if len(l.options()) != 1 {
			t.Errorf("%+v has no options", l)
		}
	})
}
