package bus

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"tensile/wire"
)

// Users of a server.
const (
	Controller = "controller" // everything
	// the administrator's command line: asks the controller, reads records, logs and objects
	Client = "client"
)

// Executor is the user for an executor: it reads its orders and its bucket, and writes its status, reports and logs.
func Executor(name string) string { return wire.Bucket(name) }

// secret is what the passwords of a server come from.
type secret []byte

const (
	secretFile  = "secret"
	secretBytes = 32
)

// openSecret reads the secret of a directory, and makes one if there is none.
func openSecret(dir string) (secret, error) {
	name := filepath.Join(dir, secretFile)
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
		return nil, fmt.Errorf("%s has %d bytes, not %d: restore it, or remove it and give out new credentials", name,
			len(s), secretBytes)
	}
	return s, nil
}

// Credentials are what a user needs to connect. Who has them is the user.
type Credentials struct {
	URL      string `json:"url"`
	User     string `json:"user,omitzero"`
	Password string `json:"password,omitzero"`
	CA       string `json:"ca,omitzero"` // PEM of who signed the server's certificate; "": those that the system trusts

	// External: URL lists external servers, separated by commas, which let in whoever has the login, and say what that
	// may. User is as whom it speaks, without a password.
	External bool  `json:"external,omitzero"`
	Login    Login `json:"login,omitzero"`
}

// WriteCredentials writes a file of mode 0600, instead of what there may be.
func WriteCredentials(name string, c Credentials) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("bus: credentials cannot be written as JSON: %v", err))
	}
	if err := writePrivate(name, append(text, '\n')); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}

// ReadCredentials reads a file of credentials. One that others can read is refused.
func ReadCredentials(name string) (Credentials, error) {
	text, err := readPrivate(name)
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials: %w", err)
	}
	var c Credentials
	if err := json.Unmarshal(text, &c); err != nil {
		return Credentials{}, fmt.Errorf("read credentials: %s: %w", name, err)
	}
	if c.URL == "" {
		return Credentials{}, fmt.Errorf("read credentials: %s has no url", name)
	}
	return c, nil
}

// readPrivate reads a file that nobody but its owner may read.
func readPrivate(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %#o, and others can read or write it: if nobody has, chmod 600 it", name,
			mode)
	}
	return os.ReadFile(name)
}

// writePrivate writes such a file whole or not at all. Its bytes are synced before it gets its name; the folder is not.
func writePrivate(name string, data []byte) error {
	f, err := renameio.NewPendingFile(name, renameio.WithTempDir(filepath.Dir(name)),
		renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Cleanup())
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return errors.Join(err, f.Cleanup())
	}
	return nil
}
