package essence

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/nwaples/rardecode/v2"

	"harvest/gather/essence/unpack"
)

// A rarArchive is one of rardecode.
type rarArchive struct {
	r    *rardecode.Reader
	over bool // it goes on in another volume, and nothing more is here
}

func openRar(w *worker, c *content, in *counter) (archive, func(), error) {
	if laterVolume(c.head) {
		return nil, nil, unpack.Unread("a volume that is not the first of its archive")
	}
	n, done := w.share()
	r, err := rardecode.NewReader(in, rardecode.MaxDictionarySize(n))
	return &rarArchive{r: r}, done, rarError(err)
}

// laterVolume reports whether a RAR archive's header says that it is a volume, and
// not the first. In version 4 and before flags say so, from 3.0 on; in 5 it has a
// number.
func laterVolume(b []byte) bool {
	if len(b) >= 12 && b[6] == 0 && b[9] == 0x73 {
		const volume, first = 0x0001, 0x0100
		flags := binary.LittleEndian.Uint16(b[10:])
		return flags&(volume|first) == volume
	}
	if len(b) < 12 || b[6] != 1 {
		return false
	}
	b = b[12:min(len(b), 64)]
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		return v
	}
	size, kind, flags := number(), number(), number()
	if flags&1 != 0 {
		number() // the length of the extra area
	}
	const numbered = 2
	return size > 0 && kind == 1 && number()&numbered != 0
}

// rarError puts errors in their classes.
func rarError(err error) error {
	switch {
	case errors.Is(err, rardecode.ErrArchiveEncrypted), errors.Is(err, rardecode.ErrArchivedFileEncrypted):
		return unpack.Unread("encrypted")
	case errors.Is(err, rardecode.ErrMultiVolume):
		return unpack.Unread("it goes on in another volume")
	case errors.Is(err, rardecode.ErrDictionaryTooLarge):
		return unpack.Unread("a dictionary that is too large")
	}
	return err
}

func (a *rarArchive) Next() (*unpack.Header, error) {
	if a.over {
		return nil, io.EOF
	}
	h, err := a.r.Next()
	if err != nil {
		return nil, a.ends(err)
	}
	u := &unpack.Header{Name: strings.ReplaceAll(h.Name, `\`, "/"), Size: h.UnPackedSize, Packed: h.PackedSize, Modified: h.ModificationTime, Regular: !h.IsDir && h.Mode().IsRegular()}
	if h.PackedSize == 0 && h.UnPackedSize > 0 {
		u.Regular = false // a hard link, of version 5
	}
	if h.Encrypted || h.HeaderEncrypted {
		u.Err = unpack.Unread("encrypted")
	}
	return u, nil
}

// ends is an error in its class, and notes that it is the volume's end.
func (a *rarArchive) ends(err error) error {
	a.over = a.over || errors.Is(err, rardecode.ErrMultiVolume)
	return rarError(err)
}

func (a *rarArchive) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	return n, a.ends(err)
}
