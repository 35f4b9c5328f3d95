package reduce

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"tensile/wire"
)

var loopback = netip.MustParseAddr("127.0.0.1")

func place(number, replicas int) Place {
	return Place{Number: number, Replicas: replicas, Network: "n"}
}

// open opens places of one process, and introduces nobody.
func open(t testing.TB, places ...Place) (lines []*Line, meetings []*wire.Meeting) {
	t.Helper()
	for _, p := range places {
		l, m, err := Open(loopback, p)
		if err != nil {
			t.Fatal(err)
		}
		if (m == nil) != (p.Number == p.Replicas-1) {
			t.Fatalf("replica %d of %d listens at %v", p.Number, p.Replicas, m)
		}
		t.Cleanup(l.Close)
		lines, meetings = append(lines, l), append(meetings, m)
	}
	return lines, meetings
}

func checkReduces(t *testing.T, lines []*Line) {
	t.Helper()
	g := gradients(rand.New(rand.NewPCG(2, 2)), len(lines), 3*chunk+1)
	want := meanOf(g)
	for r, err := range reduceAll(t.Context(), lines, [][][]float32{g}) {
		if err != nil {
			t.Fatal(err)
		}
		if !sameBits(g[r], want) {
			t.Errorf("replica %d has other bits", r)
		}
	}
}

// Replicas of one host meet without a network, and have the same mean. One that ends is noticed.
func TestOpenLocally(t *testing.T) {
	first, meeting, err := Open(netip.Addr{}, place(0, 2))
	if err != nil {
		t.Fatal(err)
	}
	last, _, err := Open(netip.Addr{}, place(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(last.Close)
	last.Join(*meeting)
	checkReduces(t, []*Line{first, last})
	first.Close()
	g := gradients(rand.New(rand.NewPCG(2, 2)), 1, 1)
	if err := reduceAll(t.Context(), []*Line{last}, [][][]float32{g})[0]; err == nil {
		t.Error("nobody has noticed that the other replica has ended")
	}
}

// Replicas meet, whoever else connects, says nothing or nonsense, and stays; and also where one was first told where a
// replica listened that has ended.
func TestOpen(t *testing.T) {
	lines, meetings := open(t, place(0, 4), place(1, 4), place(2, 4), place(3, 4))
	ended := *meetings[1]
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	ended.Address = l.Addr().String()
	lines[2].Join(ended)
	for _, m := range meetings[:3] {
		for _, says := range []string{"", "GET / HTTP/1.0\r\n\r\n"} {
			c, err := net.Dial("tcp", m.Address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, says); err != nil {
				t.Fatal(err)
			}
		}
	}
	for number := range 3 {
		lines[number+1].Join(*meetings[number])
	}
	checkReduces(t, lines)
	for range 3 {
		lines[1].Join(*meetings[0]) // which is of no use any more
	}
}

// dialed is a TLS connection to where a replica listens.
func dialed(t *testing.T, m *wire.Meeting) *tls.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", m.Address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Who does not know the key is not answered, and one who knows it and does not confirm is not taken for the neighbour.
func TestStrangers(t *testing.T) {
	lines, meetings := open(t, place(0, 2), place(1, 2))
	c := dialed(t, meetings[0])
	if version := c.ConnectionState().Version; version != tls.VersionTLS13 {
		t.Errorf("TLS version %x, want 1.3", version)
	}
	if _, err := c.Write(make([]byte, helloBytes)); err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(c); len(answer) > 0 {
		t.Errorf("a stranger is answered: %x", answer)
	}
	early := dialed(t, meetings[0])
	if _, err := early.Write(place(1, 2).newHello(meetings[0].Key, 1, purpose{}).bytes()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(early, make([]byte, helloBytes)); err != nil {
		t.Fatal(err)
	}
	lines[1].Join(*meetings[0])
	checkReduces(t, lines)
}

// However many connect and say nothing, the next replica is heard.
func TestManyStrangers(t *testing.T) {
	lines, meetings := open(t, place(0, 2), place(1, 2))
	for range 4 * strangers {
		c, err := net.Dial("tcp", meetings[0].Address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	lines[1].Join(*meetings[0])
	checkReduces(t, lines)
}

// A replica speaks to none that shows another certificate than it was told of, and goes on when it is told of the right
// one.
func TestOtherCertificate(t *testing.T) {
	lines, meetings := open(t, place(0, 2), place(1, 2))
	other := *meetings[0]
	other.Certificate = strings.Repeat("0", 64)
	if _, err := place(1, 2).try(t.Context(), other); err == nil || !strings.Contains(err.Error(),
		"another certificate") {
		t.Errorf("%v", err)
	}
	lines[1].Join(other)
	lines[1].Join(*meetings[0])
	checkReduces(t, lines)
}

// Replicas that were not begun alike refuse each other, and that is no lost connection.
func TestOpenDiffers(t *testing.T) {
	for name, change := range map[string]func(p *Place){
		"network":   func(p *Place) { p.Network = "other" },
		"iteration": func(p *Place) { p.Begin = 3 },
		"replicas":  func(p *Place) { p.Replicas = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			b := place(1, 2)
			change(&b)
			lines, meetings := open(t, place(0, 2), b)
			lines[1].Join(*meetings[0])
			errs := reduceAll(t.Context(), lines, [][][]float32{make([][]float32, 2)})
			for r, err := range errs {
				want := fmt.Sprintf("replica %d trains another network, begins at another iteration", 1-r)
				if err == nil || !strings.Contains(err.Error(), want) || errors.As(err, new(*LostError)) {
					t.Errorf("replica %d: %v, want %q", r, err, want)
				}
			}
		})
	}
}

// When a replica leaves, with or without a mean under way, the others hear that they lost it.
func TestLost(t *testing.T) {
	for _, begun := range []bool{false, true} {
		lines, meetings := open(t, place(0, 3), place(1, 3), place(2, 3))
		lines[1].Join(*meetings[0])
		lines[2].Join(*meetings[1])
		if begun {
			checkReduces(t, lines)
		}
		var waits sync.WaitGroup
		for _, r := range []int{0, 2} {
			waits.Go(func() {
				err := lines[r].Mean(t.Context(), 1, "a", make([]float32, 3*chunk))
				if lost, ok := errors.AsType[*LostError](err); begun && (!ok || lost.Replica != 1) || err == nil {
					t.Errorf("replica %d: %v", r, err)
				}
				lines[r].Close()
			})
		}
		if lines[1].Close(); !begun {
			lines[0].Close() // nobody says that the one it waits for will not come
			lines[2].Close()
		}
		waits.Wait()
	}
}

// A replica that waits for others ends its wait when it is told to.
func TestOpenAlone(t *testing.T) {
	for _, number := range []int{0, 1, 2} {
		lines, _ := open(t, place(number, 3))
		ctx, cancel := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		waits.Go(func() {
			if err := lines[0].Mean(ctx, 0, "a", []float32{1}); err == nil {
				t.Errorf("replica %d has a mean without the others", number)
			}
		})
		cancel()
		waits.Wait()
	}
	if _, _, err := Open(netip.MustParseAddr("192.0.2.1"), place(0, 2)); err == nil || // of no host
		!strings.HasPrefix(err.Error(), "replica 0 of 2 cannot listen for the next one: ") {
		t.Errorf("%v", err)
	}
}
