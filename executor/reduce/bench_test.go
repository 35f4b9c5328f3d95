package reduce

import (
	"fmt"
	"io"
	"net"
	"testing"

	_ "tensile/internal/long" // the flag -long
)

// BenchmarkMean measures the means of two replicas over the loopback interface, with and without TLS.
func BenchmarkMean(b *testing.B) {
	for _, transport := range []string{"tcp", "tls"} {
		for _, elements := range []int{1 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("transport=%s/elements=%d", transport, elements), func(b *testing.B) {
				lines := pair(b, transport)
				b.SetBytes(int64(4 * elements))
				data := [2][]float32{make([]float32, elements), make([]float32, elements)}
				other := make(chan error)
				go func() {
					var err error
					for i := 0; i < b.N && err == nil; i++ {
						err = lines[1].Mean(b.Context(), i, "g", data[1])
					}
					other <- err
				}()
				b.ResetTimer()
				for i := range b.N {
					if err := lines[0].Mean(b.Context(), i, "g", data[0]); err != nil {
						b.Fatal(err)
					}
				}
				if err := <-other; err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// pair returns the line of two replicas.
func pair(b *testing.B, transport string) [2]*Line {
	if transport == "tcp" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		ends := make(chan io.ReadWriteCloser, 1)
		go func() {
			c, _ := l.Accept()
			ends <- c
		}()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		lines := [2]*Line{New(0, 2, nil, <-ends), New(1, 2, c, nil)}
		b.Cleanup(lines[0].Close)
		b.Cleanup(lines[1].Close)
		return lines
	}
	lines, meetings := open(b, place(0, 2), place(1, 2))
	lines[1].Join(*meetings[0])
	return [2]*Line(lines)
}
