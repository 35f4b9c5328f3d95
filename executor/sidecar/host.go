package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"tensile/device/lease"
	"tensile/executor"
	"tensile/graph"
	"tensile/models/external"
	"tensile/plan/proof"
)

// HostOptions are what a host needs; all but Weight must be given.
type HostOptions struct {
	// Start is called when the job has its memory. It starts the command, unless the process of the job has joined
	// before, and returns files that the process holds open for as long as it lives.
	Start    func() ([]*os.File, error)
	Observer func(executor.Event)     // told what an executor.Host tells its observer
	Record   func(*external.Recorded) // the job is to be planned for by this graph from now on
	Note     func(line string)        // for people
	Now      func() time.Duration
}

// Host has a guest speak to its script. It is what an executor.Host is for jobs whose ops are ours, and does likewise:
// any goroutine may call its methods but Serve, and all callbacks of its options come from the one in Serve.
type Host struct {
	HostOptions
	// guest decides for the script.
	guest Guest
	// lines are those to be written to it.
	lines chan hostLine
	// held are files that it gets with the next line.
	held []*os.File
	// heard is closed when all that it says was heard.
	heard chan struct{}
	// by is how the job shares memory with others.
	by executor.Sharing

	// mu guards inputs, conn and what comes after inputs.
	mu sync.Mutex
	// conn is the connection to the script; nil: it has not joined.
	conn *net.UnixConn
	// closed says that Close was called.
	closed bool
	// inputs are those that the guest has not had yet.
	inputs []func() []Output
	// wake has a value if inputs has.
	wake chan struct{}
	// spoken counts the goroutines that listen and write.
	spoken sync.WaitGroup

	// summary is the script's as of the newest input.
	summary Summary
	// joined says that the script has said hello, listens that it can be told to end.
	joined, listens bool
	// least is the size in bytes below which no storage of the script moves.
	least graph.Bytes
}

// NewHost returns a host without a job.
func NewHost(o HostOptions) *Host {
	return &Host{HostOptions: o, wake: make(chan struct{}, 1), lines: make(chan hostLine, maxLines),
		heard: make(chan struct{})}
}

// Summary is what the script has come to.
func (h *Host) Summary() (s Summary, joined bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.summary, h.joined
}

// Listens reports whether the script can be told to end.
func (h *Host) Listens() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listens
}

// Least is the size of the smallest storage that the script moves; 0: it has not said hello, or did not say.
func (h *Host) Least() graph.Bytes {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.least
}

func (h *Host) post(do func() []Output) {
	h.mu.Lock()
	h.inputs = append(h.inputs, do)
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *Host) stepGuest(in GuestInput) {
	in.Now = h.Now()
	h.post(func() []Output { return h.guest.Step(in) })
}

// Submit has the script started, within the arena of its first program, which is for a claim.
func (h *Host) Submit(s executor.Spec, p proof.Proven) {
	h.stepGuest(GuestInput{Open: &Open{Job: s.Name, Program: p.Program(), Weight: s.Weight}})
}

// Change gives the script another plan, to be taken at a boundary of its iterations.
func (h *Host) Change(_ string, p proof.Proven) { h.stepGuest(GuestInput{Change: p.Program()}) }

// Stop has the script end at a boundary of its iterations.
func (h *Host) Stop(string) { h.stepGuest(GuestInput{Stop: true}) }

// Park has the script rest at a boundary, with nothing on the device, until Resume or Stop.
func (h *Host) Park(_ string, number int64, _ int) { h.stepGuest(GuestInput{Park: number}) }

// Resume has a script go on that rests, by its newest program.
func (h *Host) Resume(string) { h.stepGuest(GuestInput{Resume: true}) }

// Remove forgets the job when its script has ended, which it is told to. It is never killed.
func (h *Host) Remove(string) { h.stepGuest(GuestInput{Remove: true}) }

// Checkpoint takes no state: what a script has saved is its own.
func (h *Host) Checkpoint(job string, _ int) {
	h.post(func() []Output {
		return []Output{{Event: &executor.Event{Job: job, Snapshot: &executor.Snapshot{
			Err: errors.New("a script takes its own checkpoints: torch.save")}}}}
	})
}

// Trace tells nothing of a script's ops.
func (h *Host) Trace(job string, _ int) {
	h.post(func() []Output {
		return []Output{{Note: fmt.Sprintf("job %s is a script's, which tells no trace", job)}}
	})
}

// Weigh says what the job is worth under a lease, when it asks next.
func (h *Host) Weigh(_ string, weight int) {
	h.post(func() []Output {
		h.guest.weight = weight
		return nil
	})
}

// Share puts the job under a lease, before Submit.
func (h *Host) Share(s executor.Sharing) {
	h.post(func() []Output {
		h.by = s
		if s.Lease == nil {
			return nil
		}
		return h.guest.Step(GuestInput{Now: h.Now(), Page: s.Page})
	})
}

// Unplanned has the script train without a plan, since there is none for what it does.
func (h *Host) Unplanned(_, why string) { h.stepGuest(GuestInput{Reason: &why}) }

// Capacity tells the lease how much memory all jobs may hold together.
func (h *Host) Capacity(size graph.Bytes, number int64) {
	h.post(func() []Output {
		c := &lease.Capacity{Pages: min(int(size/h.by.Page), lease.MaxPages), Number: number, Method: h.by.Method}
		return []Output{{Lease: &lease.Input{Capacity: c}}}
	})
}

// Answer hands over what a lease in another process says.
func (h *Host) Answer(answers ...lease.Output) {
	for _, a := range answers {
		h.stepGuest(GuestInput{Lease: &a})
	}
}

// Log adds a line to the job's log.
func (h *Host) Log(line string) {
	h.post(func() []Output {
		if h.guest.job == "" {
			return nil
		}
		return []Output{{Event: &executor.Event{Job: h.guest.job, Note: line}}}
	})
}

// Serve speaks to the script until ctx is done.
func (h *Host) Serve(ctx context.Context) error {
	for {
		h.mu.Lock()
		inputs := h.inputs
		h.inputs = nil
		h.mu.Unlock()
		for _, do := range inputs {
			outputs := do()
			h.publish()
			h.carryOut(outputs)
		}
		if len(inputs) > 0 {
			continue
		}
		select {
		case <-h.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close closes the connection. A script that has not ended trains on with the plan that it has.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.hangUp()
	close(h.lines)
	h.spoken.Wait()
	return nil
}

// publish records what other goroutines may ask for.
func (h *Host) publish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listens = h.guest.Listens()
	if h.summary, h.joined = h.guest.Summary(), h.guest.Joined(); h.joined {
		h.least = h.guest.device.Least
	}
}

func (h *Host) carryOut(outputs []Output) {
	for _, out := range outputs {
		switch {
		case out.Note != "":
			h.Note(out.Note)
		case out.Fail != nil:
			h.Note(fmt.Sprintf("%v: the script trains on without us", out.Fail))
			h.hangUp()
		case out.Send != nil:
			h.send(out.Send)
		case out.Start:
			h.start()
		case out.Event != nil:
			h.Observer(*out.Event)
		case out.Record != nil:
			h.Record(out.Record)
		case out.Lease != nil:
			out.Lease.Now = h.Now()
			h.Answer(h.by.Lease.Step(*out.Lease)...)
		}
	}
}

// start has the script start.
func (h *Host) start() {
	held, err := h.Start()
	if err != nil {
		h.hangUp()
		h.stepGuest(GuestInput{Exited: &Exit{Err: err}})
	}
	h.held = held
}

// Join has the host speak to the process of its job, by a connection of which a reader has read some messages. It is
// called once at most.
func (h *Host) Join(conn *net.UnixConn, r *external.Reader, heard ...external.Message) {
	for _, m := range heard {
		h.stepGuest(GuestInput{Message: m})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn = conn; h.closed {
		conn.Close()
		return
	}
	h.spoken.Go(func() {
		for line := range h.lines { // what a script that is gone does not read is lost
			if err := line.write(conn); err != nil {
				conn.Close()
			}
		}
	})
	h.spoken.Go(func() {
		defer close(h.heard)
		h.listen(conn, r)
	})
}

// ReportGone says that the process has ended, and that its command goes on.
func (h *Host) ReportGone() {
	h.hearOut()
	h.stepGuest(GuestInput{Gone: true})
}

// Exit says how the script has ended.
func (h *Host) Exit(e Exit) {
	h.hearOut()
	h.stepGuest(GuestInput{Exited: &e})
}

// hearOut waits until all was heard that a process has said that has ended, and no more: one that it has left behind
// may have its end of the connection still.
func (h *Host) hearOut() {
	h.mu.Lock()
	conn := h.conn
	h.mu.Unlock()
	if conn != nil {
		_ = conn.CloseRead() // fails if it is closed, and then nothing is read anyway
		<-h.heard
	}
}

// HearOut waits until the process says no more, or ctx is done.
func (h *Host) HearOut(ctx context.Context) {
	select {
	case <-h.heard:
	case <-ctx.Done():
	}
}

// listen hands what a script says to the guest.
func (h *Host) listen(conn *net.UnixConn, r *external.Reader) {
	for {
		m, err := r.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, syscall.ECONNRESET) {
				h.post(func() []Output {
					return []Output{{Fail: fmt.Errorf("what the script says cannot be read: %w", err)}}
				})
			}
			h.stepGuest(GuestInput{Closed: true})
			return
		}
		h.stepGuest(GuestInput{Message: m})
	}
}

// hangUp closes the connection to the script, if there is one.
func (h *Host) hangUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil {
		h.conn.Close()
	}
}

// maxLines is how many lines wait for a script that does not read: more than any has reason to.
const maxLines = 1 << 10

// hostLine is a line for a script, and files that it gets with it.
type hostLine struct {
	text []byte
	held []*os.File
}

func (l hostLine) write(conn *net.UnixConn) error {
	if len(l.held) == 0 {
		_, err := conn.Write(l.text)
		return err
	}
	var descriptors []int
	for _, f := range l.held {
		descriptors = append(descriptors, int(f.Fd()))
	}
	n, _, err := conn.WriteMsgUnix(l.text, syscall.UnixRights(descriptors...), nil)
	if err == nil {
		_, err = conn.Write(l.text[n:])
	}
	return err
}

// send puts a message in line. The script reads between iterations, and may be writing meanwhile.
func (h *Host) send(m external.Message) {
	line, err := external.Encode(m)
	if err == nil {
		select {
		case h.lines <- hostLine{line, h.held}:
			h.held = nil
			return
		default:
			err = errors.New("it does not read")
		}
	}
	h.Note(fmt.Sprintf("the script cannot be told: %v", err))
	h.hangUp()
}
