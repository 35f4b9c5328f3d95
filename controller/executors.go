package controller

import (
	"encoding/json"
	"errors"
	"fmt"

	"tensile/graph"
	"tensile/internal/clock"
	"tensile/wire"
)

func (r *runner) storeGraph(bucket string, g *graph.Graph) error {
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return r.bus.Store(r.ctx, bucket, wire.GraphObject(g.Digest()), text)
}

// launch starts an executor, whose end becomes an input.
func (r *runner) launch(executor string) {
	ended := func(why string, lives []string) {
		go func() {
			if s, err := r.lastWords(executor); err == nil && s != nil {
				r.put(input{Input: Input{Status: s}})
			}
			r.put(input{Input: Input{Gone: &Gone{executor, lives, why}}})
		}()
	}
	if r.options.Launch == nil {
		return // it has to be started by hand
	}
	if err := r.options.Launch(executor, ended); err != nil {
		ended(err.Error(), nil)
	}
}

// lastWords returns what an executor that has ended said last: news of its end may overtake that. It is nil if it has
// said nothing.
func (r *runner) lastWords(executor string) (*wire.Status, error) {
	value, err := r.bus.Get(r.ctx, wire.StatusKey(executor))
	if errors.Is(err, wire.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if s, err := wire.DecodeAs[wire.Status](value); err == nil && s.Executor == executor {
		return &s, nil
	}
	return nil, nil // it can be anything
}

// bury tells the machine which executors of a controller before this one have ended. What they said last comes first;
// while that cannot be read, nothing is told.
func (r *runner) bury() error {
	for _, name := range r.machine.orphans() {
		if r.options.Lives == nil {
			return nil
		}
		ended, lives, known := r.options.Lives(name)
		if lives || !known {
			continue
		}
		s, err := r.lastWords(name)
		if err != nil {
			return nil
		}
		if s != nil {
			if err := r.step(clock.Now(), Input{Status: s}); err != nil {
				return err
			}
		}
		why := "its executor has ended: it no longer holds its lock"
		if err := r.step(clock.Now(), Input{Gone: &Gone{name, ended, why}}); err != nil {
			return err
		}
	}
	return nil
}

// collect stores the result of a job for good.
func (r *runner) collect(c *Collection) error {
	result := c.Heard
	if c.Key != "" {
		value, err := r.bus.Get(r.ctx, c.Key)
		if errors.Is(err, wire.ErrNotFound) { // a controller that was killed then has taken it, perhaps
			if _, err := r.bus.Load(r.ctx, wire.Results, c.Object); !errors.Is(err, wire.ErrNotFound) {
				return err
			}
		} else if err != nil {
			return err
		}
		left, err := wire.DecodeAs[wire.Result](value)
		if err == nil {
			result = &left
		} else {
			r.options.Log.Warn(fmt.Sprintf("the result at %s is passed over", c.Key), "err", err)
		}
	}
	if result == nil {
		return nil
	}
	if err := r.bus.Store(r.ctx, wire.Results, c.Object, wire.Encode(*result)); err != nil || c.Key == "" {
		return err
	}
	return r.bus.Delete(r.ctx, c.Key)
}

// forget removes what is stored for an executor that has left.
func (r *runner) forget(executor string) error {
	if r.options.Forgotten != nil {
		r.options.Forgotten(executor)
	}
	var results []string
	stop, err := r.bus.Watch(r.ctx, wire.ResultKeys(executor), func(key string, value []byte) {
		if value != nil {
			results = append(results, key)
		}
	})
	if err != nil {
		return err
	}
	stop()
	for _, key := range results {
		err = errors.Join(err, r.bus.Delete(r.ctx, key))
	}
	return errors.Join(err, r.bus.Delete(r.ctx, wire.StatusKey(executor)),
		r.bus.Delete(r.ctx, wire.OrdersKey(executor)),
		r.bus.Remove(r.ctx, wire.Bucket(executor), ""))
}
