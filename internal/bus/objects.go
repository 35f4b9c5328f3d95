package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"tensile/wire"
)

const (
	chunkBytes = 1 << 20
	maxObject  = wire.MaxLayout // bytes, which Load has to hold
)

// manifest is what stands at the place of an object. Its bytes stand in chunks below that, under their digest, so that
// there is always one whole object to be read, the old one or the new.
type manifest struct {
	Bytes  int    `json:"bytes"`
	Digest string `json:"sha256"`
}

// chunks is the number of chunks.
func (m manifest) chunks() int { return (m.Bytes + chunkBytes - 1) / chunkBytes }

// chunk is the place of a chunk of the object at p.
func (m manifest) chunk(p place, i int) place {
	p.subject += "." + m.Digest + "." + strconv.Itoa(i)
	return p
}

// Store keeps an object, instead of the one of that name that there may be.
func (c *Conn) Store(ctx context.Context, bucket, name string, data []byte) error {
	if err := c.storeObject(ctx, bucket, name, data); err != nil {
		return fmt.Errorf("store %s in %s: %w", name, bucket, err)
	}
	return nil
}

func (c *Conn) storeObject(ctx context.Context, bucket, name string, data []byte) error {
	p, err := objectPlace(bucket, name)
	if err != nil {
		return err
	}
	if len(data) > maxObject {
		return fmt.Errorf("%d bytes are over the limit of %d for an object", len(data), maxObject)
	}
	sum := sha256.Sum256(data)
	m := manifest{Bytes: len(data), Digest: hex.EncodeToString(sum[:])}
	for i := range m.chunks() {
		part := data[i*chunkBytes : min((i+1)*chunkBytes, len(data))]
		if err := c.store(ctx, &nats.Msg{Subject: m.chunk(p, i).subject, Data: part}); err != nil {
			return err
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("bus: manifest cannot be written as JSON: %v", err))
	}
	old, _ := c.manifest(ctx, p) // one that cannot be read leaves nothing to purge
	if err := c.store(ctx, &nats.Msg{Subject: p.subject, Data: text}); err != nil {
		return err
	}
	if old.Digest == "" || old.Digest == m.Digest || c.credentials.User != Controller {
		return nil // there is nothing to purge, or no right to
	}
	p.subject += "." + old.Digest + ".>"
	return c.purge(ctx, p)
}

// Load returns an object, or an error that is [wire.ErrNotFound].
func (c *Conn) Load(ctx context.Context, bucket, name string) ([]byte, error) {
	data, err := c.loadObject(ctx, bucket, name)
	if err != nil {
		return nil, fmt.Errorf("load %s of %s: %w", name, bucket, err)
	}
	return data, nil
}

func (c *Conn) loadObject(ctx context.Context, bucket, name string) ([]byte, error) {
	p, err := objectPlace(bucket, name)
	if err != nil {
		return nil, err
	}
	var before manifest
	for {
		m, err := c.manifest(ctx, p)
		if err != nil {
			return nil, err
		}
		data, err := c.chunks(ctx, p, m)
		if !notFound(err) {
			return data, err
		}
		if m == before {
			return nil, fmt.Errorf("a part is missing: store it again")
		}
		before = m // it was replaced in between, perhaps: have the new one
	}
}

// manifest returns the manifest at a place. It is not to be trusted: a client can write those of graphs.
func (c *Conn) manifest(ctx context.Context, p place) (manifest, error) {
	var m manifest
	text, err := c.newest(ctx, p)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text.data, &m); err != nil {
		return m, fmt.Errorf("its manifest is damaged (%w): store it again", err)
	}
	if _, err := hex.DecodeString(m.Digest); err != nil || len(m.Digest) != 2*sha256.Size || m.Bytes < 0 || m.Bytes > maxObject {
		return m, errors.New("its manifest is damaged: store it again")
	}
	return m, nil
}

// chunks returns the bytes of an object.
func (c *Conn) chunks(ctx context.Context, p place, m manifest) ([]byte, error) {
	data := []byte{}
	for i := range m.chunks() {
		part, err := c.newest(ctx, m.chunk(p, i))
		if err != nil {
			return nil, err
		}
		data = append(data, part.data...)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != m.Digest {
		return nil, errors.New("it is damaged: store it again")
	}
	return data, nil
}

// Remove removes an object, or with name "" all of the bucket; one that is not there is no error.
func (c *Conn) Remove(ctx context.Context, bucket, name string) error {
	p, err := objectPlace(bucket, name)
	if err == nil && name != "" {
		err = c.purge(ctx, p)
	}
	if err == nil {
		p.subject += ".>"
		err = c.purge(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("remove %s of %s: %w", name, bucket, err)
	}
	return nil
}

// purge removes all that is at a place.
func (c *Conn) purge(ctx context.Context, p place) error {
	m, err := c.request(ctx, &nats.Msg{
		Subject: "$JS.API.STREAM.PURGE." + p.stream, Data: fmt.Appendf(nil, `{"filter":%q}`, p.subject),
	}, patience)
	if err != nil {
		return err
	}
	return c.acknowledged(m)
}
