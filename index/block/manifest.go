package block

import (
	"runtime"

	"harvest/index/segfile"
)

// settings is what a manifest says of an index: its grain, and withoutNumbers.
func (e *engine) settings() uint64 {
	n := uint64(e.grain)
	if e.set.NoNumbers {
		n |= withoutNumbers
	}
	return n
}

const withoutNumbers = 4

// load reads the index of the directory; a new one is empty.
func (e *engine) load() (*view, error) {
	m, err := files().Load(e.dir, e.settings())
	if err != nil {
		return nil, err
	}
	v := &view{mark: m.Mark, next: m.Next}
	for i := range m.Segments {
		entry := &m.Segments[i]
		f, err := files().OpenEntry(e.dir, entry)
		if err != nil {
			return nil, err
		}
		s, err := newSegment(f, entry.Number, e.grain)
		if err != nil {
			return nil, err
		}
		if !entry.Has(s.docs) {
			return nil, f.Corrupt("it has %d documents, which the manifest does not say", s.docs)
		}
		v.parts = append(v.parts, part{segment: s}.without(entry.Gone))
	}
	return v, nil
}

// save makes v the index of the directory; see segfile.Manifest.Save.
func (e *engine) save(v *view) (done bool, err error) {
	defer runtime.KeepAlive(v)
	m := segfile.Manifest{Settings: e.settings(), Mark: v.mark, Next: v.next}
	for i := range v.parts {
		p := &v.parts[i]
		m.Segments = append(m.Segments, p.Entry(p.number, p.segment.docs, p.gone))
	}
	return m.Save(e.dir, files())
}
