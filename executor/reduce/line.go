package reduce

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"

	"tensile/wire"
)

// chunk is how many elements go from one replica to the next at a time: 64 KiB.
const chunk = 16 << 10

// Line is a replica's place among those of its job. Its methods but Close are called by one goroutine.
type Line struct {
	number, replicas int
	joined           chan struct{} // closed when the connections are there, or cannot be any more
	below, above     io.ReadWriteCloser
	cancel           context.CancelFunc // ends the joining
	before           chan wire.Meeting  // where the replica before this one listens: the newest, until it is looked at

	watches sync.WaitGroup // of hosts
	mu      sync.Mutex
	err     error // why no mean can be taken any more
}

// New returns the place of replica number, from 0, of several, with connections to the replicas before and behind it;
// nil where there is none. The line closes them.
func New(number, replicas int, below, above io.ReadWriteCloser) *Line {
	if number < 0 || number >= replicas || (below == nil) != (number == 0) || (above == nil) != (number == replicas-1) {
		panic(fmt.Sprintf("reduce: replica %d of %d with a connection below: %t, above: %t", number, replicas,
			below != nil, above != nil))
	}
	l := &Line{number: number, replicas: replicas, joined: make(chan struct{}), below: below, above: above,
		cancel: func() {}}
	close(l.joined)
	return l
}

// errClosed is why a line that was closed takes no means.
var errClosed = errors.New("this replica has left")

// Mean replaces data by its mean over the replicas, which must all ask for the mean of that name, of as many elements,
// in that iteration. It waits for them, until ctx is done or the line is closed. After an error data is of no use, the
// line takes no mean any more, and the calls of the other replicas fail, too.
func (l *Line) Mean(ctx context.Context, iteration int, name string, data []float32) error {
	stop := context.AfterFunc(ctx, func() { l.fail(context.Cause(ctx)) })
	defer stop()
	<-l.joined
	if err := l.failure(); err != nil {
		return l.explain(iteration, name, err)
	}
	down := make(chan error, 1)
	go func() {
		err := l.passDown(data)
		if err != nil {
			l.fail(err)
		}
		down <- err
	}()
	if err := l.reduceUp(iteration, name, data); err != nil {
		l.fail(err)
	}
	<-down
	if err := l.failure(); err != nil {
		return l.explain(iteration, name, err)
	}
	return nil
}

// Close closes the connections. Calls of Mean end. Any goroutine may call it, more than once.
func (l *Line) Close() {
	l.fail(errClosed)
	<-l.joined
	l.watches.Wait()
}

// watch has the line fail when the system finds the host of a neighbour gone, as it does by an idle connection. That a
// process has ended is no news of that one: the other connection says so, behind all that it has carried.
func (l *Line) watch(replica int, idle io.Reader) {
	l.watches.Go(func() {
		_, err := idle.Read(make([]byte, 1))
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
			l.fail(l.lostError(replica, err))
		}
	})
}

func (l *Line) explain(iteration int, name string, err error) error {
	return fmt.Errorf("replica %d of %d cannot reduce %s in iteration %d: %w", l.number, l.replicas, name, iteration,
		err)
}

// fail ends the line, for the first reason that there is.
func (l *Line) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = err
	l.cancel()
	for _, c := range []io.Closer{l.below, l.above} {
		if c != nil {
			c.Close() // what it says adds nothing to the reason
		}
	}
}

func (l *Line) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// reduceUp adds this replica's elements to the sums that come from below and hands them on. The last replica makes the
// results of them.
func (l *Line) reduceUp(iteration int, name string, data []float32) error {
	own := header(iteration, name, len(data))
	if l.below != nil {
		theirs := make([]byte, len(own))
		if _, err := io.ReadFull(l.below, theirs); err != nil {
			return l.lostError(l.number-1, err)
		}
		if string(theirs) != string(own) {
			return fmt.Errorf("replica %d reduces something else: the replicas must have the same network, passes "+
				"and iterations", l.number-1)
		}
	}
	if l.above != nil {
		if _, err := l.above.Write(own); err != nil {
			return l.lostError(l.number+1, err)
		}
	}
	bytes := make([]byte, 4*min(chunk, len(data)))
	for from := 0; from < len(data); from += chunk {
		own := data[from:min(from+chunk, len(data))]
		bytes := bytes[:4*len(own)]
		if l.below == nil {
			for i, v := range own {
				putFloat(bytes, i, v)
			}
		} else {
			if _, err := io.ReadFull(l.below, bytes); err != nil {
				return l.lostError(l.number-1, err)
			}
			for i, v := range own {
				putFloat(bytes, i, getFloat(bytes, i)+v)
			}
		}
		if l.above != nil {
			if _, err := l.above.Write(bytes); err != nil {
				return l.lostError(l.number+1, err)
			}
			continue
		}
		for i := range own {
			own[i] = getFloat(bytes, i) / float32(l.replicas)
			putFloat(bytes, i, own[i])
		}
		if _, err := l.below.Write(bytes); err != nil {
			return l.lostError(l.number-1, err)
		}
	}
	return nil
}

// passDown takes the results from above and hands them on. It always reads, so that no replica waits with a result for
// one that waits with a sum. A result replaces elements that were added before it was made.
func (l *Line) passDown(data []float32) error {
	if l.above == nil {
		return nil
	}
	bytes := make([]byte, 4*min(chunk, len(data)))
	for from := 0; from < len(data); from += chunk {
		own := data[from:min(from+chunk, len(data))]
		bytes := bytes[:4*len(own)]
		if _, err := io.ReadFull(l.above, bytes); err != nil {
			return l.lostError(l.number+1, err)
		}
		for i := range own {
			own[i] = getFloat(bytes, i)
		}
		if l.below == nil {
			continue
		}
		if _, err := l.below.Write(bytes); err != nil {
			return l.lostError(l.number-1, err)
		}
	}
	return nil
}

func (l *Line) lostError(replica int, err error) error { return &LostError{replica, err} }

// LostError is why a line takes no mean any more when the way to a neighbour broke: that has ended, or is out of reach.
type LostError struct {
	Replica int
	Err     error
}

func (e *LostError) Error() string {
	if errors.Is(e.Err, io.EOF) || errors.Is(e.Err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("replica %d has ended", e.Replica)
	}
	return fmt.Sprintf("the connection to replica %d: %v", e.Replica, e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// header says what is reduced.
func header(iteration int, name string, elements int) []byte {
	h := binary.LittleEndian.AppendUint64(nil, uint64(iteration))
	h = binary.LittleEndian.AppendUint64(h, uint64(elements))
	return append(h, digest(name)...)
}

func getFloat(bytes []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
}

func putFloat(bytes []byte, i int, v float32) {
	binary.LittleEndian.PutUint32(bytes[4*i:], math.Float32bits(v))
}
