package posting

import "slices"

// Impacts are kept as pairs of bytes, the frequency rounded up. Their number
// is the same for all blocks of a list: one that has fewer repeats its last.
const maxImpacts = 4

// A front is the impacts of some documents by rising frequency and norm: none
// of it is implied by another.
type front []Impact

// add makes f cover im too.
func (f front) add(im Impact) front {
	i := 0
	for i < len(f) && f[i].Freq < im.Freq {
		i++
	}
	if i < len(f) && f[i].Norm <= im.Norm {
		return f
	}
	from, to := i, i
	if i < len(f) && f[i].Freq == im.Freq {
		to++
	}
	for from > 0 && f[from-1].Norm >= im.Norm {
		from--
	}
	return slices.Replace(f, from, to, im)
}

// reduce joins neighbours until there are no more than n, each time the two
// whose joint impact is the least beyond them.
func (f front) reduce(n int) front {
	for len(f) > n {
		best, at := ^uint64(0), 0
		for i := range len(f) - 1 {
			a, b := f[i], f[i+1]
			// a bound rises with freq/(freq+length), so compare in proportion
			waste := uint64(b.Freq-a.Freq) * 1024 / uint64(b.Freq) * uint64(b.Norm-a.Norm)
			if waste < best {
				best, at = waste, i
			}
		}
		f[at] = Impact{f[at+1].Freq, f[at].Norm}
		f = append(f[:at+1], f[at+2:]...)
	}
	return f
}

// pairs are the bytes of a block's impacts.
type pairs [2 * maxImpacts]byte

func (f front) pairs() (p pairs, n int) {
	n = len(f)
	for i := range maxImpacts {
		im := f[min(i, n-1)]
		p[2*i], p[2*i+1] = freqCode(im.Freq), im.Norm
	}
	return p, n
}

// Codes below 192 are the frequencies 1 to 192; each further one is 5/16 more
// than the one before, the last what 32 bits hold.
const exactFreqs = 192

func freqCode(freq uint32) byte {
	if freq <= exactFreqs {
		return byte(freq - 1)
	}
	code, f := byte(exactFreqs-1), uint64(exactFreqs)
	for ; f < uint64(freq) && code < 255; code++ {
		f += f/4 + f/16
	}
	return code
}

func codeFreq(code byte) uint32 {
	if code < exactFreqs {
		return uint32(code) + 1
	}
	if code == 255 {
		return ^uint32(0)
	}
	f := uint64(exactFreqs)
	for range code - (exactFreqs - 1) {
		f += f/4 + f/16
	}
	return uint32(min(f, 1<<32-1))
}

// readImpacts appends the impacts of pairs of bytes to dst.
func readImpacts(dst []Impact, b []byte) []Impact {
	for i := 0; i+1 < len(b); i += 2 {
		im := Impact{codeFreq(b[i]), b[i+1]}
		if k := len(dst); k > 0 && dst[k-1] == im {
			continue
		}
		dst = append(dst, im)
	}
	return dst
}
