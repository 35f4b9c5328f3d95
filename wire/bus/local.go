package bus

import (
	"crypto/rand"
	"io"
	"net"
	"strings"
	"sync"
)

// localScheme begins the URL of a server that listens at [Local]. The rest is the address of a Unix socket: an abstract
// one, which is no file.
const localScheme = "unix://"

// local has other processes of this machine connect to a server as this process does.
type local struct {
	server   *Server
	listener *net.UnixListener
	work     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil: it was closed
}

func listenLocal(s *Server) (*local, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@tensile-bus-" + rand.Text(), Net: "unix"})
	if err != nil {
		return nil, err
	}
	l := &local{server: s, listener: listener, conns: make(map[net.Conn]bool)}
	l.work.Go(l.accept)
	return l, nil
}

func (l *local) url() string { return localScheme + l.listener.Addr().String() }

func (l *local) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		inner, err := l.server.InProcessConn()
		if err != nil || !l.track(conn) {
			conn.Close() // it is tried again, as long as there is a server
			if err == nil {
				inner.Close()
			}
			continue
		}
		l.work.Go(func() { copyStream(inner, conn) })
		l.work.Go(func() {
			copyStream(conn, inner)
			l.mu.Lock()
			delete(l.conns, conn)
			l.mu.Unlock()
		})
	}
}

// track remembers a connection, unless all were closed.
func (l *local) track(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		return false
	}
	l.conns[conn] = true
	return true
}

// copyStream passes on what comes one way until an end is closed, and closes the other one.
func copyStream(to, from net.Conn) {
	_, _ = io.Copy(to, from) // both ends see that it has ended
	to.Close()
	from.Close()
}

func (l *local) close() {
	l.listener.Close()
	l.mu.Lock()
	for conn := range l.conns {
		conn.Close()
	}
	l.conns = nil
	l.mu.Unlock()
	l.work.Wait()
}

// localServer connects to a server of another process of this machine.
type localServer struct {
	address string
	dial    *dialer
}

// localServerOf returns the server of a URL; nil: it is reached by the network.
func localServerOf(url string, dial *dialer) *localServer {
	if address, ok := strings.CutPrefix(url, localScheme); ok {
		return &localServer{address, dial}
	}
	return nil
}

func (l *localServer) InProcessConn() (net.Conn, error) { return l.dial.Dial("unix", l.address) }
