package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tensile/wire"
)

// maxReplicas is on how many servers at most each stream is kept.
const maxReplicas = 3

// minServer is the first release of nats-server that can fence, as minMajor.minMinor.
const minMajor, minMinor = 2, 12

// checkServer returns what the external servers lack.
func (c *Conn) checkServer() error {
	var major, minor int
	version := c.nats.ConnectedServerVersion()
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || major < minMajor ||
		major == minMajor && minor < minMinor {
		return fmt.Errorf("it is NATS server %q, which cannot keep two controllers apart: install %d.%d or newer",
			version, minMajor, minMinor)
	}
	if limit := c.nats.MaxPayload(); limit < wire.MaxMessage {
		return fmt.Errorf("it takes messages of up to %d bytes, and those of Tensile may have %d: set max_payload: %d "+
			"in the configuration of each server", limit, wire.MaxMessage, wire.MaxMessage)
	}
	return nil
}

// prepareExternal makes the streams that are not there on the external servers.
func (c *Conn) prepareExternal(ctx context.Context) error {
	end := time.Now().Add(prepareTimeout)
	err := c.callAPI(ctx, "INFO", nil, nil)
	for errors.Is(err, context.DeadlineExceeded) && time.Now().Before(end) && ctx.Err() == nil {
		err = c.callAPI(ctx, "INFO", nil, nil)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("JetStream has no leader (%w): see that it is enabled, and that more than half of the "+
			"servers run", err)
	} else if err != nil {
		return fmt.Errorf("%w: enable JetStream on the servers and for the account, and let this user publish to "+
			"$JS.API.>", err)
	}
	for _, s := range external() {
		err := c.ensure(ctx, s)
		for isLeaderless(err) && time.Now().Before(end) && ctx.Err() == nil {
			err = c.ensure(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("make stream %s: %w", s.Name, err)
		}
	}
	return nil
}

// prepareTimeout is how long external servers that have just been started may take until JetStream has a leader.
const prepareTimeout = 40 * time.Second

// isLeaderless reports whether JetStream could not be asked, for now.
func isLeaderless(err error) bool {
	return errors.Is(err, wire.ErrAway) || errors.Is(err, context.DeadlineExceeded)
}

// external are the streams on external servers. What they may take together is for the account's limits to say.
func external() []jetstream.StreamConfig {
	list := append([]jetstream.StreamConfig{keyValueConfig("KV_leader", "$KV.leader.>", 0)}, streams...)
	for _, name := range []string{wire.Results, wire.Lessons, wire.Administration} {
		list = append(list, bucket{name}.config())
	}
	for i := range list {
		if list[i].Name != "LOG" { // which drops its oldest lines
			list[i] = unlimited(list[i])
		}
	}
	return list
}

// ensure makes a stream, or has one be as it should, on as many servers as there are, up to three. One that is kept on
// fewer, since a server was away when it was made, gets the others now.
func (c *Conn) ensure(ctx context.Context, s jetstream.StreamConfig) error {
	var is struct {
		Config jetstream.StreamConfig `json:"config"`
	}
	verb, least := "UPDATE", 0
	err := c.callAPI(ctx, "STREAM.INFO."+s.Name, nil, &is)
	switch {
	case errors.Is(err, errNoStream):
		verb, least = "CREATE", 1
	case err != nil:
		return err
	default:
		least = is.Config.Replicas
	}
	for s.Replicas = maxReplicas; ; s.Replicas-- {
		err := c.callAPI(ctx, "STREAM."+verb+"."+s.Name, s, nil)
		problem, ok := errors.AsType[*refusal](err)
		if !ok || s.Replicas <= least || problem.number != noPeers && problem.number != noReplicas {
			return err
		}
	}
}

// storeMade stores a message in a bucket, which is made at the first one: to who publishes, a stream that is not there
// looks like one without a leader.
func (c *Conn) storeMade(ctx context.Context, b bucket, m *nats.Msg) error {
	stream := b.stream()
	c.mu.Lock()
	made := c.made[stream]
	c.mu.Unlock()
	if !made {
		if err := c.ensure(ctx, unlimited(b.config())); err != nil {
			return fmt.Errorf("make stream %s: %w", stream, err)
		}
	}
	err := c.store(ctx, stream, m)
	c.mu.Lock()
	c.made[stream] = err == nil
	c.mu.Unlock()
	return err
}

// unlimited leaves it to the account's limits how much a stream takes.
func unlimited(s jetstream.StreamConfig) jetstream.StreamConfig {
	s.MaxBytes = -1
	return s
}

// Codes of JetStream's errors.
const (
	notAvailable  jetstream.ErrorCode = 10008 // for now
	noMessage     jetstream.ErrorCode = 10037
	noPeers       jetstream.ErrorCode = 10005 // for so many replicas
	noReplicas    jetstream.ErrorCode = 10074 // on a server without a cluster
	wrongSequence jetstream.ErrorCode = 10071
	sequenceBusy  jetstream.ErrorCode = 10164 // a message with the same condition is on its way
)

// callAPI sends a request to JetStream, and reads what it answers.
func (c *Conn) callAPI(ctx context.Context, what string, request, into any) error {
	var body []byte
	if request != nil {
		var err error
		if body, err = json.Marshal(request); err != nil {
			panic(fmt.Sprintf("bus: a request to JetStream cannot be written as JSON: %v", err))
		}
	}
	m, err := c.requestWithRetry(ctx, &nats.Msg{Subject: "$JS.API." + what, Data: body}, c.acknowledged)
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(m.Data, into)
}

// requestWithRetry sends a request and looks at its answer. Where nobody answers at servers of others, or JetStream is
// not there for now, a stream or JetStream has no leader: it asks again for as long as an answer may take. What a
// client or an executor wants to read it asks for again, too, when no answer came: a server that ended had it, perhaps.
// A controller does not, for its lease does not wait.
func (c *Conn) requestWithRetry(ctx context.Context, m *nats.Msg, look func(*nats.Msg) error) (*nats.Msg, error) {
	lost := 0
	for end := time.Now().Add(answerTimeout); ; {
		got, err := c.request(ctx, m, c.patience())
		switch {
		case err == nil:
			if err = look(got); !errors.Is(err, wire.ErrAway) {
				return got, err
			}
		case !c.credentials.External:
			return nil, err
		case errors.Is(err, wire.ErrNobody):
			err = fmt.Errorf("%w: %s has no leader for %s now", wire.ErrAway, c.server(), m.Subject)
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && lost < maxLost &&
			c.credentials.User != Controller && isQuestion(m.Subject):
			lost++
			end = time.Now().Add(answerTimeout)
			continue
		default:
			return nil, err
		}
		if time.Now().After(end) {
			return nil, err
		}
		timer := time.NewTimer(resyncInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("no answer from %s: %w", c.server(), context.Cause(ctx))
		}
	}
}

// maxLost is how many times in a row a question is repeated that had no answer.
const maxLost = 2

// isQuestion reports whether a request to JetStream changes nothing.
func isQuestion(subject string) bool {
	return slices.ContainsFunc([]string{directGet, leaderRead, "$JS.API.INFO", "$JS.API.STREAM.INFO."},
		func(prefix string) bool { return strings.HasPrefix(subject, prefix) })
}

// leaderGet asks the leader of a stream for a stored message: others may not have the newest yet.
func (c *Conn) leaderGet(ctx context.Context, stream, query string) (message, error) {
	var got struct {
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Header  []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	err := c.callAPI(ctx, strings.TrimPrefix(leaderRead, "$JS.API.")+stream, json.RawMessage(query), &got)
	if problem, ok := errors.AsType[*refusal](err); ok && problem.number == noMessage {
		return message{}, wire.ErrNotFound
	}
	if err != nil {
		return message{}, err
	}
	data := got.Message.Data
	if data == nil {
		data = []byte{}
	}
	deleted := strings.Contains(string(got.Message.Header), "\r\n"+operation+":")
	return message{got.Message.Subject, got.Message.Seq, data, deleted}, nil
}

// byLeader reports whether the leader of a stream is to be asked for what is stored. An executor may not ask for orders
// in that way, since the servers would not see for whose: a copy that is late does no harm, as it is told again.
func (c *Conn) byLeader(stream string) bool {
	return c.credentials.External && (stream != "KV_orders" || c.credentials.User == Controller)
}

// pollInterval lies between two looks whether something has been missed.
const pollInterval = 2 * time.Second

// poll has readers read again what they have missed: a stream whose leader ends may have stored a message that it never
// published again. What is the newest at one look, and is not known at the next, was missed.
func (c *Conn) poll() {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	newest := make(map[*subscription]uint64)
	for {
		select {
		case <-c.end:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		var readers []*subscription
		for s := range c.subscriptions {
			if s.reader != nil {
				readers = append(readers, s)
			}
		}
		c.mu.Unlock()
		now := make(map[*subscription]uint64)
		for _, s := range readers {
			if c.isClosing() {
				return
			}
			if before := newest[s]; before > 0 {
				s.rereadFrom(before)
			}
			ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
			if m, err := c.newestMessage(ctx, s.reader.place); err == nil {
				now[s] = m.sequence
			}
			cancel()
		}
		newest = now
	}
}

// rereadFrom has a reader that has not come to a message read again.
func (s *subscription) rereadFrom(sequence uint64) {
	if !s.mu.TryLock() {
		return // it is just being told of something
	}
	late := !s.stopped && s.reader.last < sequence
	s.mu.Unlock()
	if late {
		s.lost.Add(1)
		s.conn.mu.Lock()
		s.conn.resync(s)
		s.conn.mu.Unlock()
	}
}
