//go:build !amd64

package vector

// wide says that there is assembly: there is none, and every loop is the plain one.
var wide = false
