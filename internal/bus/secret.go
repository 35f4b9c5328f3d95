package bus

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"tensile/wire"
)

// Users of a server.
const (
	Controller = "controller" // everything
	Client     = "client"     // a command line: asks the controller, stores graphs, reads records, logs and objects
)

// Executor is the user for an executor: it reads its orders and its bucket, and writes its status, reports and logs.
func Executor(name string) string { return wire.Bucket(name) }

// secret is what the passwords of a server come from.
type secret []byte

const secretBytes = 32

// openSecret reads the secret of a directory, and makes one if there is none.
func openSecret(dir string) (secret, error) {
	name := filepath.Join(dir, "secret")
	s, err := readPrivate(name)
	if errors.Is(err, fs.ErrNotExist) {
		s = make([]byte, secretBytes)
		rand.Read(s) // never fails
		err = writePrivate(name, s)
	}
	if err != nil {
		return nil, err
	}
	if len(s) != secretBytes {
		return nil, fmt.Errorf("%s has %d bytes, not %d: restore it, or remove it and give out new credentials", name, len(s), secretBytes)
	}
	return s, nil
}

// password returns the password of a user.
func (s secret) password(user string) string {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(user))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// knows reports whether a password is the user's, in a time that does not depend on how much of it is right.
func (s secret) knows(user, password string) bool {
	return hmac.Equal([]byte(s.password(user)), []byte(password))
}
