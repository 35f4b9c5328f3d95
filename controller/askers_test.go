package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tensile/controller/plans"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/wire"
)

// A user who asks without end, and does not wait for answers, has a part of the requests taken, is told so, and keeps
// nobody else waiting. What was taken is answered, and then the user may ask again.
func TestRequestsOfOneUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t, 1)
		defer d.bus.Close()
		d.options.Plan = func(ctx context.Context, _ *plans.Request) *plans.Result {
			<-ctx.Done()
			return nil
		}
		d.begin()
		defer d.stop()
		packed, err := wire.Pack(graphtest.New(d.rng, graphtest.Options{}), nil)
		if err != nil {
			t.Fatal(err)
		}
		g, _, err := packed.Unpack()
		if err != nil {
			t.Fatal(err)
		}
		submit := func(name string) []byte { // which waits for a plan
			spec := wire.Spec{Name: name, Model: "random", Graph: g.Digest(), Iterations: endless}
			return wire.Encode(wire.Request{Verb: wire.Submit, Specs: []wire.Spec{spec}, Graphs: []wire.Packed{packed}})
		}
		count := func(answers []<-chan []byte) (taken, refused, wait int) {
			for _, answer := range answers {
				select {
				case data := <-answer:
					switch a, err := wire.DecodeAs[wire.Answer](data); {
					case err != nil:
						t.Fatal(err)
					case strings.HasPrefix(a.Error, "128 requests of eve with "):
						refused++
					case a.Error == "":
						taken++
					default:
						t.Fatal(a.Error)
					}
				default:
					wait++
				}
			}
			return taken, refused, wait
		}
		var waiting, more []<-chan []byte
		for i := range maxAsked {
			waiting = append(waiting, d.bus.as("eve", submit(fmt.Sprint("eve", i))))
		}
		synctest.Wait()
		for range 1000 {
			more = append(more, d.bus.as("eve", submit("more")))
		}
		synctest.Wait()
		begin := time.Now()
		for _, who := range []string{"ada", ""} {
			a, err := wire.DecodeAs[wire.Answer](<-d.bus.as(who, wire.Encode(wire.Request{Verb: wire.Jobs})))
			if err != nil || a.Error != "" || time.Since(begin) > 0 {
				t.Errorf("%q is answered %q (%v) after %v", who, a.Error, err, time.Since(begin))
			}
		}
		if _, _, wait := count(waiting); wait != maxAsked {
			t.Errorf("of %d requests %d wait", maxAsked, wait)
		}
		if taken, refused, _ := count(more); taken > 0 || refused < maxAsked {
			t.Errorf("of %d requests more %d are taken, and %d refused", len(more), taken, refused)
		}
		time.Sleep(answerWithin + beat)
		synctest.Wait()
		if taken, _, _ := count(waiting); taken != maxAsked {
			t.Errorf("of %d requests that were taken %d are answered", maxAsked, taken)
		}
		again := []<-chan []byte{d.bus.as("eve", wire.Encode(wire.Request{Verb: wire.Jobs}))}
		synctest.Wait()
		if taken, _, _ := count(again); taken != 1 {
			t.Error("afterwards the user is not answered")
		}
	})
}

// What the graphs of waiting requests have unpacked counts, too: eight MiB may be packed from any size.
func TestGraphsOfRequestsAreBounded(t *testing.T) {
	var all askers
	q := all.enter("eve", 1<<20)
	if q.refusal != "" || q.grow(maxAskedSize/2) != nil {
		t.Fatalf("a request is refused: %s", q.refusal)
	}
	if err := q.grow(maxAskedSize / 2); err == nil || !strings.Contains(err.Error(), "more than 256MiB") {
		t.Errorf("more than a user may have: %v", err)
	}
	for range maxAsked {
		if all.enter("eve", maxAskedSize/2).refusal == "" {
			t.Error("a second request of that user is taken")
		}
	}
	if all.enter("eve", maxAskedSize/2) != nil {
		t.Error("more refusals wait than requests may")
	}
	if q := all.enter("ada", maxAskedSize/2); q.refusal != "" {
		t.Errorf("one of another user: %s", q.refusal)
	}
	q.leave()
	if q = all.enter("eve", maxAskedSize/2); q.refusal != "" {
		t.Fatalf("when the first has ended: %s", q.refusal)
	}
	q.leave()
	if len(all.of) != 1 {
		t.Errorf("%d users are remembered, want ada alone", len(all.of))
	}
}

// Forty users of as many jobs as each may have are listed, though their records take more than an answer may have: page
// by page, each job once, in the order of their submission.
func TestPages(t *testing.T) {
	jobs := int(long.Rounds(7, 40)) * maxJobsOne
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t, 1)
		defer d.bus.Close()
		g := graphtest.New(rand.New(rand.NewPCG(1, 2)), graphtest.Options{})
		for i := range jobs {
			path := "/" + strings.Repeat("x", 300)
			if i < maxPage { // so many of these are too many
				path = "/" + strings.Repeat("x", 1500)
			}
			r := wire.Record{State: wire.JobStopped, Order: int64(i + 1), Spec: wire.Spec{
				Name: fmt.Sprintf("job%d", i), ID: int64(i + 1), Model: "random", Graph: g.Digest(),
				Iterations: endless, Owner: fmt.Sprint("user", i/maxJobsOne), Save: path, Data: path, Weights: path}}
			d.put(wire.RecordKey(r.Spec.Name), r)
		}
		d.begin()
		defer d.stop()
		pages, most := 0, 0
		all, err := wire.AskJobs(func(q wire.Request) (wire.Answer, error) {
			data := <-d.bus.as("ada", wire.Encode(q))
			pages, most = pages+1, max(most, len(data))
			return wire.DecodeAs[wire.Answer](data)
		})
		if err != nil || all.More || len(all.Jobs) != jobs {
			t.Fatalf("%d of %d jobs are listed: %v", len(all.Jobs), jobs, err)
		}
		t.Logf("%d jobs in %d pages of at most %d bytes", len(all.Jobs), pages, most)
		for i, r := range all.Jobs {
			if r.Order != int64(i+1) {
				t.Fatalf("job %s is at place %d", r.Spec.Name, i+1)
			}
		}
		if pages <= (jobs+maxPage-1)/maxPage || most > wire.MaxMessage {
			t.Errorf("%d pages of at most %d bytes", pages, most)
		}
	})
}

// fullBus is one that stores nothing while it is full.
type fullBus struct {
	*asking
	full atomic.Bool
}

func (b *fullBus) Put(ctx context.Context, key string, value []byte) error {
	if b.full.Load() {
		return errors.New("no space left on device")
	}
	return b.asking.Put(ctx, key, value)
}

// While nothing can be stored, what was known is answered as otherwise, with budget and devices, and page by page.
func TestJobsWhileNothingIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t, 1)
		defer d.bus.Close()
		bus := &fullBus{asking: d.bus}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, bus, d.options) }()
		synctest.Wait()
		jobs := func() wire.Answer {
			a, err := wire.DecodeAs[wire.Answer](<-d.bus.as("ada", wire.Encode(wire.Request{Verb: wire.Jobs})))
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		spec := d.spec()
		for spec.Script {
			spec = d.spec()
		}
		d.bus.as("ada", wire.Encode(wire.Request{Verb: wire.Submit, Specs: []wire.Spec{spec}, Graphs: d.packed}))
		time.Sleep(answerWithin + 2*beat)
		want := jobs()
		bus.full.Store(true)
		d.put(wire.StatusKey("adas"), d.status("adas")) // which is ordered something
		time.Sleep(2 * beat)
		got := jobs()
		if said := d.log.String(); !strings.Contains(said, "no space left on device") || len(got.Jobs) != 1 {
			t.Fatalf("%d jobs are listed, and the log is:\n%s", len(got.Jobs), said)
		}
		if got.Budget != want.Budget || got.Budget == 0 || len(got.Devices) != 1 || got.Device != want.Device {
			t.Errorf("answered %+v, want what is known otherwise: %+v", got, want)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// Jobs that are not taken yet have no order: they come last, by name, and pages end among them, too.
func TestPagesOfNewJobs(t *testing.T) {
	record := func(name string, order int64) wire.Record {
		return wire.Record{Order: order, Spec: wire.Spec{Name: name}}
	}
	all := []wire.Record{record("z", 0), record("b", 2), record("x", 0), record("a", 3), record("c", 1)}
	want := []string{"c", "b", "a", "x", "z"}
	var q wire.Request
	for i, name := range want {
		rest := remainingJobs(&q, append([]wire.Record(nil), all...))
		if len(rest) != len(want)-i || rest[0].Spec.Name != name {
			t.Fatalf("after %s come %d jobs, want %s and %d others", q.Job, len(rest), name, len(want)-i-1)
		}
		q = wire.Request{Job: rest[0].Spec.Name, After: rest[0].Order}
	}
}
