package controller

import (
	"encoding/json"
	"errors"

	"tensile/graph"
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
	ended := func(why string) {
		go func() {
			r.lastWords(executor)
			r.put(input{Input: Input{Gone: &Gone{executor, why}}})
		}()
	}
	if r.options.Launch == nil {
		return // it has to be started by hand
	}
	if err := r.options.Launch(executor, ended); err != nil {
		ended(err.Error())
	}
}

// lastWords takes what an executor that has ended said last: news of its end may overtake that.
func (r *runner) lastWords(executor string) {
	value, err := r.bus.Get(r.ctx, wire.StatusKey(executor))
	if err != nil {
		return // it has said nothing, or cannot be heard
	}
	if s, err := wire.DecodeAs[wire.Status](value); err == nil && s.Executor == executor {
		r.put(input{Input: Input{Status: &s}})
	}
}

// forget removes what is stored for an executor that has left.
func (r *runner) forget(executor string) error {
	if r.options.Forgotten != nil {
		r.options.Forgotten(executor)
	}
	return errors.Join(r.bus.Delete(r.ctx, wire.StatusKey(executor)), r.bus.Delete(r.ctx, wire.OrdersKey(executor)),
		r.bus.Remove(r.ctx, wire.Bucket(executor), ""))
}
