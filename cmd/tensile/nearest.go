package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tensile/controller/memory"
	"tensile/controller/plans"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/device/sim"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// suggestBatch has an error that refuses a network since it is too large for every device, at once or after it has
// waited, say the largest batch that would fit, alone on the device with the most memory. That is found by plans made
// here; after some seconds it stays unsaid.
func (s *submission) suggestBatch(ctx context.Context, conn wire.Bus, names []string, refused error) error {
	if refused == nil {
		return nil
	}
	why := strings.ReplaceAll(refused.Error(), "; "+plans.SmallerHint, "")
	if why == refused.Error() || len(names) != 1 {
		return refused
	}
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
	if err != nil {
		return refused
	}
	most := s.roomiest(memory.Devices(&a))
	if most == nil {
		return refused
	}
	d, err := likeOf(most)
	if err != nil {
		return refused
	}
	defer d.Close()
	on := planner.Describe(d, planner.Roofline(d.Facts()))
	on.Align = cmp.Or(most.Align, on.Align)
	contexts := most.Context
	if most.Own { // its controller has the device open, too
		contexts *= 2
	}
	room := most.Budget - contexts
	if most.Page > 0 {
		room -= room % most.Page
	}
	if room <= 0 {
		return refused
	}
	smaller := *s
	fits := func(batch int) bool {
		smaller.batch = batch
		w, err := smaller.load(names)
		if err != nil {
			return false
		}
		session, err := on.Session(w[:1])
		if err != nil {
			return false
		}
		session.Budget = room
		_, err = planner.Schedule(ctx, session.Ask())
		return err == nil
	}
	good, bad := 0, cmp.Or(s.batch, models.DefaultBatch)
	for bad-good > 1 {
		if b := (good + bad) / 2; fits(b) {
			good = b
		} else {
			bad = b
		}
	}
	advice := fmt.Sprintf("--batch %d would fit", good)
	if good == 0 {
		advice = "no smaller --batch fits"
	}
	if len(a.Devices) > 1 {
		advice += " on device " + most.Name
	}
	if ctx.Err() != nil {
		return refused
	}
	told := fmt.Errorf("%s; %s", why, advice)
	if ended, ok := errors.AsType[*exitError](refused); ok {
		return &exitError{told, ended.status}
	}
	return told
}

// roomiest is the device with the most memory that the jobs may train on; nil: none has a limit.
func (s *submission) roomiest(devices []wire.DeviceState) (most *wire.DeviceState) {
	for i := range devices {
		if d := &devices[i]; d.Budget > 0 && !d.Drained && (s.device == "" || s.device == d.Name) &&
			(most == nil || d.Budget > most.Budget) {
			most = d
		}
	}
	return most
}

// likeOf is a device with the operators of another.
func likeOf(d *wire.DeviceState) (device.Device, error) {
	if strings.HasPrefix(d.Identity, "cpu/") {
		return cpu.New(cpu.Options{})
	}
	facts, err := cost.Device("a6000") // of a GPU: what fits depends little on its speed
	return sim.New(facts, sim.Options{}), err
}
