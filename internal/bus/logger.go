package bus

import "fmt"

// logger hands the lines of nats-server on. Those about its normal course, and secrets in traces, go nowhere.
type logger struct{ to func(string) }

func (l logger) say(level, format string, v []any) {
	l.to("nats: " + level + fmt.Sprintf(format, v...))
}

func (l logger) Warnf(format string, v ...any)  { l.say("warning: ", format, v) }
func (l logger) Errorf(format string, v ...any) { l.say("", format, v) }
func (l logger) Fatalf(format string, v ...any) { l.say("fatal: ", format, v) }
func (logger) Noticef(string, ...any)           {}
func (logger) Debugf(string, ...any)            {}
func (logger) Tracef(string, ...any)            {}
