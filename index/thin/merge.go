package thin

import (
	"bytes"
	"context"
	"encoding/binary"
	"harvest/index"
	"os"
	"slices"
)

// A part is a segment and which of its documents are gone. Both never change.
type part struct {
	*segment
	gone bits
	dead int
}

func (p part) live() int { return int(p.NDocs) - p.dead }

// bits is a set of documents; nil is empty.
type bits []uint64

func (b bits) has(i uint32) bool { return b != nil && b[i/64]&(1<<(i%64)) != 0 }

// with is p without the given documents as well.
func (p part) with(gone []uint32) part {
	if len(gone) == 0 {
		return p
	}
	set := make(bits, (p.NDocs+63)/64)
	copy(set, p.gone)
	for _, d := range gone {
		if !set.has(d) {
			set[d/64] |= 1 << (d % 64)
			p.dead++
		}
	}
	p.gone = set
	return p
}

// merge writes the documents of parts that are left as one segment.
func merge(ctx context.Context, parts []part, path string) (err error) {
	w, err := createSegment(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(path)
		}
	}()
	var (
		ids     []index.ID
		lengths []uint32
		numbers = make([][]uint32, len(parts)) // new by old
	)
	for i, p := range parts {
		numbers[i] = make([]uint32, p.NDocs)
		for d := range p.NDocs {
			if !p.gone.has(d) {
				numbers[i][d] = uint32(len(ids))
				ids = append(ids, p.id(d))
				lengths = append(lengths, p.length(d))
			}
		}
	}
	for _, name := range names(parts) {
		if err := ctx.Err(); err != nil {
			w.f.Close()
			return err
		}
		mergeField(w, name, parts, numbers)
	}
	return w.close(ids, lengths)
}

// names are the attributes of all parts, in order.
func names(parts []part) (out []string) {
	for _, p := range parts {
		for _, f := range p.fields {
			out = append(out, f.name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// A source is one part's words of an attribute.
type source struct {
	part
	numbers []uint32
	words   *termReader
}

func mergeField(w *segmentWriter, name string, parts []part, numbers [][]uint32) {
	var in []source
	w.attribute(name)
	for i, p := range parts {
		f, ok := p.field(name)
		if !ok {
			continue
		}
		p.eachValue(f, func(doc uint32, sum uint64) {
			w.value(numbers[i][doc], sum)
		})
		if s := (source{p, numbers[i], p.words(f)}); s.words.next() {
			in = append(in, s)
		}
	}
	var word, documents, positions []byte
	for len(in) > 0 {
		word = append(word[:0], in[0].words.word...)
		for _, s := range in[1:] {
			if bytes.Compare(s.words.word, word) < 0 {
				word = append(word[:0], s.words.word...)
			}
		}
		docs := 0
		last := ^uint32(0)
		documents, positions = documents[:0], positions[:0]
		for _, s := range in {
			if !bytes.Equal(s.words.word, word) {
				continue
			}
			for p := s.words.postings(); p.next(); {
				if s.gone.has(p.doc) {
					continue
				}
				n := s.numbers[p.doc]
				documents = appendPosting(documents, n-last, p.count, len(p.where))
				positions = append(positions, p.where...)
				last = n
				docs++
			}
		}
		if docs > 0 {
			w.word(word, docs, documents, positions)
		}
		in = slices.DeleteFunc(in, func(s source) bool {
			return bytes.Equal(s.words.word, word) && !s.words.next()
		})
	}
	w.dropEmpty()
}

// dropEmpty takes an attribute back that no document has any more.
func (w *segmentWriter) dropEmpty() {
	if f := w.fields[len(w.fields)-1]; f.values == 0 {
		w.fields = w.fields[:len(w.fields)-1]
	}
}

// eachValue gives the values of an attribute in documents that are left.
func (p part) eachValue(f field, yield func(doc uint32, sum uint64)) {
	c := cursor{p.data[f.valuesFrom:p.Fields]}
	var doc uint32
	for range f.values {
		doc += uint32(c.uvarint())
		sum := binary.LittleEndian.Uint64(c.bytes(8))
		if !p.gone.has(doc) {
			yield(doc, sum)
		}
	}
}
