package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// version is the version of the messages: one with other meanings has another. A field that may be left out needs none.
const version = 1

const (
	MaxMessage = 8 << 20  // bytes of a message that goes over the bus
	MaxLayout  = 64 << 20 // bytes of a Layout, which is an object
)

// envelope is the form of every message.
type envelope struct {
	Version int             `json:"version"`
	Kind    string          `json:"kind"`
	Body    json.RawMessage `json:"body"`
	Number  int64           `json:"number,omitzero"` // the number of the write that stored it; see Numbered
}

// messages are the types of messages by their kinds.
var messages = func() map[string]reflect.Type {
	of := make(map[string]reflect.Type)
	for _, m := range []Message{Orders{}, Status{}, Result{}, Report{}, Layout{}, Request{}, Answer{}, Record{},
		Recorded{}, Learnt{}, Settings{}, Tenants{}, Leadership{}, Device{}} {
		of[m.kind()] = reflect.TypeOf(m)
	}
	return of
}()

// read reads the body of a message of a type.
func read(of reflect.Type, body json.RawMessage) (Message, error) {
	v := reflect.New(of)
	if err := json.Unmarshal(body, v.Interface()); err != nil {
		return nil, err
	}
	m := v.Elem().Interface().(Message)
	return m, Check(m)
}

// Encode returns the message as JSON in an envelope. A message that Decode would refuse for what it says is a bug of
// the caller, and panics; one that is too large is refused where it is sent or read.
func Encode(m Message) []byte {
	if err := Check(m); err != nil {
		panic(fmt.Sprintf("wire: encode %s: %v", m.kind(), err))
	}
	body, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("wire: encode %s: %v", m.kind(), err))
	}
	text, err := json.Marshal(envelope{Version: version, Kind: m.kind(), Body: body})
	if err != nil {
		panic(fmt.Sprintf("wire: encode %s: %v", m.kind(), err))
	}
	return text
}

// Numbered is what Encode has returned with a number above 0 in its envelope. Whoever stores values under one key
// numbers them, so that it can be told which of two is newer; a reader of the message passes over it.
func Numbered(message []byte, number int64) []byte {
	end := len(message) - 1 // before the last bracket
	return fmt.Appendf(message[:end:end], ",\"number\":%d}", number)
}

// NumberOf is the number of a message, 0 of one that has none. The error is Decode's.
func NumberOf(message []byte) (int64, error) {
	if _, err := Decode(message); err != nil {
		return 0, err
	}
	var e envelope
	if err := json.Unmarshal(message, &e); err != nil {
		return 0, err
	}
	if e.Number < 0 {
		return 0, fmt.Errorf("decode message: the number %d of its write is below 0", e.Number)
	}
	return e.Number, nil
}

// Decode reads a message, which has the type of Orders{}, not of a pointer. It refuses what no Encode has written,
// except for fields that it does not know.
func Decode(data []byte) (Message, error) {
	if len(data) > MaxLayout {
		return nil, tooLarge("a message", len(data), MaxLayout)
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("decode message: %w: it is no message of tensile", err)
	}
	of := messages[e.Kind]
	switch {
	case e.Version != version:
		return nil, fmt.Errorf("decode message: it is of version %d, this tensile knows version %d: "+
			"run the same release of controller, executors and command line", e.Version, version)
	case of == nil:
		return nil, fmt.Errorf("decode message: there is no kind %s of messages (there are %s): "+
			"run the same release of controller, executors and command line", quoted(e.Kind), kinds())
	case len(data) > MaxMessage && e.Kind != (Layout{}).kind():
		return nil, tooLarge(e.Kind, len(data), MaxMessage)
	case len(e.Body) == 0 || e.Body[0] != '{':
		return nil, fmt.Errorf("decode %s: it has no body", e.Kind)
	}
	m, err := read(of, e.Body)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", e.Kind, err)
	}
	return m, nil
}

// DecodeAs reads a message that is to be of one kind.
func DecodeAs[T Message](data []byte) (T, error) {
	var want T
	m, err := Decode(data)
	if err != nil {
		return want, err
	}
	got, ok := m.(T)
	if !ok {
		return want, fmt.Errorf("decode message: it is of kind %s, not %s", m.kind(), want.kind())
	}
	return got, nil
}

func tooLarge(what string, size, limit int) error {
	return fmt.Errorf("decode message: %s of %d bytes is over the limit of %d", what, size, limit)
}

func kinds() string {
	var names []string
	for kind := range messages {
		names = append(names, kind)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (Orders) kind() string     { return "orders" }
func (Status) kind() string     { return "status" }
func (Result) kind() string     { return "result" }
func (Report) kind() string     { return "report" }
func (Layout) kind() string     { return "layout" }
func (Request) kind() string    { return "request" }
func (Answer) kind() string     { return "answer" }
func (Record) kind() string     { return "record" }
func (Recorded) kind() string   { return "recorded" }
func (Learnt) kind() string     { return "learnt" }
func (Settings) kind() string   { return "settings" }
func (Tenants) kind() string    { return "tenants" }
func (Leadership) kind() string { return "leadership" }
