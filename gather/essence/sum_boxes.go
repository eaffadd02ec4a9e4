package essence

import "iter"

// A box is one of ISO base media: MP4, HEIF, JPEG 2000.
type box struct {
	name string
	head int64 // bytes before its body
	size int64 // all of it
}

// boxes are those between two offsets, each with where it begins. One whose size
// is past the end reaches to it.
func (b *bin) boxes(at, end int64) iter.Seq2[int64, box] {
	return func(yield func(int64, box) bool) {
		for n := 0; at+8 <= end && n < 10000; n++ {
			x := box{name: string(b.at(at+4, 4)), head: 8, size: b.be32(at)}
			switch x.size {
			case 0:
				x.size = end - at
			case 1:
				x.head, x.size = 16, int64(min(b.be64(at+8), 1<<62))
			}
			if x.size < x.head {
				return
			}
			x.size = min(x.size, end-at)
			if !yield(at, x) {
				return
			}
			at += x.size
		}
	}
}
