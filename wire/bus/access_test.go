package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	_ "tensile/internal/long" // the flag -long
	"tensile/wire"
)

// TestAccess goes through what each user may do and may not.
func TestAccess(t *testing.T) {
	s := listening(t)
	ctx, c := within(t), rule(t, s)
	for _, key := range []string{"orders.a", "orders.b", "status.a", "status.b", "record.job"} {
		must(t, c.Put(ctx, key, []byte("genuine")))
	}
	for _, bucket := range []string{wire.Bucket("a"), wire.Bucket("b"), wire.Graphs} {
		must(t, c.Store(ctx, bucket, "it", []byte("genuine")))
	}
	must(t, c.Append(ctx, "log.a.job", []byte("genuine")))
	stop, err := c.Serve(wire.ControlSubject, func(_ string, _ []byte, reply func([]byte)) { reply([]byte("ok")) })
	must(t, err)
	defer stop()

	type act func(*Conn) error
	put := func(key string) act { return func(c *Conn) error { return c.Put(ctx, key, []byte("new")) } }
	get := func(key string) act { return func(c *Conn) error { _, err := c.Get(ctx, key); return err } }
	del := func(key string) act { return func(c *Conn) error { return c.Delete(ctx, key) } }
	watch := func(key string) act {
		return func(c *Conn) error {
			stop, err := c.Watch(ctx, key, func(string, []byte) {})
			if err == nil {
				stop()
			}
			return err
		}
	}
	follow := func(log string) act {
		return func(c *Conn) error {
			stop, err := c.Follow(ctx, log, func(string, []byte) {})
			if err == nil {
				stop()
			}
			return err
		}
	}
	listen := func(subject string) act {
		return func(c *Conn) error {
			stop, err := c.Subscribe(subject, func(string, []byte) {})
			if err == nil {
				stop()
			}
			return err
		}
	}
	load := func(bucket string) act {
		return func(c *Conn) error { _, err := c.Load(ctx, bucket, "it"); return err }
	}
	save := func(bucket string) act {
		return func(c *Conn) error { return c.Store(ctx, bucket, "new", []byte("new")) }
	}
	remove := func(bucket string) act { return func(c *Conn) error { return c.Remove(ctx, bucket, "it") } }
	add := func(log string) act { return func(c *Conn) error { return c.Append(ctx, log, []byte("new")) } }
	ask := func(subject string) act {
		return func(c *Conn) error { _, err := c.Ask(ctx, subject, nil); return err }
	}

	users := map[string]*Conn{"a": join(t, s, Executor("a")), "client": join(t, s, Client),
		"controller": join(t, s, Controller)}
	for _, test := range []struct {
		what string
		act  act
		who  string // may
	}{
		{"put status.a", put("status.a"), "a controller"},
		{"put status.b", put("status.b"), "controller"},
		{"put orders.a", put("orders.a"), "controller"},
		{"put record.job", put("record.job"), "controller"},
		{"delete status.a", del("status.a"), "a controller"},
		{"delete record.job2", del("record.job2"), "controller"},
		{"get orders.a", get("orders.a"), "a controller"},
		{"get orders.b", get("orders.b"), "controller"},
		{"get status.b", get("status.b"), "controller"},
		{"get record.job", get("record.job"), "client controller"},
		{"watch orders.a", watch("orders.a"), "a controller"},
		{"watch orders.b", watch("orders.b"), "controller"},
		{"watch orders.*", watch("orders.*"), "controller"},
		{"watch status.*", watch("status.*"), "controller"},
		{"watch record.*", watch("record.*"), "client controller"},
		{"watch record.job", watch("record.job"), "client controller"},
		{"follow log.a.job", follow("log.a.job"), "client controller"},
		{"follow log.*.job", follow("log.*.job"), "client controller"},
		{"append log.a.job", add("log.a.job"), "a controller"},
		{"append log.b.job", add("log.b.job"), "controller"},
		{"load of a", load(wire.Bucket("a")), "a client controller"},
		{"load of b", load(wire.Bucket("b")), "client controller"},
		{"load graph", load(wire.Graphs), "client controller"},
		{"store to a", save(wire.Bucket("a")), "controller"},
		{"store graph", save(wire.Graphs), "controller"},
		{"depose the leader", ask("$O.graphs.C.fence"), "controller"},
		{"remove of a", remove(wire.Bucket("a2")), "controller"},
		{"remove graph", remove("graphs"), "controller"},
		{"ask control", ask(wire.ControlSubject), "client controller"},
		{"read all orders", ask(directGet + "KV_orders"), "controller"},
		{"read all statuses", ask(directGet + "KV_status"), "controller"},
		{"read all objects of a", ask(directGet + "OBJ_x-a"), "a client controller"},
		{"read all objects of b", ask(directGet + "OBJ_x-b"), "client controller"},
		{"read all records", ask(directGet + "KV_record"), "client controller"},
		{"replace all objects", ask("$O.x-a.M.x"), "controller"},
		{"ask JetStream", ask("$JS.API.INFO"), "controller"},
		{"list streams", ask("$JS.API.STREAM.NAMES"), "controller"},
		{"consumer", ask("$JS.API.CONSUMER.CREATE.KV_orders.c.$KV.orders.a"), "controller"},
		{"listen to all", listen(">"), "controller"},
		{"listen to reports", listen("report.*.*"), "controller"},
		{"listen to traces", listen("trace.*.*"), "controller"},
		{"listen to what is handed on", listen("traced.*.*"), "client controller"},
		{"listen to requests", listen(wire.ControlSubject), "controller"},
		{"listen to stored", listen("$KV.>"), "controller"},
		{"listen to system", listen("$SYS.>"), "controller"}, // of its own account: there is nothing to hear
	} {
		for name, user := range users {
			err := test.act(user)
			if may := strings.Contains(" "+test.who+" ", " "+name+" "); may != (err == nil) {
				t.Errorf("%s: %s: %v", name, test.what, err)
			} else if err != nil && !strings.Contains(err.Error(), "may not") {
				t.Errorf("%s: %s: the error does not say that it may not: %v", name, test.what, err)
			}
		}
	}
}

// TestForgedReports shows that an executor's events reach the controller under its own name alone.
func TestForgedReports(t *testing.T) {
	s := listening(t)
	c, a := rule(t, s), join(t, s, Executor("a"))
	got := newEvents()
	_, err := c.Subscribe("report.*.*", got.each)
	must(t, err)
	must(t, a.Publish("report.b.job", []byte("forged")))
	must(t, a.Publish("report.a.b.job", []byte("forged")))
	must(t, a.Publish("report.a.job", []byte("genuine")))
	got.want(t, "report.a.job=genuine")
}

// TestTraces shows that the controller hears what executors tell of their jobs, each under its own name alone, and
// that users hear what it hands on.
func TestTraces(t *testing.T) {
	s := listening(t)
	c, client, a := rule(t, s), join(t, s, Client), join(t, s, Executor("a"))
	told, handed := newEvents(), newEvents()
	_, err := c.Subscribe(wire.TraceSubject("*", "*"), told.each)
	must(t, err)
	_, err = client.Subscribe(wire.TracedSubject("*", "*"), handed.each)
	must(t, err)
	for _, subject := range []string{"trace.b.job", "traced.a.job"} {
		must(t, a.Publish(subject, []byte("forged")))
	}
	must(t, a.Publish(wire.TraceSubject("a", "job"), []byte("genuine")))
	told.want(t, "trace.a.job=genuine")
	must(t, c.Publish(wire.TracedSubject("a", "job"), []byte("genuine")))
	handed.want(t, "traced.a.job=genuine")
}

// TestForgedReplies has an executor name the subjects of others as the place for answers: a server gives its answers
// with all authority. It has put what is to be said in its own status, and has the server say that, or an
// acknowledgement.
func TestForgedReplies(t *testing.T) {
	s := listening(t)
	ctx, c := within(t), rule(t, s)
	a, b, client := join(t, s, Executor("a")), join(t, s, Executor("b")), join(t, s, Client)
	victims := []string{"orders.b", "status.b", "record.job"}
	for _, key := range victims {
		must(t, c.Put(ctx, key, []byte("genuine")))
	}
	must(t, c.Put(ctx, "orders.a", []byte("forged")))
	must(t, c.Put(ctx, "record.a", []byte("forged")))
	must(t, a.Put(ctx, "status.a", []byte("forged")))
	must(t, c.Store(ctx, wire.Bucket("a"), "it", []byte("forged")))
	must(t, c.Store(ctx, wire.Bucket("b"), "it", []byte("genuine")))
	stop, err := c.Serve(wire.ControlSubject, func(_ string, data []byte, reply func([]byte)) { reply(data) })
	must(t, err)
	defer stop()

	seen, of := newEvents(), newEvents()
	_, err = c.Subscribe("report.*.*", seen.each)
	must(t, err)
	_, err = c.Watch(ctx, "status.b", seen.each)
	must(t, err)
	_, err = b.Watch(ctx, "orders.b", of.each)
	must(t, err)
	seen.want(t, "status.b=genuine")
	of.want(t, "orders.b=genuine")

	replies := []string{
		"$KV.orders.b", "$KV.status.b", "$KV.record.job", "now.$KV.orders.b", "now.$KV.status.b", "report.b.job",
		"control",
		b.inbox + "1", "$O.x-b.M.aXQ=", "$O.x-b.C.chunk", "log.b.job",
	}
	for _, reply := range replies {
		for _, ask := range []struct {
			user    *Conn
			subject string
		}{
			{a, "$KV.status.a"}, {a, "report.a.job"}, {a, "log.a.job"}, {a, directGet + "KV_orders.$KV.orders.a"},
			{client, "control"}, {client, directGet + "KV_record.$KV.record.a"},
			{a, directGet + "OBJ_x-a"}, {client, directGet + "OBJ_x-a"},
		} {
			must(t, ask.user.nats.PublishMsg(&nats.Msg{Subject: ask.subject, Reply: reply, Data: []byte("forged")}))
		}
	}
	// What a stream answers, it answers in order; what it is told, it stores in order.
	must(t, a.Put(ctx, "status.a", nil))
	must(t, a.Append(ctx, "log.a.job", nil))
	_, err = a.Get(ctx, "orders.a")
	must(t, err)
	_, err = client.Get(ctx, "record.a")
	must(t, err)
	_, err = client.Ask(ctx, wire.ControlSubject, []byte("x"))
	must(t, err)
	for _, key := range victims {
		must(t, c.Put(ctx, key+"2", nil))
		if got, err := c.Get(ctx, key); err != nil || string(got) != "genuine" {
			t.Errorf("%s is %q, %v", key, got, err)
		}
	}
	must(t, a.Publish("report.a.job", []byte("last")))
	for v := range seen {
		if v.name != "report.a.job" {
			t.Errorf("the controller was told %v", v)
		}
		if v.value == "last" {
			break
		}
	}
	must(t, c.Put(ctx, "orders.b", []byte("last")))
	of.want(t, "orders.b=last")
	if _, err := c.Load(ctx, wire.Bucket("b"), "it"); err != nil {
		t.Errorf("the object of another: %v", err)
	}
	if n := inStream(t, c, "OBJ_x-b"); n != 2 {
		t.Errorf("%d messages are stored as objects of another, want 2", n)
	}
	lines := 0
	_, err = c.Follow(ctx, "log.b.job", func(string, []byte) { lines++ })
	must(t, err)
	if lines != 0 {
		t.Errorf("%d lines are in a log of another", lines)
	}
}

// TestForgedHeaders has an executor give its status the headers by which servers steer storing and watching.
func TestForgedHeaders(t *testing.T) {
	s := listening(t)
	ctx, c, a := within(t), rule(t, s), join(t, s, Executor("a"))
	must(t, c.Put(ctx, "status.b", []byte("genuine")))
	got := newEvents()
	_, err := c.Watch(ctx, "status.*", got.each)
	must(t, err)
	got.want(t, "status.b=genuine")
	for name, value := range map[string]string{
		"Nats-Rollup": "all", "Nats-Sequence": "99999999", "Nats-Subject": "$KV.status.b", "Status": "404",
		"Nats-TTL":    "1s",
		"Nats-Stream": "KV_orders", "Nats-Trace-Dest": "report.b.job", "Nats-Schedule-Target": "$KV.status.b",
		"Nats-Msg-Id": "1", "Nats-Expected-Last-Sequence": "1", "Nats-Batch-Id": "1", "Nats-Incr": "+1",
	} {
		// Refused or not, it changes nothing for others.
		must(t, a.publish(&nats.Msg{Subject: "$KV.status.a", Header: nats.Header{name: {value}}, Data: []byte("odd")}))
	}
	must(t, a.store(ctx, "KV_status", &nats.Msg{Subject: "$KV.status.a", Header: nats.Header{"Status": {"503"},
		"Nats-Sequence": {"99999999"}}}))
	must(t, c.Put(ctx, "status.b", []byte("later")))
	got.until(t, "status.b=later")

	again := newEvents()
	_, err = c.Watch(ctx, "status.*", again.each)
	must(t, err)
	again.want(t, "status.a=", "status.b=later")
}

// TestSplitHeader sends a header with a line break that the server takes for a part of it, but the gate for its end.
// The gate's message has no such header, by which the server would write into the record of a job.
func TestSplitHeader(t *testing.T) {
	s := listening(t)
	c, to := rule(t, s), s.Credentials(Executor("a"))
	told, err := c.nats.SubscribeSync(wire.ReportSubject("a", "job"))
	must(t, err)
	must(t, c.nats.Flush())
	conn, err := net.Dial("tcp", strings.TrimPrefix(to.URL, "nats://"))
	must(t, err)
	defer conn.Close()
	header := "NATS/1.0\r\nX: y\nNats-Trace-Dest: $KV.record.job\r\n\r\n"
	_, err = fmt.Fprintf(conn, "CONNECT {\"user\":%q,\"pass\":%q,\"headers\":true}\r\n"+
		"HPUB %s %d %d\r\n%sodd\r\n",
		to.User, to.Password, told.Subject, len(header), len(header)+len("odd"), header)
	must(t, err)
	m, err := told.NextMsgWithContext(within(t))
	must(t, err)
	if string(m.Data) != "odd" || len(m.Header) > 0 {
		t.Errorf("the gate hands on %q with the headers %q", m.Data, m.Header)
	}
}

// TestRollups has users and executors send the header by which one message takes the place of all others, and of those
// of a leader, wherever they may write, and where they may not: nothing that others have stored goes.
func TestRollups(t *testing.T) {
	s := listening(t)
	ctx, c := within(t), rule(t, s)
	streams := []string{"OBJ_graphs", "OBJ_x-b", "KV_status", "KV_result", "KV_record", "KV_orders", "LOG"}
	must(t, c.Store(ctx, wire.Graphs, "it", []byte("genuine")))
	must(t, c.Store(ctx, wire.Bucket("b"), "it", []byte("genuine")))
	for _, key := range []string{"status.b", "result.b.1", "record.job", "orders.b"} {
		must(t, c.Put(ctx, key, []byte("genuine")))
	}
	must(t, c.Append(ctx, "log.b.job", []byte("genuine")))
	before := make(map[string]uint64)
	for _, stream := range streams {
		before[stream] = inStream(t, c, stream)
	}
	for _, user := range []string{Client, User("ada"), Executor("a")} {
		u := join(t, s, user)
		may, _ := accessOf(user)
		subjects := append([]string{"$O.graphs.M.aXQ=", "$O.graphs.C.x", "$O.graphs.C.fence", "$O.x-b.M.aXQ=",
			"$KV.status.b", "$KV.result.b.1", "$KV.record.job", "$KV.orders.b", "log.b.job",
			"$KV.record.fence.of.leader"}, append(may.publish, may.gated...)...)
		for _, subject := range subjects {
			for _, value := range []string{"all", "sub"} {
				_ = u.nats.PublishMsg(&nats.Msg{Subject: strings.ReplaceAll(subject, "*", "x"), Data: []byte("forged"),
					Header: nats.Header{"Nats-Rollup": {value}}})
			}
		}
		must(t, u.nats.Flush())
	}
	must(t, c.Put(ctx, "status.c", nil)) // what came before has been stored, or refused
	for _, stream := range streams {
		if after := inStream(t, c, stream); after < before[stream] {
			t.Errorf("of %d messages of %s there are %d", before[stream], stream, after)
		}
	}
	if got, err := c.Load(ctx, wire.Graphs, "it"); string(got) != "genuine" {
		t.Errorf("a graph is %q, %v", got, err)
	}
	if term, _, err := c.term(ctx, "OBJ_graphs"); term != 0 || err != nil {
		t.Errorf("a user has made a leader of term %d, %v", term, err)
	}
}

// TestNames shows that no user is let in under a name that would be a pattern, even with the right password.
func TestNames(t *testing.T) {
	s := listening(t)
	for _, user := range []string{"", "x", "x-", "x-*", "x->", "x-a.b", "x-a b", "other", "$SYS", "$G"} {
		if c, err := Connect(context.Background(), s.Credentials(user), ConnOptions{}); err == nil {
			c.Close()
			t.Errorf("user %q is let in", user)
		} else if !errors.Is(err, nats.ErrAuthorization) && !strings.Contains(err.Error(),
			fmt.Sprintf("user %q is refused", user)) {
			t.Errorf("user %q: %v", user, err)
		}
	}
}
