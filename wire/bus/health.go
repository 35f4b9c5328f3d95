package bus

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"tensile/graph"
	"tensile/wire"
)

// healthInterval lies between two health checks of the server.
const healthInterval = time.Second

// probeBytes is how much has to be written before a server that had no space is started again.
const probeBytes = 256 << 10

// supervise checks the server until it is closed. A stream that could not be written once, because the disk was full,
// stays broken: nats-server has to be started again when there is space.
func (s *Server) supervise() {
	defer close(s.supervised)
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	look := time.NewTicker(revokeInterval)
	defer look.Stop()
	for {
		select {
		case <-s.end:
			return
		case <-tick.C:
			s.restart()
			s.logOmitted()
		case <-look.C:
			s.disconnect(s.keys.newlyRevoked())
		}
	}
}

// revokeInterval lies between two looks whether credentials were revoked.
const revokeInterval = 100 * time.Millisecond

// disconnect closes the connections of users whose credentials were revoked.
func (s *Server) disconnect(users []string) {
	for _, user := range users {
		s.options.Log(fmt.Sprintf("the credentials of user %q were revoked: its connections are closed", user))
		s.closeConnections(user)
	}
}

// closeConnections closes those of a user.
func (s *Server) closeConnections(user string) {
	n := s.nats.Load()
	if n == nil {
		return // it is being started again, and nobody is connected
	}
	open, err := n.Connz(&server.ConnzOptions{Username: true, User: user, Limit: math.MaxInt32})
	if err != nil {
		s.options.Log(fmt.Sprintf("list the connections of user %q: %v", user, err))
		return
	}
	for _, c := range open.Conns {
		_ = n.DisconnectClientByID(c.Cid) // it may have gone
	}
}

// bar closes the connections of a user that sends without regard to what is refused, and lets it in again after
// barTime.
func (s *Server) bar(user string) {
	s.authenticator.bar(user, time.Now().Add(barTime))
	s.logLimited("bar "+user, fmt.Sprintf("user %q goes on sending what is refused: its connections are closed, and "+
		"none is let in for %v", user, barTime))
	s.closeConnections(user)
}

// barTime is for how long a user is kept out that keeps the gate or the controller busy: then these have time for
// others.
const barTime = 10 * time.Second

// logOmitted logs how many lines the rate limit has left out.
func (s *Server) logOmitted() {
	s.linesLock.Lock()
	due := s.lines.Due(time.Now())
	s.linesLock.Unlock()
	for _, line := range due {
		s.options.Log(line)
	}
}

// restart starts the server again if it no longer stores what it gets, and the disk has space.
func (s *Server) restart() {
	if s.nats.Load() != nil && s.healthy() == nil {
		if s.trouble.Swap(nil) != nil {
			s.options.Log("the store takes what comes again")
		}
		s.setFull(s.full())
		return
	}
	switch err := probe(s.options.Dir); {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		s.setTrouble(fmt.Sprintf("the controller's disk is full: free some space for %s; jobs that train go on",
			s.options.Dir))
		return
	case err != nil:
		s.setTrouble(fmt.Sprintf("the controller's state cannot be written: %v", err))
		return
	}
	if old := s.nats.Swap(nil); old != nil {
		old.Shutdown()
		old.WaitForShutdown()
	}
	if err := s.serve(); err != nil {
		s.setTrouble(fmt.Sprintf("the controller's store does not start again: %v", err))
		return
	}
	s.trouble.Store(nil)
	s.options.Log("the store was started again, and takes what comes")
}

// healthy returns an error if the server does not store what it gets. What says nothing of that is left out: a stream
// whose folder is there alone is being made or removed, or was when the process was killed, and is made again when
// something is stored in it; consumers come and go with those who watch; and whether connections are taken is asked
// with a deadline of a millisecond, which a busy machine misses.
func (s *Server) healthy() error {
	h := s.nats.Load().Healthz(&server.HealthzOptions{Account: server.DEFAULT_GLOBAL_ACCOUNT, Details: true})
	for _, e := range h.Errors {
		switch e.Type {
		case server.HealthzErrorConn, server.HealthzErrorConsumer:
		case server.HealthzErrorStream:
			if strings.Contains(e.Error, "write error") {
				return errors.New(e.Error)
			}
		default:
			return errors.New(e.Error)
		}
	}
	return nil
}

// full says which store takes no more, since it has what it may have; "": none.
func (s *Server) full() string {
	info, err := s.nats.Load().Jsz(&server.JSzOptions{Streams: true, Config: true})
	if err != nil {
		return "" // it is ending
	}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			c := stream.Config
			most := uint64(max(c.MaxBytes, 0))
			if most > 0 && c.Discard == server.DiscardNew && stream.State.Bytes+wire.MaxMessage > most {
				return fmt.Sprintf("the controller's store %s is full with %s: stop jobs, or start the controller "+
					"with a smaller --keep so that fewer that are over are remembered", stream.Name,
					graph.Bytes(stream.State.Bytes))
			}
		}
	}
	return ""
}

// setFull sets what is full, and logs it when that is new.
func (s *Server) setFull(full string) {
	switch before := s.crowded.Swap(&full); {
	case full != "" && (before == nil || *before == ""):
		s.options.Log(full)
	case full == "" && before != nil && *before != "":
		s.options.Log("there is room in the store again")
	}
}

// Full says in one line which store takes no more; "": all do. What is stored elsewhere goes on.
func (s *Server) Full() string {
	if full := s.crowded.Load(); full != nil {
		return *full
	}
	return ""
}

// setTrouble sets why nothing is stored, and logs it when that is new.
func (s *Server) setTrouble(trouble string) {
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

// logger passes on those lines of nats-server that a user of the controller can act on. Lines about normal operation,
// and traces, which hold secrets, are dropped.
type logger struct{ to func(kind, line string) }

// origin is what stands before a line about a client, and what a client can make up at its end.
var origin = regexp.MustCompile(`^\S+ - cid:\d+( - "[^"]*")? - |, Subject .*$|\d+`)

// quiet are parts of lines that are harmless, or that are logged in other words.
var quiet = []string{
	"Recovering stream state from index errored", // after a kill it is rebuilt from the messages themselves
	"] Stream state ",         // why, as a line before
	"no space left on device", // Server.Trouble says so
	"disk quota exceeded",
	"took too long", // on a busy machine
	"Readloop processing time",
	"connection closed", // a client left while it was let in, or the server ended then
}

func (l logger) print(level, format string, v []any) {
	line := fmt.Sprintf(format, v...)
	for _, part := range quiet {
		if strings.Contains(line, part) {
			return
		}
	}
	l.to("nats: "+origin.ReplaceAllString(line, ""), "nats: "+level+line)
}

func (l logger) Warnf(format string, v ...any)  { l.print("warning: ", format, v) }
func (l logger) Errorf(format string, v ...any) { l.print("", format, v) }
func (l logger) Fatalf(format string, v ...any) { l.print("fatal: ", format, v) }
func (logger) Noticef(string, ...any)           {}
func (logger) Debugf(string, ...any)            {}
func (logger) Tracef(string, ...any)            {}
