package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"strings"
	"time"

	"harvest/fs"
)

// # Files
//
//	objects/3f/3fa9….soif   every object, in 256 folders
//	objects/3f/digest       a line an object: OID, hash
//	objects/digest          a line a folder: its two digits, digest, count
//	digest                  digest, count
//	url/https/go.dev/…      the same objects by URL, see name.go
//	soif, soif.zst          the collection as one stream
//	since/CURSOR            the changes after a cursor or time, and .zst, .gz
//
// docs/objects.4.md is their manual.

// Files returns the names that a service exports of its store. Id makes a path
// of the keys of a thing; the two names of an object have the same one. The bus,
// which may be nil, hears of each change. Remove is what rm of an object does,
// for those who may write its folder; nil, and nobody may.
func (s *Store) Files(id func(parts ...string) uint64, bus *fs.Bus, remove func(context.Context, Entry) error) map[string]fs.Node {
	t := &tree{s, id, remove}
	if bus != nil {
		s.mu.Lock()
		s.tell = func(changes []told) { t.tell(bus, changes) }
		s.mu.Unlock()
	}
	return map[string]fs.Node{
		"objects":  fs.Func{Path: id("objects"), Vers: t.vers(""), Look: t.lookFolder, Each: t.eachFolder},
		"url":      t.urlDir(""),
		"soif":     collection{t, false},
		"soif.zst": collection{t, true},
		"since":    fs.Func{Path: id("since"), Look: t.lookSince, Each: t.eachSince},
		"digest":   t.rootDigest(),
	}
}

// A tree makes nodes of what is in a store.
type tree struct {
	s      *Store
	id     func(parts ...string) uint64
	remove func(context.Context, Entry) error
}

// vers returns a function for fs.Func. Within an epoch the numbers of changes are
// never used twice.
func (t *tree) vers(prefix string) func() uint32 {
	return func() uint32 { return uint32(t.s.Vers(prefix)) ^ t.s.Cursor().Epoch }
}

// tell says which nodes a group of changes changed. A bus keeps no more than its
// readers' queues hold and counts the rest, so a bulk load costs a door one
// emptying of its caches, and this no more than a moment a change.
func (t *tree) tell(bus *fs.Bus, changes []told) {
	folders := make(map[byte]bool)
	for _, c := range changes {
		bus.Changed(t.objectPath(c.oid))
		first := c.oid.String()[:2]
		if !folders[c.oid[0]] {
			folders[c.oid[0]] = true
			bus.Changed(t.id("objects", first))
		}
		if !c.name {
			continue
		}
		bus.Entry(t.id("objects", first), c.oid.String()+objectSuffix)
		// A folder of URLs may come or go with its last object: the name
		// in each folder on the way.
		path := strings.ReplaceAll(urlKey(c.url), "\x00", "/")
		for path != "" {
			dir, name, _ := cutLast(path)
			bus.Entry(t.id("url", dir), name)
			path = dir
		}
	}
	bus.Changed(t.id("objects"))
	for _, name := range []string{"soif", "soif.zst", "digest"} {
		bus.Changed(t.id(name))
	}
}

func (t *tree) objectPath(oid OID) uint64 { return t.id("object", oid.String()) }

// object is the file of an object as an entry tells it, also when it is read
// after it has changed.
func (t *tree) object(e Entry) fs.Node {
	return objectFile{fs.Bytes(fs.Stat{
		Path:  t.objectPath(e.OID),
		Vers:  binary.BigEndian.Uint32(e.Hash[:]),
		Mode:  0o444,
		Size:  e.Size,
		Mtime: e.Updated,
	}, func(context.Context) ([]byte, error) { return t.s.Read(e) }), e}
}

type objectFile struct {
	fs.File
	e Entry
}

// Attributes are those of an object that are known without reading it.
func (f objectFile) Attributes(context.Context) ([]fs.Attribute, error) {
	e := f.e
	all := []fs.Attribute{
		{Name: "oid", Value: e.OID.String()},
		{Name: "url", Value: e.URL},
		{Name: "type", Value: e.Type},
		{Name: "update-time", Value: e.Updated.UTC().Format(time.RFC3339)},
		{Name: "hash", Value: fmt.Sprintf("%x", e.Hash)},
		{Name: "seq", Value: fmt.Sprint(e.Seq)},
	}
	if e.TTL > 0 {
		all = append(all, fs.Attribute{Name: "time-to-live", Value: e.TTL.String()},
			fs.Attribute{Name: "expires", Value: e.Expires().UTC().Format(time.RFC3339)})
	}
	return all, nil
}

func notExist(name string) error { return fmt.Errorf("%s: %w", name, iofs.ErrNotExist) }

func (t *tree) folder(prefix string) fs.Node {
	return removable{fs.Func{
		Path: t.id("objects", prefix),
		Vers: t.vers(prefix),
		Look: func(_ context.Context, name string) (fs.Node, error) { return t.lookObject(prefix, name) },
		Each: func(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
			return t.eachObject(ctx, prefix, after)
		},
	}, t.remove}
}

const digestName = "digest"

func (t *tree) lookFolder(_ context.Context, name string) (fs.Node, error) {
	switch {
	case name == digestName:
		return t.digestFile(name, "", t.writeFolderDigests), nil
	case len(name) == 2 && isHex(name):
		return t.folder(name), nil
	}
	return nil, notExist(name)
}

func (t *tree) eachFolder(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	digest := fs.Entry{Name: digestName, Node: t.digestFile(digestName, "", t.writeFolderDigests)}
	return with(digest, after, func(yield func(fs.Entry, error) bool) {
		for i := range 256 {
			name := fmt.Sprintf("%02x", i)
			if name > after && !yield(fs.Entry{Name: name, Node: t.folder(name)}, nil) {
				return
			}
		}
	})
}

// with adds an entry to a list, in its place.
func with(one fs.Entry, after string, list iter.Seq2[fs.Entry, error]) iter.Seq2[fs.Entry, error] {
	return func(yield func(fs.Entry, error) bool) {
		due := one.Name > after
		for e, err := range list {
			if due && err == nil && e.Name > one.Name {
				due = false
				if !yield(one, nil) {
					return
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if due {
			yield(one, nil)
		}
	}
}

func (t *tree) lookObject(prefix, name string) (fs.Node, error) {
	if name == digestName {
		return t.digestFile(name, prefix, t.writeObjectDigests), nil
	}
	stem, ok := strings.CutSuffix(name, objectSuffix)
	oid, err := ParseOID(stem)
	if !ok || err != nil || !strings.HasPrefix(name, prefix) {
		return nil, notExist(name)
	}
	e, err := t.s.Stat(oid)
	if err != nil {
		return nil, err
	}
	return t.object(e), nil
}

func (t *tree) eachObject(ctx context.Context, prefix, after string) iter.Seq2[fs.Entry, error] {
	digest := fs.Entry{Name: digestName, Node: t.digestFile(digestName, prefix, t.writeObjectDigests)}
	return with(digest, after, func(yield func(fs.Entry, error) bool) {
		for e, err := range t.s.Scan(ctx, prefix, scanAfter(after)) {
			if err != nil {
				yield(fs.Entry{}, err)
				return
			}
			if name := e.OID.String() + objectSuffix; name > after && !yield(fs.Entry{Name: name, Node: t.object(e)}, nil) {
				return
			}
		}
	})
}

// scanAfter makes of any name the hex digits to scan an objects folder from: all
// that follow the name are after them, and few that do not.
func scanAfter(name string) string {
	n := 0
	for n < len(name) && n < 32 && isHex(name[n:n+1]) {
		n++
	}
	if n == 32 && name[n:] < objectSuffix {
		n-- // the object itself is still to come, and Scan begins after one
	}
	return name[:n]
}

// digestFile is a file with digests: made when it is opened, but its length
// is known before, as that of the lines for what the digests count. A digest
// that cannot be had now is told by the read.
func (t *tree) digestFile(name, prefix string, produce func(ctx context.Context, w io.Writer, prefix string) error) fs.Node {
	st := fs.Stat{Path: t.id(name), Vers: t.vers(prefix)(), Kind: fs.Made, Mode: 0o444}
	var b bytes.Buffer
	if prefix != "" {
		st.Path = t.id("objects", prefix, name)
		if d, err := t.s.Digest(prefix); err == nil {
			st.Size = d.Count * objectDigestLine
		}
	} else if produce(context.Background(), &b, prefix) == nil {
		st.Size = int64(b.Len())
	}
	return fs.Bytes(st, func(ctx context.Context) ([]byte, error) {
		var b bytes.Buffer
		err := produce(ctx, &b, prefix)
		return b.Bytes(), err
	})
}

// objectDigestLine is the length of a line of objects/3f/digest: OID, tab,
// hash, newline.
const objectDigestLine = 32 + 1 + 32 + 1

// rootDigest is the digest file of the whole collection, as it is when asked.
func (t *tree) rootDigest() fs.Node {
	return fs.Text(t.id("digest"), func() string {
		var b bytes.Buffer
		if err := t.writeDigest(context.Background(), &b, ""); err != nil {
			return ""
		}
		return b.String()
	})
}

func (t *tree) writeDigest(_ context.Context, w io.Writer, _ string) error {
	d, err := t.s.Digest("")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%x\t%d\n", d.Sum, d.Count)
	return err
}

func (t *tree) writeFolderDigests(ctx context.Context, w io.Writer, _ string) error {
	all, err := t.s.Digests(ctx, "")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, d := range all {
		fmt.Fprintf(&b, "%s\t%x\t%d\n", d.Prefix, d.Sum, d.Count)
	}
	return write(w, b.Bytes())
}

func (t *tree) writeObjectDigests(ctx context.Context, w io.Writer, prefix string) error {
	var b []byte
	for e, err := range t.s.Scan(ctx, prefix, "") {
		if err != nil {
			return err
		}
		b = fmt.Appendf(b, "%s\t%x\n", e.OID, e.Hash)
		if len(b) > 32<<10 {
			if err := write(w, b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	return write(w, b)
}

// urlDir is a folder of the tree of URLs.
func (t *tree) urlDir(dir string) fs.Node {
	return removable{fs.Func{
		Path: t.id("url", dir),
		Vers: t.vers("url"),
		Look: func(_ context.Context, name string) (fs.Node, error) {
			n, err := t.s.Resolve(strings.TrimPrefix(dir+"/"+name, "/"))
			if err != nil {
				return nil, err
			}
			return t.named(dir, n), nil
		},
		Each: func(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
			return func(yield func(fs.Entry, error) bool) {
				for n, err := range t.s.Names(ctx, dir, after) {
					if err != nil {
						yield(fs.Entry{}, err)
						return
					}
					if !yield(fs.Entry{Name: n.Name, Node: t.named(dir, n)}, nil) {
						return
					}
				}
			}
		},
	}, t.remove}
}

func (t *tree) named(dir string, n Name) fs.Node {
	if n.Dir {
		return t.urlDir(strings.TrimPrefix(dir+"/"+n.Name, "/"))
	}
	return t.object(n.Entry)
}

// lookSince knows every cursor that can be gone on from.
func (t *tree) lookSince(_ context.Context, name string) (fs.Node, error) {
	text, produce := t.how(name)
	after, err := t.s.ParseCursor(text)
	if errors.Is(err, iofs.ErrInvalid) {
		err = notExist(name)
	}
	if err != nil {
		return nil, err
	}
	return t.since(name, after, produce), nil
}

// writeSince is Store.WriteSince or another of its kind.
type writeSince func(ctx context.Context, w io.Writer, after Cursor) error

// how returns what a name below since is without its end, and what that asks for.
func (t *tree) how(name string) (cursor string, produce writeSince) {
	if text, ok := strings.CutSuffix(name, ".zst"); ok {
		return text, t.s.WriteSinceZstd
	}
	if text, ok := strings.CutSuffix(name, ".gz"); ok {
		return text, t.s.WriteSinceGzip
	}
	return name, t.s.WriteSince
}

func (t *tree) since(name string, after Cursor, produce writeSince) fs.Node {
	made := fs.Stream(t.id("since", name), t.vers("")(), func(ctx context.Context, w io.Writer) error {
		return produce(ctx, w, after)
	})
	if zstd := strings.HasSuffix(name, ".zst"); after.Seq == 0 && (zstd || !strings.HasSuffix(name, ".gz")) {
		return wholeFile{made, t.s, zstd}
	}
	return made
}

func (t *tree) eachSince(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	return fs.Sorted([]fs.Entry{{Name: "0", Node: t.since("0", Cursor{}, t.s.WriteSince)}}, after)
}

// collection is soif or soif.zst.
type collection struct {
	t      *tree
	packed bool
}

func (c collection) Stat() fs.Stat {
	st := fs.Stat{Path: c.t.id("soif"), Vers: c.t.vers("")(), Kind: fs.Made, Mode: 0o444}
	if c.packed {
		st.Path = c.t.id("soif.zst")
		return st
	}
	c.t.s.mu.RLock()
	st.Size = c.t.s.totals.bytes
	c.t.s.mu.RUnlock()
	return st
}

// Open takes a snapshot, which can be read at any offset. Of soif.zst it can if
// all frames are ready; else they are written one after the other, and what was
// written is kept while the file is open.
func (c collection) Open(ctx context.Context, m fs.Mode) (fs.Handle, error) {
	if m&fs.Write != 0 {
		return nil, iofs.ErrPermission
	}
	sn, err := c.t.s.Snapshot()
	if err != nil {
		return nil, err
	}
	if !c.packed {
		return &snapshotHandle{sn, sn.Size(), sn.ReadAt}, nil
	}
	if err := sn.settle(); err != nil {
		return nil, errors.Join(err, sn.Close())
	}
	if n := sn.Ready(); n >= 0 {
		return &snapshotHandle{sn, n, sn.ReadZstdAt}, nil
	}
	h, err := fs.Stream(c.Stat().Path, 0, sn.WriteZstd).Open(ctx, m)
	if err != nil {
		return nil, errors.Join(err, sn.Close())
	}
	return &spooledHandle{h, sn}, nil
}

// snapshotHandle reads a snapshot.
type snapshotHandle struct {
	sn   *Snapshot
	size int64
	read func(p []byte, off int64) (int, error)
}

// Size is how long the stream is.
func (h *snapshotHandle) Size() int64 { return h.size }

func (h *snapshotHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, iofs.ErrInvalid
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return h.read(p, off)
}

func (h *snapshotHandle) WriteAt(context.Context, []byte, int64) (int, error) {
	return 0, iofs.ErrPermission
}
func (h *snapshotHandle) Flush(context.Context) error { return nil }
func (h *snapshotHandle) Close() error                { return h.sn.Close() }

// spooledHandle reads what is made of a snapshot.
type spooledHandle struct {
	fs.Handle
	sn *Snapshot
}

func (h *spooledHandle) Close() error { return errors.Join(h.Handle.Close(), h.sn.Close()) }
