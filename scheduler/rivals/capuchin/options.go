package capuchin

// Options switch parts of the policy off. The zero value is the recommended setting.
type Options struct {
	NoRecompute bool // what is evicted is swapped
}
