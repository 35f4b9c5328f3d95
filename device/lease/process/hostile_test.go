package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"tensile/device/lease"
)

// hostileLine is a line that no client sends: bytes, or a message with numbers and names that make no sense.
func hostileLine(r *rand.Rand) string {
	number := func() int64 {
		return [...]int64{math.MinInt64, -1, 0, 1, 2, 5, lease.MaxPages, lease.MaxPages + 1, math.MaxInt64}[r.IntN(9)]
	}
	job := func() string { return [...]string{"", "a", "b", "@", strings.Repeat("x", 1000)}[r.IntN(5)] }
	flag := func() bool { return r.IntN(2) == 0 }
	one := func() string {
		switch r.IntN(5) {
		case 0:
			return fmt.Sprintf(`"join":{"Job":%q,"Ask":%d,"Base":%d,"Peak":%d,"Weight":%d}`, job(), number(), number(),
				number(), number())
		case 1:
			return fmt.Sprintf(`"want":{"Job":%q,"Ask":%d,"First":%t,"Last":%t,"Rest":%d,"Hold":%d}`, job(), number(),
				flag(), flag(), number(), number())
		case 2:
			return fmt.Sprintf(`"passed":{"Job":%q,"Seen":%d,"Hold":%d}`, job(), number(), number())
		case 3:
			return fmt.Sprintf(`"leave":{"Job":%q}`, job())
		}
		return ""
	}
	switch r.IntN(8) {
	case 0:
		b := make([]byte, r.IntN(50))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return string(b)
	case 1:
		return [...]string{"null", "[]", "{}", `{"told":null}`, `{"hello":{}}`, `{"capacity":{"Pages":-1}}`,
			`{"capacity":{"Pages":1e30}}`, `{"told":{"join":{}}}`}[r.IntN(8)]
	case 2:
		return fmt.Sprintf(`{"capacity":{"Pages":%d,"Number":%d}}`, number(), min(number(), 0))
	case 3:
		return `{"told":{` + one() + "," + one() + "}}"
	}
	return `{"told":{` + one() + "}}"
}

// hostileHello is one whose jobs make no sense.
func hostileHello(r *rand.Rand, client string) string {
	number := func() int64 { return [...]int64{-1, 0, 1, 5, lease.MaxPages + 1, math.MaxInt64}[r.IntN(6)] }
	var jobs []string
	for range r.IntN(4) {
		jobs = append(jobs, fmt.Sprintf(`{"Job":"a","Ask":%d,"Base":%d,"Peak":%d,"Hold":%d,"Seniority":%d,"Rest":%d,`+
			`"joined":%t}`, number(), number(), number(), number(), number(), number(), r.IntN(2) == 0))
	}
	return fmt.Sprintf(`{"hello":{"version":%d,"client":%q,"jobs":[%s]}}`, version, client, strings.Join(jobs, ","))
}

// Whatever comes over the socket, the lease's process lives, and those that make sense get their grants.
func TestHostile(t *testing.T) {
	name := t.TempDir() // which nobody else has
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	answers := make(chan lease.Output, 1)
	c := client(t, Options{Name: name, Answer: func(out lease.Output) { answers <- out }})
	c.options.Start = func() error {
		go func() { ended <- serve(ctx, name, ServeOptions{}) }()
		return nil
	}
	go func() { ended <- c.Run(ctx) }()
	c.Step(lease.Input{Capacity: &lease.Capacity{Pages: 10, Number: 7}})
	c.Step(lease.Input{Join: &lease.Join{Job: "a", Ask: 1, Base: 1, Peak: 10}})
	if out := <-answers; out.Kind != lease.Grant {
		t.Fatalf("the Join is answered by %v", out)
	}
	r := rand.New(rand.NewPCG(1, 17))
	for n := range 60 {
		conn, err := net.DialUnix("unix", nil, address(name, ""))
		must(t, err)
		var b strings.Builder
		if n%6 > 0 {
			who := fmt.Sprint(n%4, "xH")
			if n%6 == 1 {
				who = [...]string{"", "../mine", "1024xH", strings.Repeat("x", 300), "01xH"}[n/6%5]
			}
			b.WriteString(hostileHello(r, who) + "\n")
		}
		for range 40 {
			b.WriteString(hostileLine(r) + "\n")
		}
		if n == 59 {
			b.WriteString(strings.Repeat("x", 2*maxLine))
		}
		conn.Write([]byte(b.String())) // the lease may end the connection before it has read all
		conn.CloseWrite()
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			var a answer
			if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
				t.Errorf("the lease says %q: %v", lines.Text(), err)
			}
		}
		conn.Close()
	}
	for ask := int64(2); ask < 4; ask++ {
		c.Step(lease.Input{Want: &lease.Want{Job: "a", Ask: ask, First: ask == 2, Last: ask == 3, Rest: 10, Hold: 10}})
		if out := <-answers; out.Kind != lease.Grant || out.Ask != ask {
			t.Fatalf("a Want is answered by %v", out)
		}
	}
	cancel()
	must(t, <-ended)
	must(t, <-ended)
}

// A client whose jobs share by a method that the lease does not know hears of it, and does not wait for ever.
func TestUnknownMethod(t *testing.T) {
	name := t.TempDir() // which nobody else has
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	c := client(t, Options{Name: name, Answer: func(lease.Output) {}})
	c.options.Start = func() error {
		go func() { ended <- serve(ctx, name, ServeOptions{}) }()
		return nil
	}
	c.Step(lease.Input{Capacity: &lease.Capacity{Pages: 10, Number: 7, Method: "guess"}})
	if err := c.Run(ctx); err == nil || !strings.Contains(err.Error(), `the lease does not know the method "guess"`) {
		t.Errorf("the client ends with %v", err)
	}
	cancel()
	must(t, <-ended)
}
