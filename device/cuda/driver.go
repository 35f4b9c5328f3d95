package cuda

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tensile/graph"
)

// Driver is what the device needs of CUDA's driver API. One goroutine calls it. A method that fails returns an *Error.
//
// What is put on a stream is carried out later, in the order of the stream. Streams know nothing of one another but by
// events: Wait makes what follows on a stream wait for the latest Record of an event, which must have been called
// before. Memory that a copy reads or writes on the host must be pinned (Pin) until the copy has ended.
type Driver interface {
	// Devices lists the devices of this machine in the driver's order. Open takes one of them for everything that
	// follows, up to Close, which gives back all that is left.
	Devices() ([]Properties, error)
	Open(device int) error
	Close() error

	// Enter prepares the calling thread, to which the caller has locked its goroutine, for the calls that follow.
	Enter() error

	Free() (free, total graph.Bytes, err error) // memory of the device
	Alloc(size graph.Bytes) (Address, error)    // at a multiple of 256
	Release(Address) error                      // of what Alloc returned

	// Addresses, of which each page (Properties.Page) has memory or has not. All addresses and sizes are multiples of a
	// page.
	ReserveAddresses(size graph.Bytes) (Address, error) // without memory
	ReleaseAddresses(a Address, size graph.Bytes) error // as they were reserved; none of them has memory
	CreateMemory(size graph.Bytes) (Memory, error)      // of any content
	ReleaseMemory(Memory) error                         // it stays where it is mapped, and ends when it is nowhere
	Map(a Address, size graph.Bytes, m Memory) error    // all of m
	Access(a Address, size graph.Bytes) error           // lets the device use what was mapped, by one Map or several
	Unmap(a Address, size graph.Bytes) error            // what one Map has mapped, and nothing on a stream uses yet

	Pin(memory []byte) error   // whole pages
	Unpin(memory []byte) error // of what was pinned, as a whole

	Load(ptx string) (Module, error) // the driver compiles it; the error holds its log
	Unload(Module) error
	Function(m Module, name string) (Function, error)

	NewStream() (Stream, error) // it does not wait for the default stream
	DestroyStream(Stream) error
	NewEvent() (Event, error) // that takes the time
	DestroyEvent(Event) error

	Launch(s Stream, l Launch) error
	CopyIn(s Stream, to Address, from []byte) error
	CopyOut(s Stream, to []byte, from Address) error
	Fill(s Stream, to Address, word uint32, words int) error // 32-bit words
	Record(s Stream, e Event) error
	Wait(s Stream, e Event) error

	Synchronize() error                        // until all streams are empty
	Ended(e Event) (bool, error)               // whether its latest Record has been reached
	Elapsed(a, b Event) (time.Duration, error) // both ended; exact to half a microsecond within a second

	// Now is the host's clock, or that of a driver with a time of its own.
	Now() time.Duration

	// Watch has Next return the token once when the event, recorded on the stream, has ended; until then the event is
	// neither recorded again nor destroyed. Events of one stream are watched, and end, in the order in which they were
	// recorded.
	Watch(s Stream, e Event, token uint64)

	// Run has another thread execute f, and Next return the token once when f has returned. reads and writes are the
	// pinned memory that f uses; a driver may check that nothing else uses it then.
	Run(f func(), reads, writes []byte, token uint64)

	// Next waits for one of those. It returns false when wake is signalled first or ctx is done, and an error when the
	// driver failed.
	Next(ctx context.Context, wake <-chan struct{}) (token uint64, ok bool, err error)
}

// The driver's handles; zero is none.
type (
	Address  uint64 // Address in device memory, in bytes.
	Memory   uint64 // memory of the device without an address
	Module   uint64
	Function uint64
	Stream   uint64
	Event    uint64
)

// Launch is one launch of a kernel.
type Launch struct {
	Function Function
	Op       string // The op of the kernel, for messages.
	Grid     [3]uint32
	Block    [3]uint32
	Args     []uint64 // each parameter is of eight bytes: an address, an integer, or the bits of a float64
}

// Properties describe a device.
type Properties struct {
	Name            string
	UUID            string // GPU-...; empty: the driver does not say
	Bus             string // PCI bus id: 00000000:65:00.0
	Major, Minor    int    // compute capability
	Processors      int    // multiprocessors
	Clock           int    // kHz
	MemoryClock     int    // kHz
	BusWidth        int    // Width of the memory bus in bits.
	CopyEngines     int
	Memory          graph.Bytes
	ThreadsPerBlock int
	Page            graph.Bytes // the unit in which memory is mapped; 0: it can not be
	Exclusive       bool        // one process at a time may open it
}

// MIG reports whether it is an instance of a GPU that is divided by MIG, which the driver's name for it says.
func (p Properties) MIG() bool { return strings.Contains(p.Name, " MIG ") }

// Code is the driver's number of an error.
type Code int

// The codes that the device knows; CUDA's documentation has them all.
const (
	InvalidValue     Code = 1
	OutOfMemory      Code = 2
	NotInitialized   Code = 3
	StubLibrary      Code = 34
	Unavailable      Code = 46 // the device, to this process
	NoDevice         Code = 100
	InvalidDevice    Code = 101
	InvalidContext   Code = 201
	NoBinaryForGPU   Code = 209
	InvalidPTX       Code = 218
	NoCompiler       Code = 221
	UnsupportedPTX   Code = 222
	OperatingSystem  Code = 304
	NotFound         Code = 500
	NotReady         Code = 600
	IllegalAddress   Code = 700
	LaunchFailed     Code = 719
	SystemNotReady   Code = 802
	Mismatch         Code = 803 // of the driver's parts
	NotCompatible    Code = 804
	StreamCaptureBad Code = 900
	Unknown          Code = 999
)

// Error is a call of the driver that failed.
type Error struct {
	Call string // cuMemAlloc
	Code Code
	Text string // The driver's description of the error.
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s (CUDA error %d)", e.Call, e.Text, e.Code) }
