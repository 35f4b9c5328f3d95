// Package reduce takes means over the replicas of a data-parallel job, each of which may be a process of its own.
//
// The replicas stand in a line, in the order of their numbers, with a connection from each to the next ([Line]). A
// gradient goes through it in chunks: partial sums up, results down the same connections, at the same time.
//
//	replica 0        replica 1             replica 2
//	g0 ----- g0 ---> g0+g1 --- g0+g1 ---> (g0+g1+g2)/3
//	mean <-- mean -- mean <--- mean ------ mean
//
// Each element is the sum over replicas in the order of their numbers, every addition rounded to float32, divided by
// how many they are: graph.AllReduce. Which bytes arrive when, and how they are cut into chunks, changes no bit. Each
// connection carries a gradient once in each direction, where a ring carries 2(N-1)/N of it in one direction, and the
// chunks follow one another: a long gradient takes as long as its bytes over one connection.
//
// Each replica that has a next one listens for it ([Open]), and each that has one before it is told where that listens
// ([Line.Join]), by a wire.Meeting: an address, a key, and the digest of a certificate. Connections are TLS 1.3; who
// listens shows the certificate, who dials shows that it knows the key.
//
// A connection breaks when the process at its other side ends; then all calls of Mean end with a [LostError]. They do
// within some seconds when the host at the other side is gone: neighbours have a second connection, on which nothing is
// sent, and whose keep-alive probes each host answers for its processes. One that is slow, or stopped for a while, is
// waited for.
package reduce
