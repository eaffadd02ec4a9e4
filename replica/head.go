package replica

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	iofs "io/fs"
	"slices"
	"strconv"
	"strings"
)

// A Head is what a writer says it has: at a version, so many objects, with this
// digest. It is signed, so that it can come from anybody, and the digest is the root
// of a tree of digests over all records, so that every record and every object that
// is under it can too: one that does not belong there shows.
type Head struct {
	Key ed25519.PublicKey // of the writer
	Version
	Count  int64    // objects
	Time   int64    // when it was signed, in seconds since 1970
	Digest [32]byte // of the records; see trie
	Sig    []byte
}

// WriterOf names the writer that has a key.
func WriterOf(key ed25519.PublicKey) (w Writer) {
	sum := sha256.Sum256(key)
	copy(w[:], sum[:])
	return w
}

// Writer is who signed.
func (h *Head) Writer() Writer { return WriterOf(h.Key) }

// newer tells which of two heads of a writer counts: the higher epoch, then the higher
// number, and of two with the same version, which only a forked writer signs, the
// higher digest, on every replica alike.
func (h *Head) newer(o *Head) bool {
	if h.Version != o.Version {
		return o.Version.less(h.Version)
	}
	return bytes.Compare(h.Digest[:], o.Digest[:]) > 0
}

// forks tells whether two heads prove that their writer has forked.
func (h *Head) forks(o *Head) bool {
	return h.Version == o.Version && (h.Digest != o.Digest || h.Count != o.Count)
}

// signed is the text that a signature is of. The kind keeps what is signed for one
// purpose from being used for another.
func (h *Head) signed(kind string) []byte {
	return fmt.Appendf(nil, "harvest replica 1 %s\n%x %s %d %d %x\n", kind, []byte(h.Key), h.Version, h.Count, h.Time, h.Digest)
}

func (h *Head) sign(kind string, key ed25519.PrivateKey) {
	h.Key = key.Public().(ed25519.PublicKey)
	h.Sig = ed25519.Sign(key, h.signed(kind))
}

func (h *Head) verify(kind string) error {
	if len(h.Key) != ed25519.PublicKeySize || len(h.Sig) != ed25519.SignatureSize || !ed25519.Verify(h.Key, h.signed(kind), h.Sig) {
		return fmt.Errorf("head of writer %s: not signed by it: %w", h.Writer(), iofs.ErrInvalid)
	}
	return nil
}

// # heads
//
// The file has a line a writer, in the order of their names, with a tab between
// fields:
//
//	WRITER EPOCH SEQ DIGEST COUNT TIME KEY SIGNATURE
//
// DIGEST, KEY and SIGNATURE in the base64 of file names. After them, a line for each proof that a writer
// has forked: the same fields twice, of two heads with one version.
const headFields = 8

func (h *Head) line() string {
	return fmt.Sprintf("%s\t%d\t%d\t%s\t%d\t%d\t%s\t%s", h.Writer(), h.Epoch, h.Seq, b64(h.Digest[:]), h.Count, h.Time, b64(h.Key), b64(h.Sig))
}

// b64 writes bytes in 3/4 of the digits that hex has.
func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// unb64 reads what b64 gives, and nothing else.
func unb64(text string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil && b64(b) != text { // it skips newlines
		err = iofs.ErrInvalid
	}
	return b, err
}

// A fork is two heads that one writer has signed for one version.
type fork [2]Head

func (f *fork) line() string { return f[0].line() + "\t" + f[1].line() }

// Bounds of a file heads.
const (
	maxWriters   = 1024
	maxForks     = 64
	maxHeadsFile = (maxWriters + 2*maxForks) * 420
)

// parseHeads reads a file heads, and believes nothing of it: the signatures are the
// caller's to verify.
func parseHeads(b []byte) (heads []Head, forks []fork, err error) {
	if len(b) > maxHeadsFile {
		return nil, nil, fmt.Errorf("heads: %d bytes: %w", len(b), iofs.ErrInvalid)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		one, two := f, []string(nil)
		if len(f) == 2*headFields {
			one, two = f[:headFields], f[headFields:]
		}
		h, err := parseHead(one)
		if err != nil {
			return nil, nil, err
		}
		if two == nil {
			heads = append(heads, h)
			continue
		}
		o, err := parseHead(two)
		if err != nil {
			return nil, nil, err
		}
		forks = append(forks, fork{h, o})
	}
	if len(heads) > maxWriters || len(forks) > maxForks {
		return nil, nil, fmt.Errorf("heads: of %d writers, and %d forks: %w", len(heads), len(forks), iofs.ErrInvalid)
	}
	return heads, forks, nil
}

func parseHead(f []string) (h Head, err error) {
	if len(f) != headFields {
		return h, fmt.Errorf("heads: %d fields in a line: %w", len(f), iofs.ErrInvalid)
	}
	v, err := parseVersion(f[1] + "." + f[2])
	if err != nil {
		return h, err
	}
	h.Version = v
	count, err1 := strconv.ParseUint(f[4], 10, 62)
	time, err2 := strconv.ParseUint(f[5], 10, 62)
	h.Count, h.Time = int64(count), int64(time)
	digest, err3 := unb64(f[3])
	key, err4 := unb64(f[6])
	sig, err5 := unb64(f[7])
	bad := err1 != nil || err2 != nil || err3 != nil || err4 != nil || err5 != nil
	if bad || len(digest) != len(h.Digest) || len(key) != ed25519.PublicKeySize || len(sig) != ed25519.SignatureSize {
		return h, fmt.Errorf("heads: line of writer %.20q: %w", f[0], iofs.ErrInvalid)
	}
	copy(h.Digest[:], digest)
	h.Key, h.Sig = key, sig
	if h.Writer().String() != f[0] {
		return h, fmt.Errorf("heads: writer %.20q has another key: %w", f[0], iofs.ErrInvalid)
	}
	return h, nil
}

// sortHeads puts heads in the order of the file.
func sortHeads(heads []Head) {
	slices.SortFunc(heads, func(a, b Head) int {
		x, y := a.Writer(), b.Writer()
		return bytes.Compare(x[:], y[:])
	})
}
