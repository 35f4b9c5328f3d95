package web

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options are the settings of a server.
type Options struct {
	Dir string // where the address and the tokens are kept; it exists
	// Listen is an address such as 127.0.0.1:8080. Port 0 is the one before a restart, or else any free one.
	Listen string
	Log    func(line string) // from any goroutine
}

// writeTimeout is how long an answer may take, from the request on, unless its handler sets another deadline.
const writeTimeout = 2 * time.Minute

// writeBuffer is how many bytes wait in the kernel for who does not read them. By itself it lets them be megabytes, so
// that a stream of events goes on for half an hour before it is known that nobody reads.
const writeBuffer = 32 << 10

// Server serves the handlers that are mounted on it.
type Server struct {
	kept     Kept
	host     string // that Listen names
	named    string // this machine
	cookie   string
	mux      *http.ServeMux
	http     http.Server
	listener net.Listener
	end      context.CancelFunc // ends the requests that go on, such as streams
	served   sync.WaitGroup     // is one while requests are answered
	log      func(line string)
	needs    map[string]Access // by pattern
}

// Listen returns a server that has its address. Requests wait until Serve is called.
func Listen(o Options) (*Server, error) {
	kept, err := openKept(o.Dir)
	if err != nil {
		return nil, err
	}
	host, port, err := parse(o.Listen)
	if err != nil {
		return nil, err
	}
	l, err := listen(kept, host, port, o.Log)
	if err != nil {
		return nil, err
	}
	_, at, _ := net.SplitHostPort(l.Addr().String())
	kept.Address = net.JoinHostPort(host, at)
	if err := kept.store(o.Dir); err != nil {
		l.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{kept: kept, host: host, cookie: "tensile-" + at, mux: http.NewServeMux(), listener: l, end: cancel,
		log: o.Log, needs: make(map[string]Access)}
	s.named, _ = os.Hostname() // unknown: it is reached by its addresses
	s.http = http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		WriteTimeout: writeTimeout, MaxHeaderBytes: 1 << 14,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			_ = c.(*net.TCPConn).SetWriteBuffer(writeBuffer) // the worst is a larger one
			return ctx
		},
		ErrorLog: stdlog.New(lines(o.Log), "", 0)}
	return s, nil
}

// Serve begins to answer requests. All handlers have been mounted.
func (s *Server) Serve() {
	s.served.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.log(fmt.Sprintf("the page is not served any more: %v", err))
		}
	})
}

// Check returns the error of an address that Listen could not take, and leaves nothing behind.
func Check(address string) error {
	host, port, err := parse(address)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return addressError(address, err)
	}
	return l.Close()
}

// parse takes an address apart.
func parse(address string) (host, port string, err error) {
	if host, port, err = net.SplitHostPort(address); err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", "", fmt.Errorf("http address %q: give HOST:PORT, such as 127.0.0.1:8080, or off", address)
	}
	return host, port, nil
}

func addressError(address string, err error) error {
	if inner, ok := errors.AsType[*net.OpError](err); ok && inner.Err != nil {
		err = inner.Err
	}
	return fmt.Errorf("http address %s: %w: give a free one of this machine, or off", address, err)
}

// listen takes the port that was kept, if any may be taken and that one is free.
func listen(kept Kept, host, port string, log func(string)) (net.Listener, error) {
	if before, at, err := net.SplitHostPort(kept.Address); err == nil && port == "0" && before == host {
		l, err := net.Listen("tcp", kept.Address)
		if err == nil {
			return l, nil
		}
		log(fmt.Sprintf("the page cannot be served at port %s as before, and gets another: %v", at, err))
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, addressError(net.JoinHostPort(host, port), err)
	}
	return l, nil
}

// lines is a writer of whole lines.
type lines func(line string)

func (l lines) Write(p []byte) (int, error) {
	l("http: " + strings.TrimSpace(string(p)))
	return len(p), nil
}

// URL is where a browser finds the page, with the token for an access.
func (s *Server) URL(a Access) string { return s.kept.URL(a) }

// Handle mounts a handler at a pattern of [http.ServeMux], for requests that may do so much.
func (s *Server) Handle(pattern string, needs Access, h http.Handler) {
	s.needs[pattern] = needs
	s.mux.Handle(pattern, h)
}

// Close ends all requests and waits for them.
func (s *Server) Close() {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil { // somebody does not read what was sent
		s.http.Close()
	}
	s.listener.Close() // if it was never served
	s.served.Wait()
}

// ServeHTTP checks a request and hands it on.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if !s.knows(r.Host) {
		http.Error(w, "This server is not known by that name: use its address, or localhost.", http.StatusForbidden)
		return
	}
	if !sameOrigin(r) {
		http.Error(w, "This request comes from another web site.", http.StatusForbidden)
		return
	}
	token, inURL := shown(r, s.cookie)
	may := s.kept.access(token)
	_, pattern := s.mux.Handler(r)
	needs, mounted := s.needs[pattern]
	switch {
	case may < View && (!mounted || needs > Open):
		http.Error(w, "This needs the controller's token: tensile controller page prints the URL that has it.",
			http.StatusUnauthorized)
		return
	case inURL && may >= View && r.Method == http.MethodGet:
		http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: token, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode, MaxAge: 365 * 24 * 3600})
		http.Redirect(w, r, withoutToken(r.URL), http.StatusSeeOther)
		return
	case may < needs:
		http.Error(w, "This token is for looking only: tensile controller page --steer prints the URL of another.",
			http.StatusForbidden)
		return
	}
	s.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accessKey{}, may)))
}

type accessKey struct{}

// May is what a request may do, for handlers of a [Server].
func May(r *http.Request) Access {
	a, _ := r.Context().Value(accessKey{}).(Access)
	return a
}

// withoutToken is the path of a URL with its parameters but for the token. It never leads to another host.
func withoutToken(u *url.URL) string {
	q := u.Query()
	q.Del("token")
	to := url.URL{Path: "/" + strings.TrimLeft(u.Path, "/"), RawQuery: q.Encode()}
	return to.String()
}

// knows reports whether a host of a request is one that this server may be reached by.
func (s *Server) knows(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return net.ParseIP(host) != nil || strings.EqualFold(host, "localhost") ||
		host != "" && (strings.EqualFold(host, s.named) || strings.EqualFold(host, s.host))
}

// sameOrigin reports whether a request is not one that another web site has a browser make.
func sameOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return false
		}
	}
	return http.NewCrossOriginProtection().Check(r) == nil
}
