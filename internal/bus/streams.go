package bus

import (
	"context"
	"errors"
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

// streams are all that is kept beside the buckets of executors, which are made when something is stored in them. A stream
// that is full refuses more, but the logs forget the oldest lines.
var streams = []jetstream.StreamConfig{
	latest("KV_orders", "$KV.orders.>", gib),
	latest("KV_status", "$KV.status.>", gib),
	latest("KV_record", "$KV.record.>", gib),
	bucket{wire.Graphs}.config(),
	{
		Name: "LOG", Subjects: []string{"log.*.*"}, AllowDirect: true, MaxMsgsPerSubject: maxLines, MaxMsgSize: maxLine + 1<<10,
		MaxBytes: gib, Discard: jetstream.DiscardOld, RePublish: again("log.>"),
	},
}

// latest is a bucket of keys: a stream that keeps the newest message of each subject, and says again what it has stored.
func latest(name, subject string, bytes int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{subject}, AllowDirect: true, MaxMsgsPerSubject: 1, MaxBytes: bytes,
		Discard: jetstream.DiscardNew, RePublish: again(subject),
	}
}

// again has a stream say what it has stored under a subject that it does not store.
func again(subject string) *jetstream.RePublish {
	return &jetstream.RePublish{Source: subject, Destination: "now." + subject}
}

// prepare makes the streams that are not there.
func prepare(ctx context.Context, js jetstream.JetStream) error {
	if _, err := js.Stream(ctx, "OBJ_boxes"); err == nil {
		return errOldState
	}
	for _, s := range streams {
		if _, err := js.CreateOrUpdateStream(ctx, s); err != nil {
			return fmt.Errorf("make stream %s: %w", s.Name, err)
		}
	}
	return nil
}

// errOldState is returned for what a release has kept whose objects other programs could not read.
var errOldState = errors.New("it has the form of an earlier release: end the jobs with that release, or " +
	"start the controller with an empty state folder")

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
