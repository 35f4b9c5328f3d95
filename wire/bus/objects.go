package bus

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"tensile/wire"
)

const (
	chunkBytes = 1 << 20        // of an object that is stored here; other clients may use another size
	maxObject  = wire.MaxLayout // bytes, which Load has to hold
)

// bucket is a NATS object store. Its stream holds, per object, one message with the object's [jetstream.ObjectInfo] and
// the chunks of its data, under a subject that is made for each Store. A Store writes the chunks first, then the info,
// and then removes the chunks of the object before: so there is always one whole object to be read, the old or the new.
type bucket struct{ name string }

// newBucket returns the object store for a bucket of package wire. The name of a stream is a folder's, so a long one is
// cut and gets a digest of the whole.
func newBucket(name string) (bucket, error) {
	if !bucketName.MatchString(name) {
		return bucket{}, fmt.Errorf("there is no bucket %q: buckets are named by package wire", name)
	}
	const limit = 200
	if len(name) > limit {
		sum := sha256.Sum256([]byte(name))
		name = name[:limit-33] + "-" + hex.EncodeToString(sum[:16])
	}
	return bucket{name}, nil
}

// bucketName are the names that NATS takes.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (b bucket) stream() string { return "OBJ_" + b.name }

// info is the place of an object's info.
func (b bucket) info(object string) place {
	return place{b.stream(), "$O." + b.name + ".M." + base64.URLEncoding.EncodeToString([]byte(object)), true}
}

// chunks is the place of an object's chunks.
func (b bucket) chunks(id string) place {
	return place{b.stream(), "$O." + b.name + ".C." + id, false}
}

// config is that of the bucket's stream, as NATS clients make it. One that is full refuses more.
func (b bucket) config() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: b.stream(), Subjects: []string{"$O." + b.name + ".C.>", "$O." + b.name + ".M.>"}, MaxBytes: 4 * gib,
		Discard: jetstream.DiscardNew, AllowRollup: true, AllowDirect: true,
	}
}

// Store keeps an object, instead of the one of that name that there may be.
func (c *Conn) Store(ctx context.Context, bucket, name string, data []byte) error {
	if err := c.storeObject(ctx, bucket, name, data); err != nil {
		return fmt.Errorf("store %s in %s: %w", name, bucket, err)
	}
	return nil
}

func (c *Conn) storeObject(ctx context.Context, in, name string, data []byte) error {
	b, err := newBucket(in)
	if err != nil {
		return err
	}
	if name == "" {
		return errors.New("an object has to have a name")
	}
	if len(data) > maxObject {
		return fmt.Errorf("%d bytes are over the limit of %d for an object", len(data), maxObject)
	}
	old, _ := c.objectInfo(ctx, b, name) // an object that cannot be read leaves no chunks to remove
	info := jetstream.ObjectInfo{Bucket: b.name, NUID: nuid.Next(), Size: uint64(len(data))}
	info.Name, info.Opts = name, &jetstream.ObjectMetaOptions{ChunkSize: chunkBytes}
	info.Chunks = uint32((len(data) + chunkBytes - 1) / chunkBytes)
	sum := sha256.New()
	sum.Write(data)
	info.Digest = jetstream.GetObjectDigestValue(sum)
	if err := c.storeParts(ctx, b, info, data); err != nil {
		_ = c.purge(ctx, b.chunks(info.NUID)) // what cannot be removed takes room, and no one reads it
		return err
	}
	if old.NUID == "" {
		return nil
	}
	return c.purge(ctx, b.chunks(old.NUID))
}

// storeParts stores the chunks of an object, then its info.
func (c *Conn) storeParts(ctx context.Context, b bucket, info jetstream.ObjectInfo, data []byte) error {
	for rest := data; len(rest) > 0; {
		part := rest[:min(chunkBytes, len(rest))]
		rest = rest[len(part):]
		if err := c.storeIn(ctx, b, &nats.Msg{Subject: b.chunks(info.NUID).subject, Data: part}); err != nil {
			return err
		}
	}
	text, err := json.Marshal(info)
	if err != nil {
		panic(fmt.Sprintf("bus: the info of an object cannot be written as JSON: %v", err))
	}
	return c.storeIn(ctx, b, &nats.Msg{Subject: b.info(info.Name).subject, Header: replaceHeaders(), Data: text})
}

// replaceHeaders returns the headers of a message that replaces all others of its subject.
func replaceHeaders() nats.Header {
	return nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}
}

// storeIn stores a message in a bucket; a controller makes the bucket first if there is none.
func (c *Conn) storeIn(ctx context.Context, b bucket, m *nats.Msg) error {
	if c.credentials.External && c.credentials.User == Controller {
		return c.storeMade(ctx, b, m)
	}
	err := c.store(ctx, b.stream(), m)
	if c.credentials.User != Controller || !errors.Is(err, errNoStream) {
		return err
	}
	js, err := jetstream.New(c.nats)
	if err != nil {
		return err
	}
	if _, err := js.CreateOrUpdateStream(ctx, b.config()); err != nil {
		return fmt.Errorf("make stream %s: %w", b.stream(), err)
	}
	return c.store(ctx, b.stream(), m)
}

// Load returns an object, or an error that is [wire.ErrNotFound].
func (c *Conn) Load(ctx context.Context, bucket, name string) ([]byte, error) {
	data, err := c.loadObject(ctx, bucket, name)
	if err != nil {
		return nil, fmt.Errorf("load %s of %s: %w", name, bucket, err)
	}
	return data, nil
}

func (c *Conn) loadObject(ctx context.Context, in, name string) ([]byte, error) {
	b, err := newBucket(in)
	if err != nil {
		return nil, err
	}
	before := ""
	for {
		info, err := c.objectInfo(ctx, b, name)
		if err != nil {
			return nil, err
		}
		data, err := c.loadParts(ctx, b, info)
		if !isNotFound(err) {
			return data, err
		}
		if info.NUID == before {
			return nil, errors.New("a part is missing: store it again")
		}
		before = info.NUID // it was replaced in between, perhaps: have the new one
	}
}

// objectInfo returns what is kept of an object beside its data, or ErrNotFound. Another program may have written it, so
// nothing in it is trusted.
func (c *Conn) objectInfo(ctx context.Context, b bucket, name string) (info jetstream.ObjectInfo, err error) {
	m, err := c.newestMessage(ctx, b.info(name))
	if errors.Is(err, errNoStream) && b.name != wire.Graphs {
		err = wire.ErrNotFound // a bucket is made with its first object
	}
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(m.data, &info); err != nil {
		return jetstream.ObjectInfo{}, fmt.Errorf("its info is damaged (%w): store it again", err)
	}
	switch {
	case info.Deleted:
		return jetstream.ObjectInfo{}, wire.ErrNotFound
	case info.Opts != nil && info.Opts.Link != nil:
		return jetstream.ObjectInfo{}, errors.New("it is a link to another object: store the object itself")
	case info.Size > maxObject:
		return jetstream.ObjectInfo{}, fmt.Errorf("%d bytes are over the limit of %d for an object", info.Size,
			maxObject)
	case info.NUID == "" || strings.ContainsAny(info.NUID, ".*> \t\r\n") || uint64(info.Chunks) > info.Size:
		return jetstream.ObjectInfo{}, errors.New("its info is damaged: store it again")
	}
	return info, nil
}

// loadParts returns the data of an object, or ErrNotFound if a chunk is missing.
func (c *Conn) loadParts(ctx context.Context, b bucket, info jetstream.ObjectInfo) ([]byte, error) {
	data, next := make([]byte, 0, info.Size), uint64(1)
	for range info.Chunks {
		m, err := c.nextMessage(ctx, b.chunks(info.NUID), next)
		if err != nil {
			return nil, err
		}
		next = m.sequence + 1
		if data = append(data, m.data...); uint64(len(data)) > info.Size {
			break
		}
	}
	want, err := jetstream.DecodeObjectDigest(info.Digest)
	if sum := sha256.Sum256(data); err != nil || string(want) != string(sum[:]) || uint64(len(data)) != info.Size {
		return nil, errors.New("it is damaged: store it again")
	}
	return data, nil
}

// Remove removes an object, or with name "" all of the bucket; one that is not there is no error.
func (c *Conn) Remove(ctx context.Context, bucket, name string) error {
	if err := c.removeObject(ctx, bucket, name); err != nil {
		return fmt.Errorf("remove %s of %s: %w", name, bucket, err)
	}
	return nil
}

func (c *Conn) removeObject(ctx context.Context, in, name string) error {
	b, err := newBucket(in)
	if err != nil {
		return err
	}
	if name == "" {
		c.mu.Lock()
		delete(c.made, b.stream())
		c.mu.Unlock()
		return c.manageStream(ctx, "DELETE", b.stream(), nil)
	}
	info, _ := c.objectInfo(ctx, b, name) // an object that cannot be read is removed all the same
	if err := c.purge(ctx, b.info(name)); err != nil || info.NUID == "" {
		return err
	}
	return c.purge(ctx, b.chunks(info.NUID))
}

// purge removes all that is at a place.
func (c *Conn) purge(ctx context.Context, p place) error {
	return c.manageStream(ctx, "PURGE", p.stream, fmt.Appendf(nil, `{"filter":%q}`, p.subject))
}

// manageStream sends a request about a stream, which only a controller may do. It is no error if there is no such
// stream.
func (c *Conn) manageStream(ctx context.Context, what, stream string, request []byte) error {
	if c.fenced() { // such a request takes no condition
		if err := c.deposed(ctx, fencedFirst[0]); err != nil {
			return err
		}
	}
	m := &nats.Msg{Subject: "$JS.API.STREAM." + what + "." + stream, Data: request}
	if _, err := c.requestWithRetry(ctx, m, c.acknowledged); !errors.Is(err, errNoStream) {
		return err
	}
	return nil
}
