package bus

import (
	"fmt"
	"regexp"
	"strings"
)

// logger hands the lines of nats-server on that mean something to whoever runs the controller. Those about its normal course,
// and secrets in traces, go nowhere.
type logger struct{ to func(kind, line string) }

// origin is what stands before a line about a client, and what a client can make up at its end.
var origin = regexp.MustCompile(`^\S+ - cid:\d+( - "[^"]*")? - |, Subject .*$|\d+`)

// quiet are parts of lines that say what is no trouble, or is said in other words.
var quiet = []string{
	"Recovering stream state from index errored", // after a kill it is made anew from the messages themselves
	"] Stream state ",         // why, as a line before
	"no space left on device", // Server.Trouble says so
	"disk quota exceeded",
	"took too long", // of a busy machine
	"Readloop processing time",
}

func (l logger) say(level, format string, v []any) {
	line := fmt.Sprintf(format, v...)
	for _, part := range quiet {
		if strings.Contains(line, part) {
			return
		}
	}
	l.to("nats: "+origin.ReplaceAllString(line, ""), "nats: "+level+line)
}

func (l logger) Warnf(format string, v ...any)  { l.say("warning: ", format, v) }
func (l logger) Errorf(format string, v ...any) { l.say("", format, v) }
func (l logger) Fatalf(format string, v ...any) { l.say("fatal: ", format, v) }
func (logger) Noticef(string, ...any)           {}
func (logger) Debugf(string, ...any)            {}
func (logger) Tracef(string, ...any)            {}
