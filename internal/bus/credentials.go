package bus

import (
	"encoding/json"
	"fmt"
)

// Credentials are what a user needs to connect. Who has them is the user.
type Credentials struct {
	URL      string `json:"url"`
	User     string `json:"user,omitzero"`
	Password string `json:"password,omitzero"`
	CA       string `json:"ca,omitzero"` // PEM of who signed the server's certificate; "": those that the system trusts
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
