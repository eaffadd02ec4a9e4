package store

// A Digest stands for a set of objects: two stores have the same digest for a
// prefix if and only if they have the same objects with the same contents
// there, whatever their histories.
type Digest struct {
	Prefix string
	Sum    [32]byte
	Count  int64
}
