package data

// mix is the output function of the SplitMix64 generator: a bijection on 64 bits in which every bit of the argument
// reaches every bit of the result. Of consecutive arguments it makes a random sequence.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// derive returns the key of a part of what key stands for. Different uses of one seed begin with different tags.
func derive(key uint64, part int) uint64 {
	return mix(key ^ mix(uint64(part)))
}

// The tags: what a seed is used for.
const (
	tagOrder = iota
	tagPattern
	tagNoise
)
