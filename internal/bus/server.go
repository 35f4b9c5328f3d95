package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"tensile/wire"
)

// Options are the settings of a server.
type Options struct {
	Dir    string            // for all that it keeps; made if it is not there
	Listen string            // address such as 127.0.0.1:4222, port 0 for any free one; "": connections of this process alone
	TLS    bool              // connections over TCP are encrypted
	Log    func(line string) // gets the warnings and errors, from any goroutine; nil: nobody
}

// Server is a NATS server in this process.
type Server struct {
	nats   *server.Server
	secret secret
	url    string
	ca     []byte
	lock   *os.File
}

// startTime is how long a server may take to be ready.
const startTime = 10 * time.Second

// Start starts a server that is ready for connections when Start returns. What was kept in the directory is there again.
func Start(o Options) (_ *Server, err error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start bus: %w", err)
	}
	s := new(Server)
	if s.lock, err = lock(o.Dir); err != nil {
		return nil, fmt.Errorf("start bus: %w", err)
	}
	if err := s.start(o); err != nil {
		s.Close()
		return nil, fmt.Errorf("start bus: %w", err)
	}
	return s, nil
}

func (s *Server) start(o Options) error {
	var err error
	if s.secret, err = openSecret(o.Dir); err != nil {
		return err
	}
	g := &gate{secret: s.secret, log: o.Log}
	options, err := s.options(o, g)
	if err != nil {
		return err
	}
	if s.nats, err = server.NewServer(options); err != nil {
		return err
	}
	s.nats.SetLoggerV2(logger{o.Log}, false, false, false)
	if err := g.open(s.nats); err != nil {
		return err
	}
	s.nats.Start()
	if !s.nats.ReadyForConnections(startTime) {
		return fmt.Errorf("the server on %q is not ready after %v: see its log for the reason", o.Listen, startTime)
	}
	if !options.DontListen {
		scheme := "nats"
		if o.TLS {
			scheme = "tls"
		}
		host, port := options.Host, s.nats.Addr().(*net.TCPAddr).Port
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		s.url = scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	c, err := s.Connect(ctx, ConnOptions{Log: o.Log}) // which makes the streams
	if err != nil {
		return err
	}
	return c.Close()
}

// options are those of nats-server.
func (s *Server) options(o Options, g *gate) (*server.Options, error) {
	to := &server.Options{
		ServerName: "tensile", DontListen: o.Listen == "", NoSigs: true,
		JetStream: true, StoreDir: filepath.Join(o.Dir, "nats"), JetStreamMaxStore: storage(), JetStreamMaxMemory: gib,
		MaxPayload: wire.MaxMessage, MaxPending: 8 * wire.MaxMessage, PingInterval: 20 * time.Second,
		AuthTimeout: 10, TLSTimeout: 10, // seconds; by default 2, which a machine full of executors may take
		CustomClientAuthentication: g,
	}
	if o.Listen == "" {
		return to, nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w: give HOST:PORT, such as 127.0.0.1:4222", o.Listen, err)
	}
	to.Host = host
	if to.Port, err = strconv.Atoi(port); err != nil || to.Port < 0 || to.Port > 65535 {
		return nil, fmt.Errorf("address %q: the port is no number up to 65535", o.Listen)
	}
	if err := listenable(o.Listen); err != nil {
		return nil, err
	}
	if to.Port == 0 {
		to.Port = server.RANDOM_PORT
	}
	if o.TLS {
		a, err := openAuthority(o.Dir)
		if err != nil {
			return nil, err
		}
		certificate, err := a.issue(host)
		if err != nil {
			return nil, err
		}
		s.ca = a.pem
		to.TLS, to.TLSConfig = true, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	}
	return to, nil
}

// listenable reports at once that an address cannot be had; the server would only log it and never be ready.
func listenable(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w: end what holds it, or give another address", address, err)
	}
	return l.Close()
}

// URL is where the server listens; "" if it does not.
func (s *Server) URL() string { return s.url }

// Credentials returns those of a user: [Controller], [Client] or an [Executor].
func (s *Server) Credentials(user string) Credentials {
	return Credentials{URL: s.url, User: user, Password: s.secret.password(user), CA: string(s.ca)}
}

// Connect connects as the controller, within the process.
func (s *Server) Connect(ctx context.Context, o ConnOptions) (*Conn, error) {
	return connect(ctx, Credentials{User: Controller, Password: s.secret.password(Controller)}, o, s.nats)
}

// Close ends the server and waits for it. What was stored is on disk then. A second Close does nothing.
func (s *Server) Close() {
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
		s.nats = nil
	}
	if s.lock != nil {
		s.lock.Close()
		s.lock = nil
	}
}

// roots returns the pool with the certificates of a PEM text; nil, which stands for the system's, if it is empty.
func roots(ca string) (*x509.CertPool, error) {
	if ca == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return nil, errors.New("ca of the credentials is no certificate in PEM form")
	}
	return pool, nil
}
