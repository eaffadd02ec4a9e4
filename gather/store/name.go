package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	iofs "io/fs"
	"iter"
	"strings"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// # The tree of URLs
//
// The path of http://host/a/b?q is http/host/a/b?q.soif: scheme, authority, the
// segments of the path; then the query stands in the last name. The rules, in
// this order:
//
//   - An authority that is empty is left out: file:///a is file/a.soif. A URL
//     without one has what follows the colon as its path: news:a.b is
//     news/a.b.soif. No path is the path /.
//   - An empty last segment is @: http://host/a/ is http/host/a/@.soif, and
//     http://host/a/?q is http/host/a/@?q.soif. An empty segment elsewhere is %2F.
//   - Bytes that a name cannot hold are percent-encoded: controls, blanks, bytes
//     that are no UTF-8, a / in a query; so are the names . and ..
//   - A folder's name that ends in .soif has %2Esoif instead, so that a name that
//     ends in .soif is an object and no other is. An object's name that ends in ~
//     and 32 hex digits has %7E for the ~.
//   - Of a name longer than 200 bytes the first 160 are kept (and no part of a
//     character), then ~ and the first 16 hex digits of the SHA-256 of the name.
//     A path longer than 4000 bytes, which no system call takes, is the scheme and
//     then ~ and 16 digits of the SHA-256 of the path.
//
// Several objects can have one path: the same URL from several gatherers, or
// URLs that the rules make equal (/a/ and /a/@, ? with / and with %2F). The one
// with the least OID has the plain name, whichever came first; each of the others
// has ~ and its OID before the .soif, as in effective_go~3fa9….soif. When the
// plain name becomes free, the next OID takes it.
//
// In the index a path is its names joined by zero bytes. No name holds a byte
// below 0x20, so the order of keys is the order of names in each folder, and the
// end of a folder is one seek away.
const (
	objectSuffix = ".soif"
	maxName      = 200
	keptName     = 160
	maxPath      = 4000
)

// Path returns where an object with a URL stands in the tree of URLs, unless
// another with the same path has the plain name.
func Path(url string) string { return strings.ReplaceAll(urlKey(url), "\x00", "/") }

// urlKey returns the path of a URL, its names joined by zero bytes.
func urlKey(url string) string {
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok {
		scheme, rest = "", url
	}
	path, query, hasQuery := strings.Cut(rest, "?")
	names := make([]string, 0, 8)
	names = append(names, scheme)
	if after, ok := strings.CutPrefix(path, "//"); ok {
		host, p, _ := strings.Cut(after, "/")
		if host != "" {
			names = append(names, host)
		}
		path = p
	} else {
		path = strings.TrimPrefix(path, "/")
	}
	names = append(names, strings.Split(path, "/")...)
	last := len(names) - 1
	for i, n := range names[:last] {
		names[i] = folderName(n)
	}
	leaf := names[last]
	if leaf == "" {
		leaf = "@"
	}
	if hasQuery {
		leaf += "?" + query
	}
	names[last] = objectName(leaf)
	key := strings.Join(names, "\x00")
	if len(key) > maxPath {
		sum := sha256.Sum256([]byte(key))
		return names[0] + "\x00~" + hex.EncodeToString(sum[:8]) + objectSuffix
	}
	return key
}

func folderName(n string) string {
	switch n {
	case "":
		return "%2F"
	case ".", "..":
		return strings.ReplaceAll(n, ".", "%2E")
	}
	n = short(escape(n))
	if stem, ok := strings.CutSuffix(n, objectSuffix); ok {
		n = stem + "%2Esoif"
	}
	return n
}

func objectName(n string) string {
	n = short(escape(n))
	if stem, _, ok := splitTwin(n + objectSuffix); ok {
		n = stem + "%7E" + n[len(stem)+1:]
	}
	return n + objectSuffix
}

// escape percent-encodes what a name cannot hold.
func escape(n string) string {
	clean := true
	for i := range len(n) {
		c := n[i]
		clean = clean && c > ' ' && c < 0x7f && c != '/'
	}
	if clean {
		return n
	}
	var b strings.Builder
	for len(n) > 0 {
		r, size := utf8.DecodeRuneInString(n)
		if r <= ' ' || r == 0x7f || r == '/' || r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, "%%%02X", n[0])
		} else {
			b.WriteString(n[:size])
		}
		n = n[size:]
	}
	return b.String()
}

// short keeps a name within what file systems take, with room for a suffix.
func short(n string) string {
	if len(n) <= maxName {
		return n
	}
	sum := sha256.Sum256([]byte(n))
	kept := keptName
	for !utf8.RuneStart(n[kept]) {
		kept--
	}
	return n[:kept] + "~" + hex.EncodeToString(sum[:8])
}

// twinKey returns the key under which an object stands whose plain name another
// one has.
func twinKey(key string, oid OID) string {
	return strings.TrimSuffix(key, objectSuffix) + "~" + oid.String() + objectSuffix
}

// splitTwin takes a key or name that twinKey made apart.
func splitTwin(name string) (stem string, oid OID, ok bool) {
	stem, ok = strings.CutSuffix(name, objectSuffix)
	at := len(stem) - 33
	if !ok || at < 0 || stem[at] != '~' {
		return "", OID{}, false
	}
	oid, err := ParseOID(stem[at+1:])
	return stem[:at], oid, err == nil
}

// putName enters an object at its key, and keeps the least OID at the plain name.
func putName(b *bbolt.Bucket, key string, oid OID) error {
	holder := b.Get([]byte(key))
	if holder == nil || bytes.Equal(holder, oid[:]) {
		return b.Put([]byte(key), oid[:])
	}
	if bytes.Compare(holder, oid[:]) < 0 {
		return b.Put([]byte(twinKey(key, oid)), oid[:])
	}
	old := OID(holder)
	if err := b.Put([]byte(twinKey(key, old)), old[:]); err != nil {
		return err
	}
	return b.Put([]byte(key), oid[:])
}

// deleteName is the reverse of putName.
func deleteName(b *bbolt.Bucket, key string, oid OID) error {
	if !bytes.Equal(b.Get([]byte(key)), oid[:]) {
		return b.Delete([]byte(twinKey(key, oid)))
	}
	prefix := []byte(strings.TrimSuffix(key, objectSuffix) + "~")
	c := b.Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if stem, heir, ok := splitTwin(string(k)); ok && len(stem) == len(prefix)-1 {
			v = bytes.Clone(v)
			if err := b.Delete([]byte(twinKey(key, heir))); err != nil {
				return err
			}
			return b.Put([]byte(key), v)
		}
	}
	return b.Delete([]byte(key))
}

// folderPrefix returns what the keys below a folder begin with.
func folderPrefix(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	for n := range strings.SplitSeq(dir, "/") {
		if n == "" || strings.ContainsFunc(n, func(r rune) bool { return r < ' ' }) {
			return "", fmt.Errorf("url %.100q: %w", dir, iofs.ErrNotExist)
		}
	}
	return strings.ReplaceAll(dir, "/", "\x00") + "\x00", nil
}

// Names yields the children of a folder of the tree of URLs that follow the
// name after, in order of their names. A folder costs one seek however much is
// below it. dir is "" or slash-separated names, such as `https/go.dev/doc`. A
// folder that is not there has no children.
func (s *Store) Names(ctx context.Context, dir, after string) iter.Seq2[Name, error] {
	return func(yield func(Name, error) bool) {
		prefix, err := folderPrefix(dir)
		if err == nil {
			err = s.flush()
		}
		for err == nil {
			var names []Name
			if names, err = s.someNames(prefix, after); err != nil || len(names) == 0 {
				break
			}
			for _, n := range names {
				if !yield(n, nil) {
					return
				}
			}
			after = names[len(names)-1].Name
			err = ctx.Err()
		}
		if err != nil {
			yield(Name{}, err)
		}
	}
}

// chunk is how many entries are read in one short transaction.
const chunk = 256

// someNames returns the next children of a folder.
func (s *Store) someNames(prefix, after string) (names []Name, err error) {
	err = s.view(func(v view) error {
		c := v.url.Cursor()
		at := prefix
		if after != "" {
			at += after + "\x01" // past the object of that name, and past the folder
		}
		k, oid := c.Seek([]byte(at))
		for len(names) < chunk && k != nil && bytes.HasPrefix(k, []byte(prefix)) {
			name, _, dir := strings.Cut(string(k[len(prefix):]), "\x00")
			if dir {
				names = append(names, Name{Name: name, Dir: true})
				k, oid = c.Seek([]byte(prefix + name + "\x01"))
				continue
			}
			if r, ok := v.find(OID(oid)); ok {
				names = append(names, Name{Name: name, Entry: r.Entry})
			}
			k, oid = c.Next()
		}
		return nil
	})
	return names, err
}

// Resolve looks a path of the tree of URLs up. The path of an object with ~ and
// its OID is found also where the list shows the plain name. One that is not
// there wraps fs.ErrNotExist.
func (s *Store) Resolve(path string) (Name, error) {
	absent := fmt.Errorf("url %.200q: %w", path, iofs.ErrNotExist)
	prefix, err := folderPrefix(path)
	if err != nil || path == "" {
		return Name{}, absent
	}
	key := prefix[:len(prefix)-1]
	_, name, _ := cutLast(path)
	n := Name{Name: name}
	if err := s.flush(); err != nil {
		return Name{}, err
	}
	err = s.view(func(v view) error {
		if !strings.HasSuffix(name, objectSuffix) {
			k, _ := v.url.Cursor().Seek([]byte(prefix))
			n.Dir = bytes.HasPrefix(k, []byte(prefix)) && k != nil
			if !n.Dir {
				return absent
			}
			return nil
		}
		oid := v.url.Get([]byte(key))
		if oid == nil {
			stem, twin, ok := splitTwin(key)
			if ok && bytes.Equal(v.url.Get([]byte(stem+objectSuffix)), twin[:]) {
				oid = twin[:]
			}
		}
		if oid == nil {
			return absent
		}
		r, ok := v.find(OID(oid))
		if !ok {
			return absent
		}
		n.Entry = r.Entry
		return nil
	})
	return n, err
}

func cutLast(path string) (dir, name string, ok bool) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:], true
	}
	return "", path, false
}
