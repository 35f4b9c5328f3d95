package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "tensile/internal/long" // the flag -long
)

// start starts a server with a path for each access, and one that streams until it is told to end.
func start(t *testing.T, dir, listen string) *Server {
	t.Helper()
	s := listenAt(t, dir, listen)
	s.Serve()
	return s
}

func listenAt(t *testing.T, dir, listen string) *Server {
	t.Helper()
	s, err := Listen(Options{Dir: dir, Listen: listen, Log: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	say := func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s may %d", r.URL, May(r)) }
	s.Handle("GET /open", Open, http.HandlerFunc(say))
	s.Handle("GET /{$}", View, http.HandlerFunc(say))
	s.Handle("POST /stop", Steer, http.HandlerFunc(say))
	s.Handle("GET /stream", View, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "begun")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	return s
}

func (s *Server) at(path string) string { return "http://" + s.kept.Address + path }

// Requests that come before there are handlers wait for them.
func TestEarly(t *testing.T) {
	s := listenAt(t, t.TempDir(), "127.0.0.1:0")
	var early []net.Conn
	for range 50 {
		conn, err := net.Dial("tcp", s.kept.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n")
		early = append(early, conn)
	}
	s.Handle("GET /late", Open, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Serve()
	for _, conn := range early {
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if a.StatusCode != http.StatusOK {
			t.Fatalf("a request before there was a handler is answered with %s", a.Status)
		}
	}
	listenAt(t, t.TempDir(), "127.0.0.1:0").Close() // what is never served closes, too
}

// Who shows which token in which way may do what; the host and the origin are checked before.
func TestAccess(t *testing.T) {
	s := start(t, t.TempDir(), "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(s.kept.Address)
	view, steer := s.kept.View, s.kept.Steer
	bearer := func(token string) map[string]string { return map[string]string{"Authorization": "Bearer " + token} }
	with := func(h map[string]string, more ...string) map[string]string {
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	for _, test := range []struct {
		request string
		header  map[string]string
		status  int
		body    string
	}{
		{"GET /open", nil, 200, "/open may 0"},
		{"GET /open", bearer("wrong"), 200, "/open may 0"},
		{"GET /open", bearer(steer), 200, "/open may 2"},
		{"GET /", nil, 401, "token"},
		{"GET /?token=", nil, 401, "token"},
		{"GET /?token=wrong", nil, 401, "token"},
		{"GET /?token=" + view[1:], nil, 401, "token"},
		{"GET /", bearer("wrong"), 401, "token"},
		{"GET /", bearer(""), 401, "token"},
		{"GET /", map[string]string{"Cookie": "tensile-" + port + "=wrong"}, 401, "token"},
		{"GET /nowhere", nil, 401, "token"},
		{"POST /stop", nil, 401, "token"},
		{"GET /", bearer(view), 200, "/ may 1"},
		{"GET /", map[string]string{"Cookie": "tensile-" + port + "=" + view}, 200, "/ may 1"},
		{"GET /", map[string]string{"Cookie": "tensile-1=" + view}, 401, "token"},
		{"GET /nowhere", bearer(view), 404, ""},
		{"POST /stop", bearer(view), 403, "looking only"},
		{"POST /stop", bearer(steer), 200, "/stop may 2"},
		{"POST /stop", map[string]string{"Cookie": "tensile-" + port + "=" + steer}, 200, "/stop may 2"},
		{"GET /stop", bearer(steer), 405, ""},
		{"GET /?token=" + view, nil, 303, "/"},
		{"GET /?job=a&token=" + view, nil, 303, "/?job=a"},

		{"GET /open", map[string]string{"Host": "rebound.example"}, 403, "not known by that name"},
		{"GET /", with(bearer(view), "Host", "rebound.example:"+port), 403, "not known by that name"},
		{"GET /", with(bearer(view), "Host", "localhost:1"), 200, "/ may 1"},
		{"GET /", with(bearer(view), "Host", "[::1]:1"), 200, "/ may 1"},
		{"GET /", with(bearer(view), "Host", "::1"), 200, "/ may 1"},
		{"GET /", with(bearer(view), "Origin", "http://elsewhere.example"), 403, "another web site"},
		{"GET /", with(bearer(view), "Origin", "null"), 403, "another web site"},
		{"GET /", with(bearer(view), "Origin", s.at("")), 200, "/ may 1"},
		{"POST /stop", with(bearer(steer), "Origin", s.at("")), 200, "/stop may 2"},
		{"POST /stop", with(bearer(steer), "Origin", "http://127.0.0.1:1"), 403, "another web site"},
		{"POST /stop", with(bearer(steer), "Sec-Fetch-Site", "cross-site"), 403, "another web site"},
		{"POST /stop", with(bearer(steer), "Sec-Fetch-Site", "same-origin"), 200, "/stop may 2"},
	} {
		method, path, _ := strings.Cut(test.request, " ")
		r, err := http.NewRequest(method, "http://"+s.kept.Address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = path
		for name, value := range test.header {
			if r.Header.Set(name, value); name == "Host" {
				r.Host = value
			}
		}
		a, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Errorf("%s with %v: %v", test.request, test.header, err)
			continue
		}
		body, err := io.ReadAll(a.Body)
		a.Body.Close()
		text := string(body)
		if test.status == http.StatusSeeOther {
			text = a.Header.Get("Location")
			if text != test.body {
				t.Errorf("%s leads to %s, want %s", test.request, text, test.body)
			}
			set := a.Header.Get("Set-Cookie")
			if want := "tensile-" + port + "=" + view; !strings.HasPrefix(set, want) ||
				!strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") {
				t.Errorf("%s sets the cookie %s, want %s with HttpOnly and SameSite=Strict", test.request, set, want)
			}
		}
		if err != nil || a.StatusCode != test.status || !strings.Contains(text, test.body) {
			t.Errorf("%s with %v: %v, %d, %q; want %d with %q", test.request, test.header, err, a.StatusCode, text,
				test.status, test.body)
		}
		if a.Header.Get("Access-Control-Allow-Origin") != "" ||
			!strings.Contains(a.Header.Get("Content-Security-Policy"), "default-src 'self'") {
			t.Errorf("%s: headers %v", test.request, a.Header)
		}
	}
}

// Address and tokens are those before a restart; where the port is taken another is found. The file is its owner's.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir, "127.0.0.1:0")
	before := first.kept
	first.Close()
	second := start(t, dir, "127.0.0.1:0")
	if second.kept != before || before.View == before.Steer || len(before.View) < 20 {
		t.Errorf("after a restart %+v, before it %+v", second.kept, before)
	}
	if kept, err := Read(dir); err != nil || kept != before {
		t.Errorf("Read: %+v, %v, want %+v", kept, err, before)
	}
	if info, err := os.Stat(filepath.Join(dir, FileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of tokens: %v, %v", info, err)
	}
	if err := Check(before.Address); err == nil || !strings.Contains(err.Error(), "in use: give a free") {
		t.Errorf("Check of a port that is taken: %v", err)
	}
	third := start(t, dir, "127.0.0.1:0") // while the second one has the port
	if third.kept.Address == before.Address || third.kept.View != before.View {
		t.Errorf("where the port is taken: %+v, before %+v", third.kept, before)
	}
	third.Close()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Options{Dir: dir, Listen: "127.0.0.1:0"}); err == nil ||
		!strings.Contains(err.Error(), FileName+" is damaged: remove it") {
		t.Errorf("with a damaged file: %v", err)
	}
}

// What goes on when the server is closed ends by its context.
func TestCloseEndsStreams(t *testing.T) {
	s := start(t, t.TempDir(), "127.0.0.1:0")
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.at("/stream"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.kept.View)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	lines := bufio.NewReader(a.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "begun\n" {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	s.Close()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
}

func TestURL(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:80": "http://127.0.0.1:80/?token=v", "0.0.0.0:80": "http://localhost:80/?token=v",
		":80": "http://localhost:80/?token=v", "[::]:80": "http://localhost:80/?token=v",
		"lab:80": "http://lab:80/?token=v", "[::1]:80": "http://[::1]:80/?token=v",
	} {
		if got := (Kept{Address: address, View: "v", Steer: "s"}).URL(View); got != want {
			t.Errorf("URL of %s: %s, want %s", address, got, want)
		}
	}
	if got := withoutToken(&url.URL{Path: "//elsewhere.example/x", RawQuery: "token=t&a=b"}); got !=
		"/elsewhere.example/x?a=b" {
		t.Errorf("a path that looks like a host leads to %s", got)
	}
	for _, bad := range []string{"", "nonsense", "1.2.3.4", "127.0.0.1:http", "127.0.0.1:70000", "127.0.0.1:-1"} {
		if err := Check(bad); err == nil || !strings.Contains(err.Error(), "give HOST:PORT") {
			t.Errorf("Check(%q): %v", bad, err)
		}
	}
}
