package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tensile/wire"
)

// fence lets a controller write for as long as it leads. Each stream holds, under a subject of its own, one message
// with the term of the newest leader that wrote there. What a leader writes is stored on the condition that this is
// still the leader's own, which the stream checks: so nothing of a leader is stored after its successor's first word.
type fence struct {
	term int64             // 0: this connection writes without condition
	at   map[string]uint64 // the number of this term's message, by stream
}

// fencedFirst are the streams that a leader takes before it reads what is stored.
var fencedFirst = [...]string{"KV_record", "KV_orders", "KV_device"}

// fenceSubject is where a stream has the term of its newest leader: no key and no object is called so. It is "" for
// logs, which leaders only remove.
func fenceSubject(stream string) string {
	if bucket, ok := strings.CutPrefix(stream, "OBJ_"); ok {
		return "$O." + bucket + ".C.fence"
	}
	if bucket, ok := strings.CutPrefix(stream, "KV_"); ok {
		return "$KV." + bucket + ".fence.of.leader"
	}
	return ""
}

// Fence has the connection write as the leader of a term alone from now on. Once it has returned, nothing that a leader
// before this one writes is stored among records, orders and devices, and among the rest no later than this one's first
// word there. The error is [wire.ErrDeposed] if a newer leader was there before; then, and from when there is one on,
// what writes fails with that error, and nothing is written.
func (c *Conn) Fence(ctx context.Context, term int64) error {
	c.mu.Lock()
	c.fence = fence{term: term, at: make(map[string]uint64)}
	c.mu.Unlock()
	for _, stream := range fencedFirst {
		if _, err := c.fenceOf(ctx, stream); err != nil {
			return fmt.Errorf("fence %s for term %d: %w", stream, term, err)
		}
	}
	return nil
}

func (c *Conn) fenced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fence.term > 0
}

// guard puts the condition to a message for a stream.
func (c *Conn) guard(ctx context.Context, stream string, m *nats.Msg) error {
	if !c.fenced() || fenceSubject(stream) == "" {
		return nil
	}
	sequence, err := c.fenceOf(ctx, stream)
	if err != nil {
		return err
	}
	m.Header = maps.Clone(m.Header)
	if m.Header == nil {
		m.Header = make(nats.Header)
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(sequence, 10))
	m.Header.Set(jetstream.ExpectedLastSubjSeqSubjHeader, fenceSubject(stream))
	return nil
}

// fenceOf is the number of this term's message in a stream, which is stored there if it is not yet.
func (c *Conn) fenceOf(ctx context.Context, stream string) (uint64, error) {
	c.mu.Lock()
	term, at := c.fence.term, c.fence.at
	sequence := at[stream]
	c.mu.Unlock()
	for sequence == 0 {
		holds, last, err := c.term(ctx, stream)
		switch {
		case err != nil:
			return 0, err
		case holds > term:
			return 0, wire.ErrDeposed
		case holds == term: // it was stored, and the answer was lost
			sequence = last
			continue
		}
		m := conditional(fenceSubject(stream), []byte(strconv.FormatInt(term, 10)), last)
		if sequence, err = c.send(ctx, m); err != nil && !isWrongSequence(err) {
			return 0, err
		}
	}
	c.mu.Lock()
	at[stream] = sequence
	c.mu.Unlock()
	return sequence, nil
}

// term is the term of the newest leader that wrote to a stream, and the number of the message that says so.
func (c *Conn) term(ctx context.Context, stream string) (term int64, sequence uint64, err error) {
	m, err := c.leaderGet(ctx, stream, fmt.Sprintf(`{"last_by_subj":%q}`, fenceSubject(stream)))
	if isNotFound(err) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	if term, err = strconv.ParseInt(string(m.data), 10, 64); err != nil {
		return 0, 0, fmt.Errorf("%s has no term at %s: remove that message", stream, m.subject)
	}
	return term, m.sequence, nil
}

// deposed returns [wire.ErrDeposed] if a newer leader has written to a stream.
func (c *Conn) deposed(ctx context.Context, stream string) error {
	c.mu.Lock()
	mine := c.fence.term
	c.mu.Unlock()
	switch term, _, err := c.term(ctx, stream); {
	case err != nil:
		return err
	case term > mine:
		return wire.ErrDeposed
	}
	return nil
}

// conditional is a message that is stored if the newest under its subject has a number.
func conditional(subject string, data []byte, last uint64) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: data,
		Header: nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(last, 10)}}}
}

// isWrongSequence reports whether a condition was not met.
func isWrongSequence(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && (r.number == wrongSequence || r.number == sequenceBusy)
}

// refusal is the error of a server for a request.
type refusal struct {
	number jetstream.ErrorCode
	text   string
}

func (r *refusal) Error() string { return r.text }

// UnmarshalJSON reads it as JetStream writes it.
func (r *refusal) UnmarshalJSON(data []byte) error {
	var e jetstream.APIError
	err := json.Unmarshal(data, &e)
	*r = refusal{e.ErrorCode, e.Description}
	return err
}

// Revision returns the latest value of a key, as the leader of its stream has it, and its revision; or
// [wire.ErrNotFound].
func (c *Conn) Revision(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	p, err := keyPlace(key)
	var m message
	if err == nil {
		m, err = c.leaderGet(ctx, p.stream, fmt.Sprintf(`{"last_by_subj":%q}`, p.subject))
	}
	if err != nil {
		return nil, 0, fmt.Errorf("get %s: %w", key, err)
	}
	return m.data, m.sequence, nil
}

// Update sets the value of a key that has a revision, 0 if it was never there, and returns the new revision. The error
// is [wire.ErrConflict] if it has another one. After any other error it may or may not have been set.
func (c *Conn) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	p, err := keyPlace(key)
	var now uint64
	if err == nil {
		now, err = c.send(ctx, conditional(p.subject, value, revision))
	}
	if isWrongSequence(err) {
		err = wire.ErrConflict
	}
	if err != nil {
		return 0, fmt.Errorf("update %s: %w", key, err)
	}
	return now, nil
}
