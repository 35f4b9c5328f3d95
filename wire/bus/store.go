package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tensile/wire"
)

// directGet is the subject of requests for stored messages, followed by the name of the stream.
const directGet = "$JS.API.DIRECT.GET."

const (
	gib = 1 << 30

	maxLine  = 16 << 10 // bytes of a line in a log
	maxLines = 10_000   // lines of a log; the oldest are dropped
)

// streams are all that is stored, apart from the buckets of executors, which are made when something is stored in them.
// A full stream refuses new messages, but the logs drop their oldest lines.
var streams = []jetstream.StreamConfig{
	keyValueConfig("KV_orders", "$KV.orders.>", gib),
	keyValueConfig("KV_status", "$KV.status.>", gib),
	keyValueConfig("KV_result", "$KV.result.>", gib),
	keyValueConfig("KV_record", "$KV.record.>", gib),
	keyValueConfig("KV_device", "$KV.device.>", gib),
	bucket{wire.Graphs}.config(),
	{
		Name: "LOG", Subjects: []string{"log.*.*"}, AllowDirect: true, MaxMsgsPerSubject: maxLines,
		MaxMsgSize: maxLine + 1<<10,
		MaxBytes:   gib, Discard: jetstream.DiscardOld, RePublish: republishConfig("log.>"),
	},
}

// keyValueConfig returns the configuration of a key-value store: a stream that keeps the newest message of each
// subject, and publishes it again.
func keyValueConfig(name, subject string, bytes int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{subject}, AllowDirect: true, MaxMsgsPerSubject: 1, MaxBytes: bytes,
		Discard: jetstream.DiscardNew, RePublish: republishConfig(subject),
	}
}

// republishConfig makes a stream publish again what it has stored, under a subject that it does not store.
func republishConfig(subject string) *jetstream.RePublish {
	return &jetstream.RePublish{Source: subject, Destination: now + subject}
}

// prepare makes the streams that are not there.
func prepare(ctx context.Context, js jetstream.JetStream) error {
	for _, s := range streams {
		if _, err := js.CreateOrUpdateStream(ctx, s); err != nil {
			return fmt.Errorf("make stream %s: %w", s.Name, err)
		}
	}
	return nil
}

// place is where something is kept: in a stream under a subject, which may have wildcards.
type place struct {
	stream, subject string
	latest          bool // the newest message of each subject alone is kept
}

// keyBuckets are the stores of keys.
var keyBuckets = []string{"orders", "status", "result", "record", "device", "leader"}

// keyPlace is the place of a key such as "status.e1" or a pattern of keys.
func keyPlace(key string) (place, error) {
	bucket, name, _ := strings.Cut(key, ".")
	if name == "" || !slices.Contains(keyBuckets, bucket) {
		return place{}, fmt.Errorf("there is no key %q: keys are named by package wire", key)
	}
	return place{"KV_" + bucket, "$KV." + key, true}, nil
}

// logPlace is the place of a log or a pattern of logs.
func logPlace(log string) (place, error) {
	if !strings.HasPrefix(log, "log.") || strings.Count(log, ".") != 2 {
		return place{}, fmt.Errorf("there is no log %q: logs are made by LogSubject of package wire", log)
	}
	return place{"LOG", log, false}, nil
}

// message is one that is stored.
type message struct {
	subject  string
	sequence uint64 // in its stream
	data     []byte // not nil
	deleted  bool
}

// sequenceOf returns the number that the server has given to a stored message, 0 if there is none. The server writes
// its headers after those of the sender.
func sequenceOf(m *nats.Msg) uint64 { return parseNumber(lastHeader(m, "Nats-Sequence")) }

func parseNumber(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func lastHeader(m *nats.Msg, header string) string {
	values := m.Header.Values(header)
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// newMessage returns a stored message, from an answer or from a subscription.
func newMessage(m *nats.Msg) message {
	data := m.Data
	if data == nil {
		data = []byte{}
	}
	return message{lastHeader(m, "Nats-Subject"), sequenceOf(m), data, m.Header.Get(operation) != ""}
}

// operation is the header by which NATS marks a deleted key.
const operation = "KV-Operation"

// newestMessage returns the newest message of a subject, or ErrNotFound.
func (c *Conn) newestMessage(ctx context.Context, p place) (message, error) {
	if c.byLeader(p.stream) {
		return c.leaderGet(ctx, p.stream, fmt.Sprintf(`{"last_by_subj":%q}`, p.subject))
	}
	return parseStored(c.getDirect(ctx, &nats.Msg{Subject: directGet + p.stream + "." + p.subject}))
}

// firstMessage returns the first message of a place, which may have wildcards, from a sequence number on, and how many
// follow it; or ErrNotFound.
func (c *Conn) firstMessage(ctx context.Context, p place, from uint64) (m message, more uint64, err error) {
	// A batch comes with the number of messages that follow, and with an end marker, which is dropped.
	got, err := c.getDirect(ctx, newQuery(p, from, `,"batch":1`))
	if err != nil {
		return message{}, 0, err
	}
	return newMessage(got), parseNumber(lastHeader(got, "Nats-Num-Pending")), nil
}

// nextMessage is firstMessage without the number of messages that follow, which costs the server time.
func (c *Conn) nextMessage(ctx context.Context, p place, from uint64) (message, error) {
	if c.byLeader(p.stream) {
		return c.leaderGet(ctx, p.stream, string(newQuery(p, from, "").Data))
	}
	return parseStored(c.getDirect(ctx, newQuery(p, from, "")))
}

func newQuery(p place, from uint64, more string) *nats.Msg {
	return &nats.Msg{Subject: directGet + p.stream, Data: fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q%s}`, from,
		p.subject, more)}
}

func parseStored(m *nats.Msg, err error) (message, error) {
	if err != nil {
		return message{}, err
	}
	return newMessage(m), nil
}

// getDirect asks for a stored message, and returns it as the server sends it; or ErrNotFound.
func (c *Conn) getDirect(ctx context.Context, query *nats.Msg) (*nats.Msg, error) {
	m, err := c.requestWithRetry(ctx, query, func(*nats.Msg) error { return nil }) // what was stored may be anything
	switch {
	case errors.Is(err, wire.ErrNobody):
		return nil, c.noStream()
	case err != nil:
		return nil, err
	case sequenceOf(m) != 0:
		return m, nil
	case m.Header.Get("Status") == "404":
		return nil, wire.ErrNotFound
	}
	return nil, fmt.Errorf("%s refuses the request: %s %s", c.server(), m.Header.Get("Status"),
		m.Header.Get("Description"))
}

// store has a stream store a message, and waits until it is.
func (c *Conn) store(ctx context.Context, stream string, m *nats.Msg) error {
	if strings.ContainsAny(m.Subject, "*> \t\r\n") {
		return fmt.Errorf("%q is a pattern, and nothing can be stored under it", m.Subject)
	}
	if err := c.guard(ctx, stream, m); err != nil {
		return err
	}
	_, err := c.send(ctx, m)
	if isWrongSequence(err) && c.fenced() {
		return errors.Join(err, c.deposed(ctx, stream))
	}
	return err
}

// send sends a message to be stored, and returns its number in the stream.
func (c *Conn) send(ctx context.Context, m *nats.Msg) (sequence uint64, err error) {
	got, err := c.requestWithRetry(ctx, m, c.acknowledged)
	if errors.Is(err, wire.ErrNobody) {
		if !c.credentials.External && c.credentials.User != Controller { // the gate is not there yet, or not again
			return 0, fmt.Errorf("%w: %w", wire.ErrAway, c.noStream())
		}
		return 0, c.noStream()
	}
	if err != nil {
		return 0, err
	}
	var ack jetstream.PubAck
	if err := json.Unmarshal(got.Data, &ack); err != nil {
		return 0, fmt.Errorf("%s answers what is no acknowledgement: %w", c.server(), err)
	}
	return ack.Sequence, nil
}

// errNoStream is returned when no stream is there to store a message, or to be asked for one.
var errNoStream = errors.New("keeps nothing yet")

func (c *Conn) noStream() error {
	return fmt.Errorf("%s %w: its controller has to connect first", c.server(), errNoStream)
}

// acknowledged returns the error in the answer of a stream.
func (c *Conn) acknowledged(m *nats.Msg) error {
	var ack struct {
		Error *refusal `json:"error"`
	}
	err := json.Unmarshal(m.Data, &ack)
	switch {
	case err != nil:
		return fmt.Errorf("%s answers what is no acknowledgement: %w", c.server(), err)
	case ack.Error == nil:
		return nil
	case ack.Error.number == jetstream.JSErrCodeStreamNotFound:
		return c.noStream()
	case ack.Error.number == notAvailable:
		return fmt.Errorf("%w: %s: %w", wire.ErrAway, c.server(), ack.Error)
	}
	return fmt.Errorf("%s refuses it: %w", c.server(), ack.Error)
}

// Put sets the latest value of a key.
func (c *Conn) Put(ctx context.Context, key string, value []byte) error {
	return c.setKey(ctx, "put", key, &nats.Msg{Data: value})
}

// Delete removes a key; one that is not there is no error. Of a result nothing stays: there are ever new ones, and
// nobody watches for their end.
func (c *Conn) Delete(ctx context.Context, key string) error {
	if p, err := keyPlace(key); err == nil && p.stream == "KV_result" && c.credentials.User == Controller {
		if err := c.purge(ctx, p); err != nil {
			return fmt.Errorf("delete %s: %w", key, err)
		}
		return nil
	}
	return c.setKey(ctx, "delete", key, &nats.Msg{Header: nats.Header{operation: {"DEL"}}})
}

func (c *Conn) setKey(ctx context.Context, what, key string, m *nats.Msg) error {
	p, err := keyPlace(key)
	if err == nil {
		m.Subject = p.subject
		err = c.store(ctx, p.stream, m)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, key, err)
	}
	return nil
}

// Get returns the latest value of a key, or an error that is [wire.ErrNotFound].
func (c *Conn) Get(ctx context.Context, key string) ([]byte, error) {
	p, err := keyPlace(key)
	var m message
	if err == nil {
		m, err = c.newestMessage(ctx, p)
	}
	if err == nil && m.deleted {
		err = wire.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return m.data, nil
}

// Watch reports the keys of a pattern, then every change, as [wire.Bus] says.
func (c *Conn) Watch(ctx context.Context, pattern string, each func(key string, value []byte)) (func(), error) {
	p, err := keyPlace(pattern)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", pattern, err)
	}
	const prefix = len("$KV.")
	known := make(map[string]bool) // keys that each was told of
	stop, err := c.read(ctx, p, func(m message) {
		key := m.subject[prefix:]
		switch {
		case !m.deleted:
			known[key] = true
			each(key, m.data)
		case known[key]:
			delete(known, key)
			each(key, nil)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", pattern, err)
	}
	return stop, nil
}

// Append adds a line to a log. A line of more than 16 KiB is cut.
func (c *Conn) Append(ctx context.Context, log string, line []byte) error {
	p, err := logPlace(log)
	if err == nil {
		err = c.store(ctx, p.stream, &nats.Msg{Subject: p.subject, Data: line[:min(len(line), maxLine)]})
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", log, err)
	}
	return nil
}

// Clear removes the lines of a log, in which "*" stands for any token; for a controller alone.
func (c *Conn) Clear(ctx context.Context, log string) error {
	p, err := logPlace(log)
	if err == nil {
		err = c.purge(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("clear %s: %w", log, err)
	}
	return nil
}

// Follow reports the lines of a log, then each new one, as [wire.Bus] says. The newest 10,000 lines of a log are kept.
func (c *Conn) Follow(ctx context.Context, log string, each func(log string, line []byte)) (func(), error) {
	p, err := logPlace(log)
	var stop func()
	if err == nil {
		stop, err = c.read(ctx, p, func(m message) { each(m.subject, m.data) })
	}
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", log, err)
	}
	return stop, nil
}

// Logs are the names of those that have lines, and how many; for a controller alone.
func (c *Conn) Logs(ctx context.Context) (map[string]int, error) {
	js, err := jetstream.New(c.nats)
	var stream jetstream.Stream
	if err == nil {
		stream, err = js.Stream(ctx, "LOG")
	}
	var info *jetstream.StreamInfo
	if err == nil {
		info, err = stream.Info(ctx, jetstream.WithSubjectFilter("log.>"))
	}
	if err != nil {
		return nil, fmt.Errorf("list the logs: %w", err)
	}
	logs := make(map[string]int)
	for name, lines := range info.State.Subjects {
		logs[name] = int(lines)
	}
	return logs, nil
}

// isNotFound reports whether there is none, or no more.
func isNotFound(err error) bool { return errors.Is(err, wire.ErrNotFound) }
