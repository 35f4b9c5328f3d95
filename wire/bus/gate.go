package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tensile/graph"
)

// What executors publish does not go to the streams, or to the controller, but to the gate of the server. It hands on
// of each executor what that may send, and refuses the rest: so one that sends without end keeps nobody else waiting,
// and its lines push nobody else's out of the logs. It hands on no headers: by some, such as Nats-Trace-Dest, the
// server would do what the controller may, and the sender may not. Requests of command lines go straight to the
// controller, which asks the gate whether their user may send them.

// gated begins the subject at which the gate gets what an executor publishes to a subject.
const gated = "in."

// requests are what the command lines of each user may ask: 512 small requests a second.
var requests = allowance{kind: "requests", rate: 128 << 20, burst: 256 << 20, each: 256 << 10}

// allowances are what each executor may send of each kind, the kind being how the subject begins.
var allowances = []allowance{
	{kind: "$KV.status.", rate: 16 << 20, burst: 64 << 20, each: 16 << 10},
	{kind: "$KV.result.", rate: 16 << 20, burst: 64 << 20, each: 16 << 10},
	{kind: "report.", rate: 32 << 20, burst: 64 << 20, each: 1 << 10, unanswered: true},
	{kind: "trace.", rate: 32 << 20, burst: 64 << 20, each: 1 << 10, unanswered: true},
	{kind: logKind, rate: 8 << 20, burst: 32 << 20, each: 1 << 10},
}

const (
	logKind = "log."

	maxLogs = 64 << 20 // bytes of the lines of one executor that are kept; the oldest are dropped
)

// allowance is what a user may send of a kind of messages.
type allowance struct {
	kind        string
	rate, burst int64 // bytes in a second, and at once after a pause
	each        int64 // bytes that a message counts for beside its own: it takes time to be handled
	unanswered  bool  // nobody answers them, so the gate does: until then the server remembers who wants an answer
}

// gate hands on what executors publish, and counts what each user sends.
type gate struct {
	conn *Conn
	log  func(kind, line string)
	// bar closes the connections of a user, and lets it in again after a while.
	bar func(user string)
	// answers begins the subject of an answer to what it hands on, followed by that of who asks: the server lets no
	// client name the latter itself.
	answers string
	// background counts the goroutines that drop old lines or bar a user.
	background sync.WaitGroup

	// first is the number of the first line after those that were there when the server started.
	first uint64

	// mu guards the fields that follow.
	mu sync.Mutex
	// senders are the users that have sent something of a kind, by both. Those that are idle go when there are
	// manySenders.
	senders     map[string]*sender
	manySenders int
}

// sender is a user that sends messages of a kind.
type sender struct {
	left int64 // bytes that it may send at once, as it was at a time
	at   time.Time
	over int64 // bytes that were refused, less those that it might have sent since at its rate

	// When half of maxLogs was sent since a mark, the lines before it are dropped and it moves to the end.
	since    int64
	mark     uint64 // the number of a line in the stream; while dropping, it belongs to dropLines
	dropping bool
}

// openGate opens the gate on a connection of the controller's, which is closed with it.
func openGate(ctx context.Context, c *Conn, log func(kind, line string), bar func(user string)) (*gate, error) {
	g := &gate{conn: c, log: log, bar: bar, answers: nats.NewInbox() + ".", senders: make(map[string]*sender)}
	stream, err := g.lines(ctx)
	if err == nil {
		g.first = stream.CachedInfo().State.LastSeq + 1
		_, err = c.subscribe(g.answers+">", func(m *nats.Msg) {
			g.answer(strings.TrimPrefix(m.Subject, g.answers), m.Header, m.Data)
		})
	}
	if err == nil {
		_, err = c.subscribe(gated+">", g.pass)
	}
	return g, err
}

// lines is the stream of all logs, as it is now.
func (g *gate) lines(ctx context.Context) (jetstream.Stream, error) {
	js, err := jetstream.New(g.conn.nats)
	if err != nil {
		return nil, err
	}
	return js.Stream(ctx, "LOG")
}

// close closes the gate's connection.
func (g *gate) close() {
	g.conn.Close()
	g.background.Wait()
}

// pass hands on a message, or refuses it.
func (g *gate) pass(m *nats.Msg) {
	subject := strings.TrimPrefix(m.Subject, gated)
	for i := range allowances {
		a := &allowances[i]
		rest, ok := strings.CutPrefix(subject, a.kind)
		if !ok {
			continue
		}
		executor, _, _ := strings.Cut(rest, ".")
		why := ""
		if !g.spend(Executor("")+executor, a, int64(m.Size()), time.Now()) {
			why = fmt.Sprintf("executor %s sends too much to %s*: at most %s a second is taken of it", executor, a.kind,
				graph.Bytes(a.rate))
		} else if a.kind == logKind && !g.keepLines(executor, int64(m.Size())) {
			why = fmt.Sprintf("executor %s writes logs faster than its old lines are dropped", executor)
		}
		if why != "" {
			g.log("gate: "+a.kind+executor, why)
			g.answer(m.Reply, nil, refusalText(why))
			return
		}
		to := &nats.Msg{Subject: subject, Data: m.Data}
		switch {
		case a.unanswered:
			g.answer(m.Reply, nil, nil)
		case m.Reply != "":
			to.Reply = g.answers + m.Reply
		}
		_ = g.conn.publish(to) // while the server starts again it is not there, and who has sent this tries again
		return
	}
}

// answer answers who has published something, if an answer is wanted.
func (g *gate) answer(to string, header nats.Header, data []byte) {
	if to != "" {
		_ = g.conn.publish(&nats.Msg{Subject: to, Header: header, Data: data}) // who asks hears nothing then
	}
}

// spend counts a message of some bytes, and reports whether its user may send it. One that goes on with what is refused
// is barred: to refuse it keeps others waiting.
func (g *gate) spend(user string, a *allowance, bytes int64, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := a.kind + user
	s := g.senders[key]
	if s == nil {
		if len(g.senders) >= g.manySenders {
			g.forgetIdle(now)
		}
		s = &sender{left: a.burst, at: now, mark: g.first}
		g.senders[key] = s
	}
	if passed := now.Sub(s.at); passed > 0 {
		s.at = now
		may := int64(min(passed.Seconds(), 3600) * float64(a.rate))
		s.left, s.over = min(a.burst, s.left+may), max(0, s.over-may)
	}
	if bytes+a.each > s.left {
		if s.over += bytes + a.each; s.over > 4*a.burst {
			s.over = 0
			g.background.Go(func() { g.bar(user) })
		}
		return false
	}
	s.left -= bytes + a.each
	return true
}

// keepLines counts bytes of the log of an executor, and has old lines dropped. It is false while these are so many that
// no more are kept.
func (g *gate) keepLines(executor string, bytes int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.senders[logKind+Executor("")+executor]
	if s.since+bytes > maxLogs/2 {
		if s.dropping {
			return false
		}
		s.since, s.dropping = 0, true
		g.background.Go(func() { g.dropLines(executor, s) })
		return true
	}
	s.since += bytes
	return true
}

// forgetIdle forgets who has sent nothing for an hour, so that the past executors of a controller that runs for months
// take no memory. One that comes back has its whole burst, as it had; lines that it wrote since its last mark may be
// kept beside the newest maxLogs.
func (g *gate) forgetIdle(now time.Time) {
	maps.DeleteFunc(g.senders, func(_ string, s *sender) bool { return now.Sub(s.at) > time.Hour && !s.dropping })
	g.manySenders = max(1024, 2*len(g.senders))
}

// dropLines drops the lines of an executor before the older mark.
func (g *gate) dropLines(executor string, s *sender) {
	err := g.dropBefore(executor, s)
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.dropping = false; err != nil { // such as while the server starts again
		s.since = maxLogs / 2
	}
}

// dropBefore drops the lines of an executor before its mark, and moves that to the end of the stream.
func (g *gate) dropBefore(executor string, s *sender) error {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	stream, err := g.lines(ctx)
	if err != nil {
		return err
	}
	err = stream.Purge(ctx, jetstream.WithPurgeSubject(logKind+executor+".*"), jetstream.WithPurgeSequence(s.mark))
	if err == nil {
		s.mark = stream.CachedInfo().State.LastSeq + 1
	}
	return err
}

// refusalText is the answer of a stream that does not store a message.
func refusalText(why string) []byte {
	text, err := json.Marshal(struct {
		Error jetstream.APIError `json:"error"`
	}{jetstream.APIError{Code: 429, Description: why}})
	if err != nil {
		panic(fmt.Sprintf("bus: a refusal cannot be written as JSON: %v", err))
	}
	return text
}
