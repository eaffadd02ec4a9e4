package index

// An Among is a collection of which an index holds a part. Searches of all its
// parts that name it give scores that compare, as if one index held them all:
// the sum over parts of what a Census says of each.
type Among struct {
	Docs  int            // documents
	Words int64          // in them
	Count map[string]int // documents that have a word, as Words gives it; others are counted in the part
}

// amongTier is the power of two that documents with all words of a bag have
// more, in each part the same: with k1, weights up to ten and a handful of words
// no score comes near it, and a float32 still tells thousandths.
const amongTier = 12

// A census is what the words of a search are rare among.
type census struct {
	docs  int
	mean  float64 // words of a document
	count map[string]int
}

func (v *view) census(among *Among) census {
	if among == nil || among.Docs < v.docs { // it is not about this
		return census{docs: v.docs, mean: float64(v.text) / float64(max(v.docs, 1))}
	}
	return census{among.Docs, float64(among.Words) / float64(among.Docs), among.Count}
}

func (c *census) idf(e *elem) float64 {
	if e.pat == nil {
		if n, ok := c.count[string(e.word)]; ok {
			return idf(c.docs, min(max(n, e.n), c.docs))
		}
	}
	return idf(c.docs, e.docs(c.docs))
}

// docsWith is how many documents have op, and of how many: of all, or, what
// nobody has counted there, of the part.
func (c *census) docsWith(op operand, part int) (n, all int) {
	if e, ok := op.(*elem); ok && e.pat == nil {
		if n, ok := c.count[string(e.word)]; ok {
			return n, c.docs
		}
	}
	return op.docs(part), part
}
