package replica

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"

	"go.etcd.io/bbolt"

	"harvest/gather/store"
)

// # What peers read
//
//	heads                   the newest heads, see head.go
//	root                    32 hex digits that are equal where all heads are
//	changes/WRITER/VERSION  what the writer changed after a version, see record.go
//	sum/WRITER/node         the root of the writer's digests, see trie.go
//	sum/WRITER/aa/node      a node below it
//	sum/WRITER/aa/bb        the records of a leaf
//	sum/WRITER/aa/records   the records of all leaves below aa
//	batch/OID,OID…          up to 7 objects
//	pack/WRITER/aa          all objects of the writer below aa
//
// Objects come as a line with the first 16 hex digits of their hash, a space and
// their size, then their bytes; those that are not there are left out.

// Bounds of what is asked for.
const (
	maxDelta  = 1 << 16  // records in a log; past them, a walk
	maxBatch  = 7        // objects in a batch: a name has 255 bytes at most
	maxAnswer = 32 << 20 // bytes of a batch or a pack
)

func notExist(path string) error { return fmt.Errorf("%.80s: %w", path, iofs.ErrNotExist) }

// answer gives a file that peers read.
func (m *mirror) answer(path string) ([]byte, error) {
	kind, rest, _ := strings.Cut(path, "/")
	switch {
	case path == "heads":
		return m.headsFile(), nil
	case path == "root":
		return m.rootFile(), nil
	case kind == "batch":
		return m.batch(rest)
	}
	name, rest, ok := strings.Cut(rest, "/")
	w, err := parseWriter(name)
	if err != nil || !ok {
		return nil, notExist(path)
	}
	v := m.of(w)
	if v.filling || v.head.Key == nil {
		return nil, notExist(path)
	}
	switch kind {
	case "changes":
		return m.logFile(w, v, rest)
	case "sum":
		return m.sumFile(w, v, path, rest)
	case "pack":
		return m.packFile(w, path, rest)
	}
	return nil, notExist(path)
}

func (m *mirror) headsFile() []byte {
	var b bytes.Buffer
	heads, forks := m.heads()
	for i := range heads {
		b.WriteString(heads[i].line() + "\n")
	}
	for i := range forks {
		b.WriteString(forks[i].line() + "\n")
	}
	return b.Bytes()
}

// rootSize is how much of a file root tells whether all is equal.
const rootSize = 32

func (m *mirror) rootFile() []byte {
	root := m.rootNow()
	return fmt.Appendf(nil, "%x\n", root[:rootSize/2])
}

func (m *mirror) logFile(w Writer, v view, after string) (b []byte, err error) {
	var all []Record
	at, err := parseVersion(after)
	if err != nil {
		return nil, notExist("changes/" + w.String() + "/" + after)
	}
	if at != (Version{}) && at.less(v.floor) || v.head.less(at) {
		return nil, fmt.Errorf("log after %s, of %s to %s: %w", after, v.floor, v.head.Version, errFar)
	}
	err = m.db.View(func(tx *bbolt.Tx) error {
		// The head as the records have it: there may be a newer one by now.
		h := tx.Bucket([]byte("head")).Get(w[:])
		if len(h) <= 13 || h[12]&flagFilling != 0 {
			return notExist("changes/" + w.String())
		}
		b = append(append(b, h[13:]...), '\n')
		all, err = tableOf(tx, w).since(at, maxDelta)
		for i := range all {
			b = all[i].appendLine(b)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if at == (Version{}) {
		return b, nil // who begins may have the objects from elsewhere
	}
	return m.appendSmall(b, all), nil
}

// maxInline is how many bytes of objects follow a log.
const maxInline = 64 << 10

// appendSmall appends the objects of records, if they are few.
func (m *mirror) appendSmall(b []byte, all []Record) []byte {
	size := 0
	for i := range all {
		if size += int(all[i].Size); size > maxInline {
			return b
		}
	}
	if size == 0 {
		return b
	}
	b = append(b, '\n')
	for i := range all {
		if all[i].gone() {
			continue
		}
		if body, err := m.bodies.get(all[i].OID); err == nil && all[i].describes(body) {
			b = appendObject(b, body, all[i].Hash) // else who reads it will see that it is not there
		}
	}
	return b
}

// sumPrefix reads aa or aa/bb.
func sumPrefix(text string) (p []byte, ok bool) {
	flat := strings.Replace(text, "/", "", 1)
	p, err := hex.DecodeString(flat)
	return p, err == nil && isHex(flat) && (len(text) == 2 || len(text) == 5 && text[2] == '/')
}

func (m *mirror) sumFile(w Writer, v view, path, rest string) (b []byte, err error) {
	if rest == "node" {
		return v.trie.top().pack(), nil
	}
	what := ""
	for _, name := range []string{"/node", "/records"} {
		if r, ok := strings.CutSuffix(rest, name); ok && len(r) == 2 {
			rest, what = r, name
		}
	}
	p, ok := sumPrefix(rest)
	if !ok || len(p) == 1 && what == "" {
		return nil, notExist(path)
	}
	if what == "/node" {
		if s := v.trie.subs[p[0]]; s != nil {
			return s.node, nil
		}
		return nil, notExist(path)
	}
	err = m.db.View(func(tx *bbolt.Tx) error {
		b = tableOf(tx, w).records(p)
		return nil
	})
	if err == nil && len(b) == 0 {
		err = notExist(path)
	}
	return b, err
}

// appendObject appends an object as it is sent.
func appendObject(dst, body []byte, hash [32]byte) []byte {
	return append(append(dst, objectLine(hash, len(body))...), body...)
}

// objectLine stands before an object.
func objectLine(hash [32]byte, size int) string { return fmt.Sprintf("%x %d\n", hash[:8], size) }

func (m *mirror) batch(names string) (b []byte, err error) {
	list := strings.Split(names, ",")
	if len(list) > maxBatch {
		return nil, notExist("batch/" + names)
	}
	for _, name := range list {
		oid, err := store.ParseOID(name)
		if err != nil {
			return nil, notExist("batch/" + names)
		}
		body, err := m.bodies.get(oid)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(b) > 0 && len(b)+len(body) > maxAnswer {
			break
		}
		b = appendObject(b, body, sha256.Sum256(body))
	}
	return b, nil
}

func (m *mirror) packFile(w Writer, path, rest string) (b []byte, err error) {
	p, ok := sumPrefix(rest)
	if !ok || len(p) != 1 {
		return nil, notExist(path)
	}
	var recs []byte
	err = m.db.View(func(tx *bbolt.Tx) error {
		recs = tableOf(tx, w).records(p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all, err := parseRecords(p, recs)
	for i := range all {
		body, err := m.bodies.get(all[i].OID)
		if err != nil || !all[i].describes(body) {
			continue // who asks will see that it is not there
		}
		if b = appendObject(b, body, all[i].Hash); len(b) > maxAnswer {
			return nil, fmt.Errorf("%s: over %d bytes: %w", path, maxAnswer, iofs.ErrNotExist)
		}
	}
	return b, err
}

// parseObjects calls f with the objects of a batch or a pack, each with the beginning
// of the hash that it is said to have.
func parseObjects(b []byte, f func(hash [8]byte, body []byte) error) error {
	for len(b) > 0 {
		line, _, ok := bytes.Cut(b[:min(len(b), 40)], []byte("\n"))
		var hash [8]byte
		var size int
		if !ok {
			return fmt.Errorf("objects: no line before an object: %w", iofs.ErrInvalid)
		}
		name, text, _ := strings.Cut(string(line), " ")
		if _, err := fmt.Sscanf(text, "%d", &size); err != nil || len(name) != 16 || !isHex(name) || text != fmt.Sprint(size) {
			return fmt.Errorf("objects: line %.40q: %w", line, iofs.ErrInvalid)
		}
		hex.Decode(hash[:], []byte(name))
		rest := b[len(line)+1:]
		if size < 0 || size > len(rest) {
			return fmt.Errorf("objects: %d bytes of %d: %w", len(rest), size, iofs.ErrInvalid)
		}
		if err := f(hash, rest[:size]); err != nil {
			return err
		}
		b = rest[size:]
	}
	return nil
}
