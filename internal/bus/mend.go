package bus

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// mendTime lies between two looks at the health of the server.
const mendTime = time.Second

// probeBytes is how much has to be written before a server that had no space is started again.
const probeBytes = 256 << 10

// watch looks after the server until it is closed. A stream that could not be written once, as when the disk was full, stays
// so: nats-server has to be started again when there is space.
func (s *Server) watch() {
	defer close(s.watched)
	tick := time.NewTicker(mendTime)
	defer tick.Stop()
	for {
		select {
		case <-s.end:
			return
		case <-tick.C:
			s.mend()
			s.leftOut()
		}
	}
}

// leftOut logs how many lines were left out.
func (s *Server) leftOut() {
	s.linesLock.Lock()
	due := s.lines.Due(time.Now())
	s.linesLock.Unlock()
	for _, line := range due {
		s.options.Log(line)
	}
}

// mend starts the server again if it does not store any more and could.
func (s *Server) mend() {
	if s.nats.Load() != nil && s.healthy() == nil {
		return
	}
	switch err := probe(s.options.Dir); {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		s.report(fmt.Sprintf("the controller's disk is full: free some space for %s; jobs that train go on", s.options.Dir))
		return
	case err != nil:
		s.report(fmt.Sprintf("the controller's state cannot be written: %v", err))
		return
	}
	if old := s.nats.Swap(nil); old != nil {
		old.Shutdown()
		old.WaitForShutdown()
	}
	if err := s.serve(); err != nil {
		s.report(fmt.Sprintf("the controller's store does not start again: %v", err))
		return
	}
	s.trouble.Store(nil)
	s.options.Log("the store was started again, and takes what comes")
}

// healthy returns an error if the server does not store what it gets.
func (s *Server) healthy() error {
	if h := s.nats.Load().Healthz(&server.HealthzOptions{Account: server.DEFAULT_GLOBAL_ACCOUNT}); h.Error != "" {
		return errors.New(h.Error)
	}
	return nil
}

// report takes down why nothing is stored, and logs it when that is new.
func (s *Server) report(trouble string) {
	if before := s.trouble.Swap(&trouble); before == nil || *before != trouble {
		s.options.Log(trouble)
	}
}

// Trouble says in one line why the server does not store what it gets; "" if it does.
func (s *Server) Trouble() string {
	if t := s.trouble.Load(); t != nil {
		return *t
	}
	return ""
}

// InProcessConn connects within the process, to the server that runs now.
func (s *Server) InProcessConn() (net.Conn, error) {
	if n := s.nats.Load(); n != nil {
		return n.InProcessConn()
	}
	return nil, errors.New("the server is being started again")
}

// probe returns an error if a folder takes no more bytes.
func probe(dir string) (err error) {
	f, err := os.CreateTemp(dir, ".probe.*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if _, err := f.Write(make([]byte, probeBytes)); err != nil {
		return err
	}
	return f.Sync()
}
