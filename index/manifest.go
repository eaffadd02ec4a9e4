package index

import (
	"runtime"

	"harvest/index/segfile"
)

// Settings in a manifest, added up.
const (
	withoutPositions = 1
	withoutNumbers   = 2
)

func (s *Settings) bits() (b uint64) {
	if s.NoPositions {
		b |= withoutPositions
	}
	if s.NoNumbers {
		b |= withoutNumbers
	}
	return b
}

// load reads the index of a directory; a new one is empty.
func load(dir string, settings uint64) (v *view, next uint64, err error) {
	m, err := layout().Load(dir, settings)
	if err != nil {
		return nil, 0, err
	}
	var parts []part
	for i := range m.Segments {
		p, err := openPart(dir, &m.Segments[i])
		if err != nil {
			return nil, 0, err
		}
		parts = append(parts, p)
	}
	return newView(m.Mark, parts), m.Next, nil
}

func openPart(dir string, e *segfile.Entry) (part, error) {
	f, err := layout().OpenEntry(dir, e)
	if err != nil {
		return part{}, err
	}
	s, err := newSegment(f, e.Number)
	if err != nil {
		return part{}, err
	}
	if !e.Has(s.docs) {
		return part{}, f.Corrupt("it has %d documents, which the manifest does not say", s.docs)
	}
	if len(e.Gone) > 0 { // whose lengths are read
		if err := s.verifySection(secLengths); err != nil {
			return part{}, err
		}
	}
	return part{segment: s}.without(e.Gone), nil
}

// save makes v the index of the directory; see segfile.Manifest.Save.
func (v *view) save(dir string, settings, next uint64) (done bool, err error) {
	defer runtime.KeepAlive(v)
	m := segfile.Manifest{Settings: settings, Mark: v.mark, Next: next}
	for i := range v.parts {
		p := &v.parts[i]
		m.Segments = append(m.Segments, p.Entry(p.number, p.docs, p.gone))
	}
	return m.Save(dir, layout())
}
