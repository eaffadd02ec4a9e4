package posting

import "fmt"

// copyMin is the fewest documents of a block that is copied rather than
// filled up, and of one that is ended early so that the next can be copied;
// worthIt is the number of blocks to come for which fewer will do.
const (
	copyMin = BlockSize / 2
	worthIt = 4
)

// Merge adds the list of r, of the same kind and just Reset. Its document d
// becomes number[d], or is left out if that is End; the others ascend. If
// number is nil, d becomes d + shift. Blocks of which all documents stay are
// copied as they are, with impacts and all.
func (e *Encoder) Merge(r *Reader, number []uint32, shift uint32) error {
	if r.kind != e.kind || number != nil && uint64(len(number)) < uint64(r.limit) {
		panic(fmt.Sprintf("posting: merge of kind %d into %d, %d numbers of %d", r.kind, e.kind, len(number), r.limit))
	}
	for j := 0; j < r.blocks; j++ {
		if r.starts > 0 && e.copy(r, j, number, shift) {
			continue
		}
		if !r.load(j) {
			break
		}
		for i := range r.n {
			r.i = i
			if number == nil {
				e.addFrom(r, r.docs[i]+shift)
			} else if d := number[r.docs[i]]; d != End {
				e.addFrom(r, d)
			}
		}
	}
	return r.err
}

// addFrom adds r's document as doc.
func (e *Encoder) addFrom(r *Reader, doc uint32) {
	freq := r.Freq()
	if e.kind != Positions {
		e.AddFreq(doc, freq)
		return
	}
	if e.gaps = r.appendGaps(e.gaps[:0]); r.err == nil {
		e.Add(doc, e.gaps)
	}
}

// copy copies block j of r if that is possible and good.
func (e *Encoder) copy(r *Reader, j int, number []uint32, shift uint32) bool {
	last, from := r.lastOf(j), uint32(0)
	if j > 0 {
		from = r.lastOf(j-1) + 1
	}
	if last >= r.limit || from > last {
		return false // load will say what is wrong
	}
	if number != nil {
		shift = number[last] - last
		if number[last] == End || number[from] == End || number[from]-from != shift {
			return false
		}
	}
	b, ok := span(r.run, r.begins, r.starts, j, r.blocks)
	if !ok || len(b) == 0 || last+shift < e.next {
		return false
	}
	n := int(b[0]) + 1
	if n < copyMin || e.n > 0 && e.n < copyMin && r.blocks-j < worthIt {
		return false
	}
	var pos []byte
	if e.kind == Positions {
		if pos, ok = span(r.pos, r.posBegins, r.posStarts, j, r.blocks); !ok {
			return false
		}
	}
	if e.n > 0 {
		e.flush()
	}
	e.dropTaken()
	line := block{last: last + shift, at: len(e.body), pos: e.taken + uint64(len(e.pos)), points: r.points}
	if r.points > 0 {
		e.front = append(e.front[:0], readImpacts(nil, r.impacts[2*r.points*j:][:2*r.points])...)
		line.impacts, line.points = e.front.pairs()
	}
	e.blocks = append(e.blocks, line)
	e.body = append(e.body, b...)
	e.pos = append(e.pos, pos...)
	e.count += n
	e.next = line.last + 1
	r.n, r.floor = 0, last+1
	return true
}
