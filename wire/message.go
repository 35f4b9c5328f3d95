package wire

// Message is one of Orders, Status, Result, Report, Layout, Request, Answer, Record, Recorded, Learnt, Settings,
// Tenants, Leadership and Device.
type Message interface {
	kind() string
	check() error
}
