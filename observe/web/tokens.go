package web

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Access is what a request may do; each one includes those before it.
type Access int

const (
	Open  Access = iota // what everyone may who reaches the address
	View                // look
	Steer               // change something, as the administrator
)

// FileName is the name of the file in a state folder that keeps the [Kept].
const FileName = "http.json"

// Kept is what stays over a restart: the address and the tokens.
type Kept struct {
	Address string `json:"address"` // host:port that was listened at last, the host as it was given; "": none yet
	View    string `json:"view"`    // the token for looking
	Steer   string `json:"steer"`   // the token for looking and changing
}

// Read reads what a server has kept in a folder. Its errors are those of reading a file.
func Read(dir string) (Kept, error) {
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		return Kept{}, err
	}
	var k Kept
	if err := json.Unmarshal(data, &k); err != nil || k.View == "" || k.Steer == "" {
		return Kept{}, fmt.Errorf("%s is damaged: remove it, and the controller makes another with new tokens", path)
	}
	return k, nil
}

// openKept reads what is kept in a folder, or makes it.
func openKept(dir string) (Kept, error) {
	k, err := Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Kept{View: rand.Text(), Steer: rand.Text()}, nil
	}
	return k, err
}

// store keeps it in a folder, where nobody but its owner can read it.
func (k Kept) store(dir string) error {
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// URL is where a browser finds the page, with the token for an access: at this machine where it is served at all of its
// addresses.
func (k Kept) URL(a Access) string {
	u := url.URL{Scheme: "http", Host: k.Address, Path: "/"}
	if host, port, err := net.SplitHostPort(k.Address); err == nil {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			u.Host = net.JoinHostPort("localhost", port)
		}
	}
	switch a {
	case View:
		u.RawQuery = url.Values{"token": {k.View}}.Encode()
	case Steer:
		u.RawQuery = url.Values{"token": {k.Steer}}.Encode()
	}
	return u.String()
}

// access is what a token gives.
func (k Kept) access(token string) Access {
	a := Open
	for _, known := range [...]struct {
		token string
		gives Access
	}{{k.View, View}, {k.Steer, Steer}} {
		if subtle.ConstantTimeCompare([]byte(token), []byte(known.token)) == 1 {
			a = known.gives
		}
	}
	return a
}

// shown is the token that a request shows, and whether it does so in its URL; "": none.
func shown(r *http.Request, cookie string) (token string, inURL bool) {
	if t := r.URL.Query().Get("token"); t != "" {
		return t, true
	}
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return t, false
	}
	if c, err := r.Cookie(cookie); err == nil {
		return c.Value, false
	}
	return "", false
}
