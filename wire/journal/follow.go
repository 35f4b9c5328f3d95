package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tensile/wire"
)

// patterns are the keys that are kept.
var patterns = []string{wire.OrdersKey("*"), wire.DeviceKey("*"), wire.RecordKey("*")}

// isKept reports whether a key is.
func isKept(key string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return strings.HasPrefix(key, strings.TrimSuffix(pattern, "*"))
	})
}

// setting begins the key of an object among [wire.Administration].
const setting = wire.Administration + "/"

// following is a bus whose writes go into a journal first.
type following struct {
	wire.Bus
	journal *Journal
}

func (f *following) Put(ctx context.Context, key string, value []byte) (err error) {
	if isKept(key) {
		if value, err = f.journal.put(key, value); err != nil {
			return err
		}
	}
	return f.Bus.Put(ctx, key, value)
}

func (f *following) Delete(ctx context.Context, key string) error {
	if isKept(key) {
		if err := f.journal.remove(key); err != nil {
			return err
		}
	}
	return f.Bus.Delete(ctx, key)
}

func (f *following) Store(ctx context.Context, bucket, name string, data []byte) (err error) {
	if bucket == wire.Administration {
		if data, err = f.journal.put(setting+name, data); err != nil {
			return err
		}
	}
	return f.Bus.Store(ctx, bucket, name, data)
}

func (f *following) Remove(ctx context.Context, bucket, name string) error {
	if bucket == wire.Administration {
		if err := f.journal.remove(setting + name); err != nil {
			return err
		}
	}
	return f.Bus.Remove(ctx, bucket, name)
}

// storeValue stores a value under the key that it has in the journal.
func storeValue(ctx context.Context, bus wire.Bus, key string, value []byte) error {
	if name, ok := strings.CutPrefix(key, setting); ok {
		return bus.Store(ctx, wire.Administration, name, value)
	}
	return bus.Put(ctx, key, value)
}

func remove(ctx context.Context, bus wire.Bus, key string) error {
	if name, ok := strings.CutPrefix(key, setting); ok {
		return bus.Remove(ctx, wire.Administration, name)
	}
	return bus.Delete(ctx, key)
}

// storedValues returns what the bus has, by key. A value that it cannot give whole is there, and empty.
func (j *Journal) storedValues(ctx context.Context, bus wire.Bus, settings []string) (map[string][]byte, error) {
	has := make(map[string][]byte)
	for _, pattern := range patterns {
		stop, err := bus.Watch(ctx, pattern, func(key string, value []byte) {
			if value != nil {
				has[key] = value
			}
		})
		if err != nil {
			return nil, err
		}
		stop()
	}
	for key := range j.entries {
		if name, ok := strings.CutPrefix(key, setting); ok && !slices.Contains(settings, name) {
			settings = append(settings, name)
		}
	}
	for _, name := range settings {
		value, err := bus.Load(ctx, wire.Administration, name)
		switch {
		case errors.Is(err, wire.ErrNotFound):
		case ctx.Err() != nil, errors.Is(err, wire.ErrAway), errors.Is(err, context.DeadlineExceeded):
			return nil, err
		default:
			has[setting+name] = value
		}
	}
	return has, nil
}

// history collects what is to be told, by what has happened.
type history struct {
	told  map[string][]string
	quiet int // how many of them are quiet
}

// add records what has happened to a value. quiet marks the newest write, which may not have been stored when the
// process was killed: it is logged only if something else has happened too.
func (t *history) add(quiet bool, what, key string) {
	if t.told == nil {
		t.told = make(map[string][]string)
	}
	t.told[what] = append(t.told[what], named(key))
	if quiet {
		t.quiet++
	}
}

// logAll logs all that was added.
func (t *history) logAll(log func(string)) {
	sum := 0
	for _, keys := range t.told {
		sum += len(keys)
	}
	if sum == t.quiet {
		return
	}
	for _, what := range []string{missing, damaged, older, deleted} {
		keys := t.told[what]
		if len(keys) == 0 {
			continue
		}
		const shown = 20
		more := ""
		if n := len(keys) - shown; n > 0 {
			keys, more = keys[:shown], fmt.Sprintf(" and of %d more", n)
		}
		done := "they are put back from the journal"
		if what == deleted {
			done = "they are deleted again"
		}
		log(fmt.Sprintf("the store of the state folder was damaged: values %s, of %s%s: %s", what,
			strings.Join(keys, ", "), more, done))
	}
}

// What may have happened to values in the store.
const (
	missing = "were missing"
	damaged = "could not be read"
	older   = "were older ones"
	deleted = "had been deleted"
)

// kindOf is what a key begins with, such as record.
func kindOf(key string) string {
	kind, _, _ := strings.Cut(key, ".")
	return kind
}

// named is what a key is of, in words.
func named(key string) string {
	kind, token, _ := strings.Cut(key, ".")
	name, ok := wire.NameOf(token)
	switch {
	case !ok:
		return key
	case kind == "record":
		return "job " + name
	case kind == "orders":
		return "the orders of executor " + name
	}
	return kind + " " + name
}
