package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tensile/wire"
)

// message is one that is stored.
type message struct {
	subject string
	number  uint64 // in its stream
	data    []byte // not nil
	deleted bool
}

// sequence returns the number that the server has given to a stored message, 0 if it is none. The server writes its
// headers behind those of whoever sent the message.
func sequence(m *nats.Msg) uint64 { return parseNumber(last(m, "Nats-Sequence")) }

func parseNumber(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func last(m *nats.Msg, header string) string {
	values := m.Header.Values(header)
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// newMessage returns a message that was stored, as it was asked for or heard.
func newMessage(m *nats.Msg) message {
	data := m.Data
	if data == nil {
		data = []byte{}
	}
	return message{last(m, "Nats-Subject"), sequence(m), data, m.Header.Get(operation) != ""}
}

// operation is the header by which NATS marks a deleted key.
const operation = "KV-Operation"

// newest returns the newest message of a subject, or ErrNotFound.
func (c *Conn) newest(ctx context.Context, p place) (message, error) {
	return stored(c.direct(ctx, &nats.Msg{Subject: directGet + p.stream + "." + p.subject}))
}

// first returns the first message of a place, which may have wildcards, from a number on, and how many are behind it; or
// ErrNotFound.
func (c *Conn) first(ctx context.Context, p place, from uint64) (m message, more uint64, err error) {
	got, err := c.direct(ctx, query(p, from, `,"batch":1`)) // of a batch the server gives the number, then an end, which is dropped
	if err != nil {
		return message{}, 0, err
	}
	return newMessage(got), parseNumber(last(got, "Nats-Num-Pending")), nil
}

// next is first without the number, which takes the server some time.
func (c *Conn) next(ctx context.Context, p place, from uint64) (message, error) {
	return stored(c.direct(ctx, query(p, from, "")))
}

func query(p place, from uint64, more string) *nats.Msg {
	return &nats.Msg{Subject: directGet + p.stream, Data: fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q%s}`, from, p.subject, more)}
}

func stored(m *nats.Msg, err error) (message, error) {
	if err != nil {
		return message{}, err
	}
	return newMessage(m), nil
}

// direct asks for a stored message, and returns it as the server sends it; or ErrNotFound.
func (c *Conn) direct(ctx context.Context, query *nats.Msg) (*nats.Msg, error) {
	m, err := c.request(ctx, query, patience)
	switch {
	case errors.Is(err, wire.ErrNobody):
		return nil, c.noStream()
	case err != nil:
		return nil, err
	case sequence(m) != 0:
		return m, nil
	case m.Header.Get("Status") == "404":
		return nil, wire.ErrNotFound
	}
	return nil, fmt.Errorf("%s refuses the request: %s %s", c.server(), m.Header.Get("Status"), m.Header.Get("Description"))
}

// store has a stream store a message, and waits until it is.
func (c *Conn) store(ctx context.Context, m *nats.Msg) error {
	if strings.ContainsAny(m.Subject, "*> \t\r\n") {
		return fmt.Errorf("%q is a pattern, and nothing can be stored under it", m.Subject)
	}
	got, err := c.request(ctx, m, patience)
	if errors.Is(err, wire.ErrNobody) {
		return c.noStream()
	}
	if err != nil {
		return err
	}
	return c.acknowledged(got)
}

// errNoStream is returned when no stream is there to store a message, or to be asked for one.
var errNoStream = errors.New("keeps nothing yet")

func (c *Conn) noStream() error {
	return fmt.Errorf("%s %w: its controller has to connect first", c.server(), errNoStream)
}

// acknowledged returns the error in an answer of the store.
func (c *Conn) acknowledged(m *nats.Msg) error {
	var ack struct {
		Error *jetstream.APIError `json:"error"`
	}
	err := json.Unmarshal(m.Data, &ack)
	switch {
	case err != nil:
		return fmt.Errorf("%s answers what is no acknowledgement: %w", c.server(), err)
	case ack.Error == nil:
		return nil
	case ack.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return c.noStream()
	}
	return fmt.Errorf("%s does not store it: %s", c.server(), ack.Error.Description)
}
