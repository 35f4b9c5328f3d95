package bus

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// dialer dials and remembers why it could not: nats only says that there is no server.
type dialer struct {
	mu  sync.Mutex
	err error
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, connectTime)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
	return conn, err
}

func (d *dialer) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// connectError says why no connection came about, and what to do.
func connectError(to Credentials, err, dialed error) error {
	var remedy string
	_, untrusted := errors.AsType[x509.UnknownAuthorityError](err)
	_, misnamed := errors.AsType[x509.HostnameError](err)
	switch {
	case dialed != nil:
		err, remedy = dialed, "start a controller there (tensile controller --listen), or correct the URL"
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired):
		err = fmt.Errorf("user %q is refused", to.User)
		remedy = "use the credentials that the controller wrote into its state directory"
	case untrusted:
		remedy = "use the credentials that the controller wrote, which hold the certificate (ca) that signed the server's"
	case misnamed:
		remedy = "use a name or address that the controller listens on"
	case errors.Is(err, nats.ErrSecureConnWanted):
		remedy = "the server has no TLS: start it with TLS, or use credentials without a ca"
	case errors.Is(err, nats.ErrTimeout) || isTimeout(err):
		err, remedy = fmt.Errorf("no answer within %v", connectTime), "see whether that is a NATS server, and how busy its machine is"
	default:
		remedy = "see whether that is a NATS server"
	}
	where := to.URL
	if where == "" {
		where = "the server of this process"
	}
	return fmt.Errorf("connect to %s: %w: %s", where, err, remedy)
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// pause is how long to wait before another try to connect: longer and longer, and for each connection another.
func pause(tries int) time.Duration {
	most := 100 * time.Millisecond << min(max(tries-1, 0), 4)
	return most/2 + rand.N(most)
}

var publishRefused = regexp.MustCompile(`(?i)permissions violation for publish to "([^"]+)"`)

// refusedSubject returns the subject that a server forbids to publish to, "" for other errors.
func refusedSubject(err error) string {
	if match := publishRefused.FindStringSubmatch(err.Error()); match != nil {
		return match[1]
	}
	return ""
}
