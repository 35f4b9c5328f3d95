package wire

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"tensile/graph"
	"tensile/graph/text"
)

// Names of keys, subjects and objects. A job or executor is one token of them.

// OrdersKey is the key with the [Orders] of an executor.
func OrdersKey(executor string) string { return "orders." + token(executor) }

// StatusKey is the key with the [Status] of an executor; "*" for all of them.
func StatusKey(executor string) string { return "status." + token(executor) }

// RecordKey is the key with the [Record] of a job; "*" for all of them.
func RecordKey(job string) string { return "record." + token(job) }

// DeviceKey is the key with a [Device] that executors have brought; "*" for all of them.
func DeviceKey(name string) string { return "device." + token(name) }

// ReportSubject is where an executor publishes the [Report] of a job; "*" for all of them.
func ReportSubject(executor, job string) string {
	return "report." + token(executor) + "." + token(job)
}

// TraceSubject is where an executor tells the controller what a job does, a section of its program a message, where a
// [Trace] asks for it; "*" for all of them.
func TraceSubject(executor, job string) string { return "trace." + token(executor) + "." + token(job) }

// TracedSubject is where the controller hands that on to users.
func TracedSubject(executor, job string) string {
	return "traced." + token(executor) + "." + token(job)
}

// LogSubject is where the log of a job at an executor goes, a message a line; "*" for all of them.
func LogSubject(executor, job string) string { return "log." + token(executor) + "." + token(job) }

// ControlSubject is where a controller takes a [Request] and gives an [Answer]. The bus tells it who asks.
const ControlSubject = "control"

// LeaderKey is the key with the [Leadership] among controllers with one state.
const LeaderKey = "leader.controller"

// Graphs is the bucket with the graphs of the jobs that were submitted.
const Graphs = "graphs"

// Bucket is the bucket with the graphs and layouts that an executor may read.
func Bucket(executor string) string { return "x-" + token(executor) }

// GraphObject is the name of a graph in a bucket: its JSON form.
func GraphObject(digest graph.Digest) string { return "graph-" + string(digest) }

// RecordedObject is the name of the [Recorded] of a script's graph in the bucket of graphs.
func RecordedObject(digest graph.Digest) string { return "recorded-" + string(digest) }

// LayoutObject is the name of a job's [Layout] of an epoch in a bucket. Jobs of one name differ in their IDs.
func LayoutObject(job string, id, epoch int64) string {
	return fmt.Sprintf("layout-%s-%d-%d", token(job), id, epoch)
}

// ResultKey is the key under which an executor leaves the [Result] of an incarnation of the job with an ID.
func ResultKey(executor string, id, incarnation int64) string {
	return fmt.Sprintf("result.%s.%d-%d", token(executor), id, incarnation)
}

// ResultKeys is the pattern of all these of an executor.
func ResultKeys(executor string) string { return "result." + token(executor) + ".*" }

// Results is the bucket with the results of jobs that are over.
const Results = "results"

// ResultObject is the name of a job's [Result] in that bucket.
func ResultObject(job string, id int64) string { return fmt.Sprintf("result-%s-%d", token(job), id) }

// Token is the one token of a key or subject that stands for a name.
func Token(name string) string { return token(name) }

// NameOf is the name that a token stands for: the other way round than [Token].
func NameOf(token string) (name string, ok bool) {
	name, err := url.PathUnescape(strings.ReplaceAll(token, "_", "%"))
	return name, err == nil && name != "*" && Token(name) == token && CheckName(name) == nil
}

// Lessons is the bucket with what was learnt of devices.
const Lessons = "learnt"

// LearntObject is the name of the [Learnt] of a device in that bucket, by the device's identity.
func LearntObject(device string) string { return "learnt-" + token(device) }

// Administration is the bucket with what administrators have set.
const Administration = "settings"

// SettingsObject is the name of the [Settings] for a device in that bucket, by the device's identity.
func SettingsObject(device string) string { return "settings-" + token(device) }

// TenantsObject is the name of the [Tenants] in that bucket.
const TenantsObject = "tenants"

// token turns a name into one token of a key, which may stand in the name of a NATS bucket too: what is no letter,
// digit or "-" of ASCII becomes "_" and two hexadecimal digits for each byte.
func token(name string) string {
	if name == "*" {
		return name
	}
	var t strings.Builder
	for _, c := range []byte(name) {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
		if plain {
			t.WriteByte(c)
		} else {
			fmt.Fprintf(&t, "_%02x", c)
		}
	}
	return t.String()
}

// maxName is the length of the longest name, in bytes.
const maxName = 128

// CheckName reports whether jobs and executors may be called so: a name stands in lines and is a part of file names.
func CheckName(name string) error {
	strange := func(r rune) bool { return !strconv.IsPrint(r) || r == '/' || r == '\\' }
	switch {
	case name == "" || name == "*" || name == "." || name == "..":
		return fmt.Errorf("the name %q: %s", name, nameRule)
	case len(name) > maxName:
		return fmt.Errorf("the name %s has %d bytes: %s", quoted(name), len(name), nameRule)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, strange):
		return fmt.Errorf("the name %s: %s", quoted(name), nameRule)
	}
	return nil
}

// MaxDeviceName is the length of the longest name of a device, in bytes: it is a part of other names.
const MaxDeviceName = 64

// CheckDevice reports whether a device may be called so.
func CheckDevice(name string) error {
	if len(name) > MaxDeviceName {
		return fmt.Errorf("the name %s of a device has %d bytes, and %d at most", quoted(name), len(name),
			MaxDeviceName)
	}
	return CheckName(name)
}

const nameRule = "a name is 1 to 128 bytes of printable characters without slashes, and not *, . or .."

// quoted quotes a text for an error message and cuts it short.
func quoted(s string) string {
	short, cut := text.Clip(s, 40)
	if cut {
		return fmt.Sprintf("%q...", short)
	}
	return fmt.Sprintf("%q", short)
}

// Owned reports whether a name is of those that controllers give to the executors that they start.
func Owned(executor string) bool { return ownName.MatchString(executor) }

var ownName = regexp.MustCompile(`^x[0-9]+(\.[0-9]+)?$`)
