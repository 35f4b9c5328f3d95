//go:build !amd64

package vector

// Without assembly every loop is the plain one, and none of what follows is called.

var wide = false

func expAVX2(y *float32, x *float32, n int)                    { panic("no assembly") }
func sigmoidAVX2(y *float32, x *float32, n int)                { panic("no assembly") }
func tanhAVX2(y *float32, x *float32, n int)                   { panic("no assembly") }
func erfAVX2(y *float32, x *float32, n int)                    { panic("no assembly") }
func geluAVX2(y *float32, x *float32, n int)                   { panic("no assembly") }
func geluGradAVX2(dx *float32, x *float32, dy *float32, n int) { panic("no assembly") }
func expSumAVX2(y *float32, x *float32, n int, factor float64, top float64, s *[16]float64) {
	panic("no assembly")
}
func divideAVX2(y *float32, n int, by float64)                         { panic("no assembly") }
func largestAVX2(x *float32, n int, most *[8]float32)                  { panic("no assembly") }
func sumAVX2(x *float32, n int, s *[16]float64)                        { panic("no assembly") }
func sumSquaresAVX2(x *float32, n int, centre float64, s *[16]float64) { panic("no assembly") }
func sumProductsAVX2(x *float32, y *float32, n int, centre float64, s *[16]float64, p *[16]float64) {
	panic("no assembly")
}
func addAVX2(y *float32, a *float32, b *float32, n int)            { panic("no assembly") }
func multiplyAVX2(y *float32, a *float32, b *float32, n int)       { panic("no assembly") }
func scaleAVX2(y *float32, x *float32, n int, factor float32)      { panic("no assembly") }
func reluAVX2(y *float32, x *float32, n int)                       { panic("no assembly") }
func keepPositiveAVX2(dx *float32, y *float32, dy *float32, n int) { panic("no assembly") }
func normaliseAVX2(y *float32, x *float32, n int, centre float32, factor float32, shift float32) {
	panic("no assembly")
}
func normaliseGradAVX2(dx *float32, x *float32, dy *float32, n int, c *[4]float32) {
	panic("no assembly")
}
func descendAVX2(w *float32, dw *float32, n int, rate float32) { panic("no assembly") }
func momentumAVX2(w *float32, dw *float32, m *float32, n int, rate float32, momentum float32) {
	panic("no assembly")
}
func adamAVX2(w *float32, dw *float32, m *float32, v *float32, n int, c *[7]float32) {
	panic("no assembly")
}
