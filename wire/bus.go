package wire

import (
	"context"
	"errors"
)

// Bus is what carries messages and objects; tensile/wire/bus has the one on NATS. Agent and controller use parts of
// it. All methods may be called from any goroutine.
//
// Methods with a context wait for the other side until it is done, and no longer than a few seconds; without a
// connection they fail at once. Callbacks of one Watch, Follow, Subscribe or Serve are called one after the other. They
// may call the bus, but not their own stop function: stop waits until the running callback has returned.
type Bus interface {
	// Put sets the latest value of a key.
	Put(ctx context.Context, key string, value []byte) error

	// Get returns the latest value of a key, or ErrNotFound.
	Get(ctx context.Context, key string) ([]byte, error)

	// Delete removes a key; one that is not there is no error.
	Delete(ctx context.Context, key string) error

	// Watch reports each key of the pattern and its value, then every change, in the order in which they happened. Of
	// values that follow one another quickly the last alone may be reported. The present values have been reported when
	// Watch returns; all of them are reported again after the connection was lost. A nil value: the key was deleted. It
	// goes on until stop is called or the bus closed, whatever becomes of ctx.
	Watch(ctx context.Context, pattern string, each func(key string, value []byte)) (stop func(), err error)

	// Store keeps an object, instead of the one of that name that there may be.
	Store(ctx context.Context, bucket, name string, data []byte) error

	// Load returns an object, or ErrNotFound.
	Load(ctx context.Context, bucket, name string) ([]byte, error)

	// Remove removes an object, or with name "" all of the bucket; one that is not there is no error.
	Remove(ctx context.Context, bucket, name string) error

	// Publish sends an event to those who are subscribed now, at most once.
	Publish(subject string, data []byte) error

	// Subscribe reports the events of a subject, in which "*" stands for any token.
	Subscribe(subject string, each func(subject string, data []byte)) (stop func(), err error)

	// Ask sends a request and returns its one answer; ErrNobody when nobody serves the subject.
	Ask(ctx context.Context, subject string, data []byte) ([]byte, error)

	// Serve reports requests, each with the user who asks: "" is the administrator. A client cannot make that up. A
	// request is answered by calling reply, once, from any goroutine, then or later.
	Serve(subject string, each func(user string, data []byte, reply func(answer []byte))) (stop func(), err error)

	// Append adds a line to a log, which keeps the newest lines.
	Append(ctx context.Context, log string, line []byte) error

	// Clear removes the lines of a log, in which "*" stands for any token. A log without any is no error.
	Clear(ctx context.Context, log string) error

	// Follow reports the lines of a log, in which "*" stands for any token: those there are, all of which have been
	// reported when it returns, then each new one, until stop is called or the bus closed, whatever becomes of ctx.
	Follow(ctx context.Context, pattern string, each func(log string, line []byte)) (stop func(), err error)

	// Logs are the names of those that have lines, and how many.
	Logs(ctx context.Context) (map[string]int, error)

	// Connected reports whether there is a connection now. A lost one comes back by itself.
	Connected() bool

	// Close ends the connection and all callbacks, and waits for them.
	Close() error
}

var (
	// ErrNotFound is returned by Get and Load for what is not there.
	ErrNotFound = errors.New("not found")

	// ErrConflict is returned for a key that another has changed since it was read.
	ErrConflict = errors.New("another has changed it")

	// ErrDeposed is returned by what writes for a controller in whose place another leads now: nothing was written.
	ErrDeposed = errors.New("another controller leads now")

	// ErrNobody is returned by Ask when nobody serves.
	ErrNobody = errors.New("nobody answers")

	// ErrAway is returned by everything that needs a connection while there is none.
	ErrAway = errors.New("no connection")
)
