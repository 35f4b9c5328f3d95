package weights

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"tensile/graph"
)

// part is what the header says of a tensor: its name, its type, its shape and its bytes [begin, end) of the data.
type part struct {
	name       string
	kind       Type
	shape      graph.Shape
	begin, end int64
}

// parseHeader reads the header's JSON. It goes by tokens, because decoding into a struct would overlook duplicate keys
// and keys in the wrong case.
func parseHeader(text []byte) (parts []part, metadata map[string]string, err error) {
	if len(text) == 0 || text[0] != '{' || !utf8.Valid(text) || !json.Valid(text) {
		return nil, nil, fmt.Errorf("the header is not a JSON object: check that it is a safetensors file")
	}
	p := parser{json.NewDecoder(bytes.NewReader(text))}
	p.UseNumber()
	seen := map[string]bool{}
	err = p.object(func(name string) (err error) {
		if seen[name] {
			return fmt.Errorf("%s is in the header twice: save the file again", quote(name))
		}
		seen[name] = true
		if name == metadataKey {
			metadata, err = p.metadata()
			return err
		}
		tensor, err := p.tensor(name)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(name), err)
		}
		parts = append(parts, tensor)
		return nil
	})
	return parts, metadata, err
}

// parser reads text that is known to be valid JSON.
type parser struct{ *json.Decoder }

// next returns the next token.
func (p parser) next() json.Token {
	token, err := p.Token()
	if err != nil {
		panic(fmt.Sprintf("weights: valid JSON has no next token at %d: %v", p.InputOffset(), err))
	}
	return token
}

// object reads an object. field gets every key and reads its value.
func (p parser) object(field func(key string) error) error {
	if token := p.next(); token != json.Delim('{') {
		return p.wrong(token, "an object")
	}
	for p.More() {
		if err := field(p.next().(string)); err != nil {
			return err
		}
	}
	p.next()
	return nil
}

// numbers reads an array of at most limit integers that are not negative.
func (p parser) numbers(limit int) ([]int64, error) {
	if token := p.next(); token != json.Delim('[') {
		return nil, p.wrong(token, "an array")
	}
	var all []int64
	for p.More() {
		token := p.next()
		number, ok := token.(json.Number)
		n, err := strconv.ParseUint(string(number), 10, 63)
		if !ok || err != nil {
			return nil, p.wrong(token, "a whole number")
		}
		if len(all) == limit {
			return nil, fmt.Errorf("more than %d numbers in an array: save the file again", limit)
		}
		all = append(all, int64(n))
	}
	p.next()
	return all, nil
}

func (p parser) wrong(token json.Token, want string) error {
	return fmt.Errorf("%.40q at byte %d of the header, want %s: save the file again", fmt.Sprint(token),
		p.InputOffset(), want)
}

func (p parser) metadata() (map[string]string, error) {
	texts := map[string]string{}
	err := p.object(func(key string) error {
		if _, ok := texts[key]; ok {
			return fmt.Errorf("%s is in the metadata twice: save the file again", quote(key))
		}
		token := p.next()
		text, ok := token.(string)
		if !ok {
			return p.wrong(token, "a string")
		}
		texts[key] = text
		return nil
	})
	return texts, err
}

// tensor reads a tensor's entry, whose three fields must be there and fit together.
func (p parser) tensor(name string) (part, error) {
	var kind Type
	var shape, offsets []int64
	seen := map[string]bool{}
	err := p.object(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%s is there twice: save the file again", quote(key))
		}
		seen[key] = true
		switch key {
		case "dtype":
			token := p.next()
			text, _ := token.(string)
			if kind = Type(text); kind.Bytes() == 0 {
				return fmt.Errorf("has type %.40q, which is not known: convert it to float32 first", fmt.Sprint(token))
			}
		case "shape":
			shape, err = p.numbers(maxRank)
		case "data_offsets":
			offsets, err = p.numbers(2)
		default:
			err = fmt.Errorf("%s is no field of safetensors: save the file again", quote(key))
		}
		return err
	})
	if err != nil {
		return part{}, err
	}
	if len(seen) != 3 || len(offsets) != 2 {
		return part{}, fmt.Errorf("wants dtype, shape and two data_offsets: save the file again")
	}
	return newPart(name, kind, shape, offsets[0], offsets[1])
}

func newPart(name string, kind Type, extents []int64, begin, end int64) (part, error) {
	shape := make(graph.Shape, len(extents))
	for i, e := range extents {
		shape[i] = int(e)
	}
	elements, err := count(shape)
	if err != nil {
		return part{}, err
	}
	if end-begin != elements*kind.Bytes() {
		return part{}, fmt.Errorf("data_offsets %d to %d, want %d bytes for shape %v: save the file again",
			begin, end, elements*kind.Bytes(), shape)
	}
	return part{name, kind, shape, begin, end}, nil
}
