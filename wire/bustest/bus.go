package bustest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"tensile/wire"
)

// Bus is a bus and its one connection, which all in the process share.
type Bus struct {
	mu            sync.Mutex
	keys          map[string][]byte
	objects       map[string][]byte // by bucket and name
	logs          map[string][][]byte
	subscriptions map[*subscription]bool
	running       sync.WaitGroup // goroutines of subscriptions
}

var _ wire.Bus = (*Bus)(nil)

// New returns a bus on which nothing is.
func New() *Bus {
	return &Bus{keys: map[string][]byte{}, objects: map[string][]byte{}, logs: map[string][][]byte{},
		subscriptions: map[*subscription]bool{}}
}

// kind is what a subscription is told of.
type kind int

const (
	values kind = iota
	events
	requests
	lines
)

// message is what a subscription is told.
type message struct {
	subject string
	data    []byte
	reply   func([]byte)
}

// subscription has its callback called on a goroutine of its own.
type subscription struct {
	kind    kind
	pattern string
	each    func(message)
	queue   []message // the bus's lock
	ready   chan struct{}
	stop    chan struct{}
	ended   chan struct{}
}

// subscribe begins a subscription. The bus is locked.
func (b *Bus) subscribe(k kind, pattern string, each func(message)) (stop func()) {
	s := &subscription{kind: k, pattern: pattern, each: each, ready: make(chan struct{}, 1), stop: make(chan struct{}),
		ended: make(chan struct{})}
	b.subscriptions[s] = true
	b.running.Go(func() {
		defer close(s.ended)
		for {
			select {
			case <-s.stop:
				return
			case <-s.ready:
				b.deliver(s)
			}
		}
	})
	return func() {
		b.mu.Lock()
		ending := b.subscriptions[s]
		delete(b.subscriptions, s)
		b.mu.Unlock()
		if ending {
			close(s.stop)
		}
		<-s.ended
	}
}

// deliver calls back with all that a subscription is still to be told.
func (b *Bus) deliver(s *subscription) {
	for {
		b.mu.Lock()
		if len(s.queue) == 0 || !b.subscriptions[s] {
			b.mu.Unlock()
			return
		}
		m := s.queue[0]
		s.queue = s.queue[1:]
		b.mu.Unlock()
		s.each(m)
	}
}

// enqueue puts a message in line for all who have subscribed to it, and returns how many these are. The bus is locked.
func (b *Bus) enqueue(k kind, m message) (told int) {
	for s := range b.subscriptions {
		if s.kind == k && matches(s.pattern, m.subject) {
			told++
			s.queue = append(s.queue, m)
			select {
			case s.ready <- struct{}{}:
			default:
			}
		}
	}
	return told
}

// matches reports whether a subject fits a pattern, in which "*" stands for any token.
func matches(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	return slices.EqualFunc(p, s, func(a, b string) bool { return a == "*" || a == b })
}

// Put implements [wire.Bus].
func (b *Bus) Put(_ context.Context, key string, value []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys[key] = value
	b.enqueue(values, message{subject: key, data: value})
	return nil
}

// Get implements [wire.Bus].
func (b *Bus) Get(_ context.Context, key string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return lookUp(b.keys, key)
}

// Delete implements [wire.Bus].
func (b *Bus) Delete(_ context.Context, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.keys, key)
	b.enqueue(values, message{subject: key})
	return nil
}

// Watch implements [wire.Bus].
func (b *Bus) Watch(_ context.Context, pattern string, each func(key string, value []byte)) (func(), error) {
	b.mu.Lock()
	present := maps.Clone(b.keys)
	hold := make(chan struct{}) // until the present values were reported
	stop := b.subscribe(values, pattern, func(m message) {
		<-hold
		each(m.subject, m.data)
	})
	b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(present)) {
		if matches(pattern, key) {
			each(key, present[key])
		}
	}
	close(hold)
	return stop, nil
}

// Store implements [wire.Bus].
func (b *Bus) Store(_ context.Context, bucket, name string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[bucket+"/"+name] = data
	return nil
}

// Load implements [wire.Bus].
func (b *Bus) Load(_ context.Context, bucket, name string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return lookUp(b.objects, bucket+"/"+name)
}

func lookUp(in map[string][]byte, name string) ([]byte, error) {
	if data, ok := in[name]; ok {
		return data, nil
	}
	return nil, wire.ErrNotFound
}

// Remove implements [wire.Bus].
func (b *Bus) Remove(_ context.Context, bucket, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.objects, func(object string, _ []byte) bool {
		return object == bucket+"/"+name || name == "" && strings.HasPrefix(object, bucket+"/")
	})
	return nil
}

// Publish implements [wire.Bus].
func (b *Bus) Publish(subject string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enqueue(events, message{subject: subject, data: data})
	return nil
}

// Subscribe implements [wire.Bus].
func (b *Bus) Subscribe(subject string, each func(subject string, data []byte)) (func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.subscribe(events, subject, func(m message) { each(m.subject, m.data) }), nil
}

// Ask implements [wire.Bus].
func (b *Bus) Ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	answers := make(chan []byte, 1)
	b.mu.Lock()
	told := b.enqueue(requests, message{subject: subject, data: data, reply: func(answer []byte) {
		select {
		case answers <- answer:
		default: // there was one
		}
	}})
	b.mu.Unlock()
	if told == 0 {
		return nil, wire.ErrNobody
	}
	select {
	case answer := <-answers:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Serve implements [wire.Bus].
func (b *Bus) Serve(subject string, each func(user string, data []byte, reply func(answer []byte))) (func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.subscribe(requests, subject, func(m message) { each("", m.data, m.reply) }), nil
}

// Append implements [wire.Bus].
func (b *Bus) Append(_ context.Context, log string, line []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logs[log] = append(b.logs[log], line)
	b.enqueue(lines, message{subject: log, data: line})
	return nil
}

// Clear implements [wire.Bus].
func (b *Bus) Clear(_ context.Context, log string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.logs, func(name string, _ [][]byte) bool { return matches(log, name) })
	return nil
}

// Follow implements [wire.Bus].
func (b *Bus) Follow(_ context.Context, log string, each func(log string, line []byte)) (func(), error) {
	b.mu.Lock()
	present := maps.Clone(b.logs)
	hold := make(chan struct{})
	stop := b.subscribe(lines, log, func(m message) {
		<-hold
		each(m.subject, m.data)
	})
	b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(present)) {
		for _, line := range present[name] {
			if matches(log, name) {
				each(name, line)
			}
		}
	}
	close(hold)
	return stop, nil
}

// Logs implements [wire.Bus].
func (b *Bus) Logs(context.Context) (map[string]int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	logs := make(map[string]int)
	for name, lines := range b.logs {
		logs[name] = len(lines)
	}
	return logs, nil
}

// Connected implements [wire.Bus].
func (b *Bus) Connected() bool { return true }

// Close implements [wire.Bus].
func (b *Bus) Close() error {
	b.mu.Lock()
	for s := range b.subscriptions {
		delete(b.subscriptions, s)
		close(s.stop)
	}
	b.mu.Unlock()
	b.running.Wait()
	return nil
}
