package data

// order is an endless stream of the numbers of examples: epoch after epoch, each of them once an epoch, in an order of
// its own. The zero value has no examples.
type order struct {
	examples int
	key      uint64
}

func newOrder(examples int, seed uint64) order { return order{examples, derive(seed, tagOrder)} }

// forEach calls do for each example of the batch of an iteration, with its place in the batch and its number.
func (o order) forEach(iteration, batch int, do func(i, example int) error) error {
	var epochs permutation
	epoch := -1
	for i := range batch {
		position := iteration*batch + i
		if e := position / o.examples; e != epoch {
			epoch = e
			epochs = newPermutation(o.examples, derive(o.key, e))
		}
		if err := do(i, epochs.image(position%o.examples)); err != nil {
			return err
		}
	}
	return nil
}
