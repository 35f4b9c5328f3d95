package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"tensile/wire"
	"tensile/wire/limit"
)

// Options are the settings of a server.
type Options struct {
	Dir string // for all that it keeps; made if it is not there
	// address such as 127.0.0.1:4222, port 0 for any free one; [Local]; "": connections of this process alone
	Listen string
	TLS    bool              // connections over TCP are encrypted
	Log    func(line string) // gets the warnings and errors, from any goroutine; nil: nobody
}

// Local is the address to listen at for processes of this machine that get credentials: it wants no network, not even a
// loopback address.
const Local = "local"

// Server is a NATS server in this process.
type Server struct {
	// options are the caller's.
	options Options
	// keys are the users' passwords.
	keys *keyring
	// authenticator lets users in.
	authenticator *authenticator
	// url is where the server listens.
	url string
	// ca is the certificate of the server's authority, as PEM text.
	ca []byte
	// gate hands on what executors publish.
	gate *gate
	// lock is the file whose lock keeps other servers from the state folder.
	lock *os.File
	// local listens on this host's Unix socket; nil: the server does not listen there.
	local *local

	// nats is the server itself; nil while it is being started again.
	nats atomic.Pointer[server.Server]
	// trouble is what is wrong with it; nil: nothing is.
	trouble atomic.Pointer[string]
	// crowded is which store is full; nil: none is.
	crowded atomic.Pointer[string]
	// end is closed by Close.
	end chan struct{}
	// supervised is closed when supervise has returned; nil: it was not started.
	supervised chan struct{}

	// linesLock guards lines.
	linesLock sync.Mutex
	// lines limits what is logged.
	lines limit.Lines
}

// logLimited logs a line of a kind, at a limited rate.
func (s *Server) logLimited(kind, line string) {
	s.linesLock.Lock()
	text, ok := s.lines.Add(time.Now(), kind, line)
	s.linesLock.Unlock()
	if ok {
		s.options.Log(text)
	}
}

// startTimeout is how long a server may take to be ready, also where the machine is busy.
const startTimeout = time.Minute

// Start starts a server that is ready for connections when Start returns. What was kept in the directory is there
// again.
func Start(o Options) (_ *Server, err error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if err := CheckFormat(o.Dir); err != nil {
		return nil, fmt.Errorf("start bus: %w", err)
	}
	if _, err := os.Stat(o.Dir); errors.Is(err, fs.ErrNotExist) { // nothing is made in vain
		if _, _, err := addressOf(o.Listen); err != nil {
			return nil, fmt.Errorf("start bus: %w", err)
		}
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start bus: %w", err)
	}
	if err := ownFolder(o.Dir); err != nil {
		return nil, fmt.Errorf("start bus: %w", err)
	}
	s := &Server{options: o, end: make(chan struct{})}
	if s.lock, err = lock(o.Dir); err != nil {
		return nil, fmt.Errorf("start bus: %w", err)
	}
	if err = MarkFormat(o.Dir); err == nil {
		s.keys, err = openKeyring(o.Dir)
	}
	if err == nil {
		s.authenticator = &authenticator{keys: s.keys, log: s.logLimited}
		err = s.serve()
	}
	if err == nil {
		err = s.openGate()
	}
	if err == nil && o.Listen == Local {
		if s.local, err = listenLocal(s); err == nil {
			s.url = s.local.url()
		}
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("start bus: %w", err)
	}
	s.supervised = make(chan struct{})
	go s.supervise()
	return s, nil
}

// ownFolder refuses a state folder in which others may put what they like, and makes the one of the store, into which
// nobody else may look.
func ownFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("state folder %s has mode %#o, and others can write to it: if nobody has, chmod 700 it", dir,
			mode)
	}
	store := filepath.Join(dir, "nats")
	if err := os.MkdirAll(store, 0o700); err != nil {
		return err
	}
	return os.Chmod(store, 0o700)
}

// serve starts a nats-server, at the address of the one before it if there was one.
func (s *Server) serve() error {
	options, err := s.natsOptions()
	if err != nil {
		return err
	}
	n, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.nats.Store(n)
	n.SetLoggerV2(logger{s.logLimited}, false, false, false)
	if err := s.authenticator.admitUsers(n); err != nil {
		return err
	}
	n.Start()
	if !n.ReadyForConnections(startTimeout) {
		return fmt.Errorf("the server on %q is not ready after %v: see its log for the reason", s.options.Listen,
			startTimeout)
	}
	if !options.DontListen && s.url == "" {
		scheme := "nats"
		if s.options.TLS {
			scheme = "tls"
		}
		host, port := options.Host, strconv.Itoa(n.Addr().(*net.TCPAddr).Port)
		s.options.Listen = net.JoinHostPort(host, port) // for the next start
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		s.url = scheme + "://" + net.JoinHostPort(host, port)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c, err := s.Connect(ctx, ConnOptions{Log: s.options.Log}) // which makes the streams
	if err != nil {
		return err
	}
	return c.Close()
}

// openGate opens the gate, whose connection comes back by itself when the server is started again.
func (s *Server) openGate() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c, err := s.Connect(ctx, ConnOptions{Name: "gate"})
	if err != nil {
		return err
	}
	if s.gate, err = openGate(ctx, c, s.logLimited, s.bar); err != nil {
		c.Close()
		s.gate = nil
	}
	return err
}

// natsOptions are those of nats-server.
func (s *Server) natsOptions() (*server.Options, error) {
	o := s.options
	to := &server.Options{
		ServerName: "tensile", DontListen: o.Listen == "" || o.Listen == Local, NoSigs: true,
		JetStream: true, StoreDir: filepath.Join(o.Dir, "nats"), JetStreamMaxStore: maxStore, JetStreamMaxMemory: gib,
		MaxPayload: wire.MaxMessage, MaxPending: 8 * wire.MaxMessage, PingInterval: 20 * time.Second,
		AuthTimeout: 10, TLSTimeout: 10, // seconds; by default 2, which a machine full of executors may take
		CustomClientAuthentication: s.authenticator,
	}
	if to.DontListen {
		return to, nil
	}
	var err error
	if to.Host, to.Port, err = addressOf(o.Listen); err != nil {
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
		certificate, err := a.issue(to.Host)
		if err != nil {
			return nil, err
		}
		if s.ca == nil {
			s.ca = a.pem
		}
		to.TLS, to.TLSConfig = true, &tls.Config{Certificates: []tls.Certificate{certificate},
			MinVersion: tls.VersionTLS13}
	}
	return to, nil
}

// maxStore is what all streams may reserve together: no limit, as each has its own and there is one per executor.
const maxStore = 1 << 60

// addressOf returns host and port of an address that can be had, or is "".
func addressOf(listen string) (host string, port int, err error) {
	if listen == "" || listen == Local {
		return "", 0, nil
	}
	host, number, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: %w: give HOST:PORT, such as 127.0.0.1:4222", listen, err)
	}
	if port, err = strconv.Atoi(number); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("address %q: the port is no number up to 65535", listen)
	}
	return host, port, listenable(listen)
}

// listenable reports at once that an address cannot be had; the server would only log it and never be ready.
func listenable(address string) error {
	l, err := net.Listen("tcp", address)
	host, _, _ := net.SplitHostPort(address)
	switch {
	case err == nil:
		return l.Close()
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("listen on %s: this machine has no address %s: give one that it has, or 0.0.0.0 for all "+
			"of them", address, host)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("listen on %s: only root may: give a port from 1024 on", address)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("listen on %s: %w: end what holds it, or give another address", address, err)
	}
	return fmt.Errorf("listen on %s: %w: give an address of this machine", address, err)
}

// URL is where the server listens; "" if it does not.
func (s *Server) URL() string { return s.url }

// Credentials returns those of a user: [Controller], [Client], a [User] or an [Executor].
func (s *Server) Credentials(user string) Credentials {
	return Credentials{URL: s.url, User: user, Password: s.keys.password(user), CA: string(s.ca)}
}

// Connect connects as the controller, within the process.
func (s *Server) Connect(ctx context.Context, o ConnOptions) (*Conn, error) {
	to := Credentials{User: Controller, Password: s.keys.password(Controller)}
	c, err := connect(ctx, to, o, s, connectTimeout)
	if err == nil {
		c.mayAsk = s.mayAsk
	}
	return c, err
}

// mayAsk reports whether a user may send a request of some bytes.
func (s *Server) mayAsk(user string, bytes int) bool {
	return user == Controller || s.gate.spend(user, &requests, int64(bytes), time.Now())
}

// Close ends the server and waits for it. What was stored is on disk then. A second Close does nothing.
func (s *Server) Close() {
	if s.supervised != nil {
		close(s.end)
		<-s.supervised
		s.supervised = nil
	}
	if s.local != nil {
		s.local.close()
	}
	if s.gate != nil {
		s.gate.close()
	}
	if n := s.nats.Swap(nil); n != nil {
		n.Shutdown()
		n.WaitForShutdown()
	}
	if s.lock != nil {
		s.lock.Close()
		s.lock = nil
	}
}

// certPool returns the pool with the certificates of a PEM text; nil, which stands for the system's, if it is empty.
func certPool(ca string) (*x509.CertPool, error) {
	if ca == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return nil, errors.New("ca of the credentials is no certificate in PEM form")
	}
	return pool, nil
}

// lock keeps two servers from using one directory. The kernel takes it back when the process ends, however it does.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("state directory %s is in use by another controller (%w): stop it, or give this one "+
			"another directory", dir, err)
	}
	return f, nil
}
