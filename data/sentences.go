package data

import "fmt"

// topics is the number of things that sentences are about, and noiseOf the inverse share of tokens that are random.
const (
	topics  = 8
	noiseOf = 8
)

// Sentences makes up an endless stream of sequences on which training makes progress: every topic has a text of its
// own, in several voices that go with each other as a text, its translation and its sound do, and an example is the
// text of a random topic with some of its tokens replaced. All of it is computed when asked for, each part by itself,
// from the seed and integers alone.
type Sentences struct{ topic, text, noise uint64 } // keys

// NewSentences returns the stream of a seed.
func NewSentences(seed uint64) Sentences {
	return Sentences{topic: derive(seed, tagOrder), text: derive(seed, tagPattern), noise: derive(seed, tagNoise)}
}

// topicOf returns the topic of an example.
func (s Sentences) topicOf(example int) int { return int(derive(s.topic, example) % topics) }

// Token is what an example says at a place in a voice: 1 to vocabulary-1. Token 0 is left for other purposes. second
// asks for a place of the second of two texts, which Follows speaks of. It panics when the vocabulary is below 2.
func (s Sentences) Token(example, voice, place, vocabulary int, second bool) int {
	if vocabulary < 2 {
		panic(fmt.Sprintf("data: a token of a vocabulary of %d", vocabulary))
	}
	topic := s.topicOf(example)
	if second && !s.Follows(example) {
		topic = (topic + 1) % topics
	}
	token := mix(derive(derive(s.text, topic), voice) + uint64(place))
	if noise := mix(derive(derive(s.noise, example), voice) + uint64(place)); noise%noiseOf == 0 {
		token = noise / noiseOf
	}
	return 1 + int(token%uint64(vocabulary-1))
}

// Follows reports whether the second of an example's two texts is of the same topic as the first.
func (s Sentences) Follows(example int) bool { return derive(s.topic, example)>>32&1 == 1 }

// Hidden reports whether a place is one of those, about one in seven, that a network must guess.
func (s Sentences) Hidden(example, place int) bool {
	return derive(derive(s.topic, example), place)%7 == 0
}

// Frame is the strength of a band at a step of an example's sound, of about mean 0 and standard deviation 1.
func (s Sentences) Frame(example, step, band int) float32 {
	smooth := int16(mix(derive(derive(s.text, topics+s.topicOf(example)), step) + uint64(band)))
	noise := int16(mix(derive(derive(s.noise, example), -1-step) + uint64(band)))
	// Both are uniform, of deviation 0.87 and 0.5; products are rounded before they are added.
	return float32(float32(smooth)*(1.5/32768)) + float32(float32(noise)*(0.866/32768))
}
