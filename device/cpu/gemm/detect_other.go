//go:build !amd64

package gemm

// wide says that there is assembly: there is none, and every tile is the plain one.
var wide = false
