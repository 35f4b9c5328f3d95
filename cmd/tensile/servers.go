package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tensile/wire/bus"
)

// hub is where a controller and all that speak to it meet: a server of this process, or external servers.
type hub interface {
	URL() string
	Credentials(user string) bus.Credentials
	Connect(ctx context.Context, o bus.ConnOptions) (*bus.Conn, error) // as the controller
	Trouble() string
	Full() string
	Close()
}

// serverFlags name external NATS servers, and how they let us in.
type serverFlags struct{ urls, auth, ca string }

func (f *serverFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.auth, "nats-auth", "",
		"login file for external NATS servers: a .creds file, an nkey seed, or a line USER:PASSWORD")
	c.Flags().StringVar(&f.ca, "nats-ca", "",
		"CA certificate (PEM) of external NATS servers (default: the system's)")
}

// credentials are those of a user at the servers.
func (f *serverFlags) credentials(user string) (bus.Credentials, error) {
	c := bus.Credentials{URL: f.urls, User: user, External: true}
	if err := checkServers(f.urls); err != nil {
		return bus.Credentials{}, err
	}
	if f.ca != "" {
		if !strings.HasPrefix(f.urls, "tls://") {
			return bus.Credentials{}, fmt.Errorf("--nats-ca: connections to %s are not encrypted: give tls://, or "+
				"leave it out", f.urls)
		}
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return bus.Credentials{}, fmt.Errorf("--nats-ca: %w", err)
		}
		c.CA = string(pem)
	}
	var err error
	if f.auth != "" {
		if c.Login, err = bus.ReadLogin(f.auth); err != nil {
			err = fmt.Errorf("--nats-auth: %w", err)
		}
	}
	return c, err
}

// checkServers returns the error of a list of servers.
func checkServers(urls string) error {
	scheme := ""
	for _, text := range strings.Split(urls, ",") {
		u, err := url.Parse(text)
		switch {
		case err == nil && u.User != nil:
			return errors.New("--nats: everybody sees the login in an address: give it in a file, with --nats-auth")
		case err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.Path != "" ||
			u.RawQuery != "":
			return fmt.Errorf("--nats %q: give addresses with commas between them, such as "+
				"nats://HOST:4222,nats://HOST2:4222", urls)
		case scheme != "" && scheme != u.Scheme:
			return fmt.Errorf("--nats %s: give nats:// for all servers, or tls:// for all", urls)
		}
		if err := checkPort(u); err != nil {
			return err
		}
		scheme = u.Scheme
	}
	return nil
}

// checkPort returns the error of an address with a port that there cannot be.
func checkPort(u *url.URL) error {
	if u.Port() == "" {
		return nil
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return fmt.Errorf("--nats %s: there is no port %s: give 1 to 65535", u, u.Port())
	}
	return nil
}

// servers are external servers.
type servers struct {
	controller bus.Credentials
	executors  bus.Login // of the executors that are started here, and of those of scripts
}

// openServers reads what lets this controller in, and its executors.
func (f *controllerFlags) openServers() (*servers, error) {
	controller, err := f.servers.credentials(bus.Controller)
	if err != nil {
		return nil, err
	}
	s := &servers{controller: controller, executors: controller.Login}
	if f.executors != "" {
		if s.executors, err = bus.ReadLogin(f.executors); err != nil {
			return nil, fmt.Errorf("--nats-executors: %w", err)
		}
	}
	return s, nil
}

// URL lists the servers.
func (s *servers) URL() string { return s.controller.URL }

// Credentials are those of who uses the state folder: for an executor with the login of executors, for an administrator
// with that of the controller.
func (s *servers) Credentials(user string) bus.Credentials {
	c := s.controller
	c.User = user
	if name, person, ok := bus.UserName(user); ok && !person && name != "" {
		c.Login = s.executors
	}
	return c
}

// Connect connects as the controller.
func (s *servers) Connect(ctx context.Context, o bus.ConnOptions) (*bus.Conn, error) {
	return bus.Connect(ctx, s.controller, o)
}

// Trouble is for others to see, who run the servers.
func (*servers) Trouble() string { return "" }
func (*servers) Full() string    { return "" }

// Close leaves the servers alone.
func (*servers) Close() {}
