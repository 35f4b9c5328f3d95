package bus

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Login is how a user shows a NATS of others who it is. The zero value: in no way.
type Login struct {
	User     string `json:"user,omitzero"` // with a password
	Password string `json:"password,omitzero"`
	Creds    string `json:"creds,omitzero"` // the text of a .creds file: a JWT and the seed of its key
	NKey     string `json:"nkey,omitzero"`  // the seed of a user's key
}

// ReadLogin reads a file with a login: a .creds file, the seed of an nkey, or a line USER:PASSWORD. One that others can
// read is refused.
func ReadLogin(name string) (Login, error) {
	text, err := readPrivate(name)
	if err != nil {
		return Login{}, fmt.Errorf("read login: %w", err)
	}
	l, err := parseLogin(string(text))
	if err != nil {
		return Login{}, fmt.Errorf("read login: %s: %w", name, err)
	}
	return l, nil
}

// parseLogin reads the text of a login. It names nothing of the text in an error.
func parseLogin(text string) (Login, error) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "-----BEGIN NATS USER JWT-----") {
		if _, err := nkeys.ParseDecoratedJWT([]byte(text)); err != nil {
			return Login{}, fmt.Errorf("its JWT: %w", err)
		}
		if _, err := nkeys.ParseDecoratedUserNKey([]byte(text)); err != nil {
			return Login{}, fmt.Errorf("the seed after its JWT: %w", err)
		}
		return Login{Creds: text}, nil
	}
	if key, err := nkeys.FromSeed([]byte(text)); err == nil {
		if public, err := key.PublicKey(); err != nil || !nkeys.IsValidPublicUserKey(public) {
			return Login{}, errors.New("it is the seed of no user's key")
		}
		return Login{NKey: text}, nil
	}
	user, password, ok := strings.Cut(text, ":")
	if !ok || user == "" || password == "" || strings.ContainsAny(text, "\r\n\x00") {
		return Login{}, errors.New("it is no .creds file, no seed of an nkey and no line USER:PASSWORD")
	}
	return Login{User: user, Password: password}, nil
}

// options are those of a connection with a login.
func (l Login) options() []nats.Option {
	switch {
	case l.Creds != "":
		return []nats.Option{nats.UserCredentialBytes([]byte(l.Creds))}
	case l.NKey != "":
		return []nats.Option{func(o *nats.Options) error {
			key, err := nkeys.FromSeed([]byte(l.NKey))
			if err != nil {
				return err
			}
			public, err := key.PublicKey()
			if err != nil {
				return err
			}
			return nats.Nkey(public, key.Sign)(o)
		}}
	case l.User != "":
		return []nats.Option{nats.UserInfo(l.User, l.Password)}
	}
	return nil
}
