package bus

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"tensile/wire"
)

// directGet is the subject by which the messages of a stream are asked for, the stream's name behind it.
const directGet = "$JS.API.DIRECT.GET."

const (
	gib = 1 << 30

	maxLine  = 16 << 10 // bytes of a line in a log
	maxLines = 10_000   // of a log: older ones go
)

// streams are all that is kept. A stream that is full refuses more, but the logs forget the oldest lines.
var streams = []jetstream.StreamConfig{
	latest("KV_orders", "$KV.orders.>", gib),
	latest("KV_status", "$KV.status.>", gib),
	latest("KV_record", "$KV.record.>", gib),
	latest("OBJ_graphs", "obj.graphs.>", 4*gib),
	latest("OBJ_boxes", "box.>", 16*gib),
	{
		Name: "LOG", Subjects: []string{"log.*.*"}, AllowDirect: true, MaxMsgsPerSubject: maxLines, MaxMsgSize: maxLine + 1<<10,
		MaxBytes: gib, Discard: jetstream.DiscardOld, RePublish: again("log.>"),
	},
}

// latest is a stream that keeps the newest message of each subject.
func latest(name, subject string, bytes int64) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name: name, Subjects: []string{subject}, AllowDirect: true, MaxMsgsPerSubject: 1, MaxBytes: bytes,
		Discard: jetstream.DiscardNew,
	}
	if strings.HasPrefix(name, "KV_") {
		c.RePublish = again(subject)
	}
	return c
}

// again has a stream say what it has stored under a subject that it does not store.
func again(subject string) *jetstream.RePublish {
	return &jetstream.RePublish{Source: subject, Destination: "now." + subject}
}

// storage is what all streams may take together.
func storage() (sum int64) {
	for _, s := range streams {
		sum += s.MaxBytes
	}
	return sum
}

// prepare makes the streams that are not there.
func prepare(ctx context.Context, js jetstream.JetStream) error {
	for _, s := range streams {
		if _, err := js.CreateOrUpdateStream(ctx, s); err != nil {
			return fmt.Errorf("make stream %s: %w", s.Name, err)
		}
	}
	return nil
}

// place is where something is kept: in a stream under a subject, which may have wildcards.
type place struct {
	stream, subject string
	latest          bool // the newest message of each subject alone is kept
}

// keyPlace is the place of a key such as "status.e1" or a pattern of keys.
func keyPlace(key string) (place, error) {
	bucket, name, _ := strings.Cut(key, ".")
	if name == "" || bucket != "orders" && bucket != "status" && bucket != "record" {
		return place{}, fmt.Errorf("there is no key %q: keys are made by OrdersKey, StatusKey and RecordKey of package wire", key)
	}
	return place{"KV_" + bucket, "$KV." + key, true}, nil
}

// logPlace is the place of a log or a pattern of logs.
func logPlace(log string) (place, error) {
	if !strings.HasPrefix(log, "log.") || strings.Count(log, ".") != 2 {
		return place{}, fmt.Errorf("there is no log %q: logs are made by LogSubject of package wire", log)
	}
	return place{"LOG", log, false}, nil
}

// objectPlace is the place of an object's manifest; that of the bucket's objects if name is "".
func objectPlace(bucket, name string) (place, error) {
	subject := bucket
	if name != "" {
		subject += "." + name
	}
	if bucket == "" || strings.Contains(bucket, ".") || strings.Contains(name, ".") {
		return place{}, fmt.Errorf("there is no object %q in bucket %q: both are made by package wire", name, bucket)
	}
	if bucket == wire.Graphs {
		return place{"OBJ_graphs", "obj." + subject, true}, nil
	}
	return place{"OBJ_boxes", "box." + subject, true}, nil
}
