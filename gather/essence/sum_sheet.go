package essence

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A sheets is an Excel workbook being read.
type sheets struct {
	*ooxml
	shared [][]byte // texts that cells refer to
	dates  []bool   // of cell formats, whether they show a date
	epoch  time.Time
}

// maxShared bounds the bytes of shared texts that are kept.
const maxShared = 16 << 20

// workbook reads the sheets in the order they are shown; each one's name is a
// heading, a row a line, with tabs between cells.
func (x *ooxml) workbook(main string) {
	b := &sheets{ooxml: x, epoch: time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)}
	rels := x.relations(main)
	for _, r := range rels {
		switch r.kind {
		case "sharedStrings":
			b.texts(r.target)
		case "styles":
			b.formats(r.target)
		}
	}
	s := x.xml(main)
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k != xmlOpen {
			continue
		}
		switch string(s.name) {
		case "workbookPr":
			if v := s.attr("date1904"); v == "1" || v == "true" {
				b.epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
			}
		case "sheet":
			name := s.attr("name")
			x.d.heading(name)
			x.d.gap(2)
			x.d.add([]byte(name + "\n"))
			if r, ok := rels[s.attr("r:id")]; ok && r.kind == "worksheet" {
				b.sheet(r.target)
			}
		}
	}
}

// texts reads the shared texts: an si each, without how it is pronounced.
func (b *sheets) texts(part string) {
	s := b.xml(part)
	var one []byte
	room := maxShared
	for k := s.next(); k != xmlEnd; k = s.next() {
		switch name := string(s.name); {
		case k == xmlOpen && name == "si":
			one = nil
		case k == xmlOpen && name == "rPh":
			s.skip()
		case k == xmlOpen && name == "t":
			for s.next() == xmlText && room > len(one) {
				one = append(one, s.text...)
			}
		case k == xmlClose && name == "si":
			if room -= len(one) + 24; room < 0 {
				b.w.limit(b.c, "shared texts left out past "+strconv.Itoa(maxShared)+" bytes")
				return
			}
			b.shared = append(b.shared, one)
		}
	}
}

// formats finds which cell formats show a date: the built-in ones by number,
// others by the letters in them.
func (b *sheets) formats(part string) {
	own := make(map[string]bool)
	cells := false
	s := b.xml(part)
	for k := s.next(); k != xmlEnd; k = s.next() {
		switch name := string(s.name); {
		case name == "cellXfs":
			cells = k == xmlOpen
		case k != xmlOpen:
		case name == "numFmt":
			own[s.attr("numFmtId")] = isDateFormat(s.attr("formatCode"))
		case name == "xf" && cells && len(b.dates) < 1<<16:
			id := s.attr("numFmtId")
			n, _ := strconv.Atoi(id)
			b.dates = append(b.dates, own[id] || n >= 14 && n <= 22 || n >= 45 && n <= 47)
		}
	}
}

// isDateFormat looks for the letters of dates outside quotes and brackets.
func isDateFormat(code string) bool {
	var quote rune
	for _, r := range strings.ToLower(code) {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"':
			quote = '"'
		case r == '[':
			quote = ']'
		case r == 'y' || r == 'd' || r == 'h':
			return true
		}
	}
	return false
}

// sheet reads the cells of a sheet, and its links and comments.
func (b *sheets) sheet(part string) {
	d := b.d
	rels := b.relations(part)
	s := b.xml(part)
	kind, format := "", 0
	for k := s.next(); k != xmlEnd; k = s.next() {
		name := string(s.name)
		switch {
		case k == xmlClose && name == "row":
			d.gap(1)
		case k == xmlClose && name == "c":
			d.space('\t')
		case k != xmlOpen:
		case name == "c":
			kind = s.attr("t")
			format, _ = strconv.Atoi(s.attr("s"))
		case name == "f", name == "rPh":
			s.skip()
		case name == "v":
			b.value(kind, format, s.inner())
		case name == "t":
			d.addInner(s)
		case name == "hyperlink":
			if r := rels[s.attr("r:id")]; r.external {
				d.link(r.target)
			}
		}
		if d.cut {
			break
		}
	}
	for _, id := range sortedKeys(rels) {
		if r := rels[id]; r.kind == "comments" {
			b.remarks(r.target, "comment")
		}
	}
}

func (b *sheets) value(kind string, format int, v string) {
	switch kind {
	case "s":
		if i, err := strconv.Atoi(v); err == nil && i >= 0 && i < len(b.shared) {
			b.d.add(b.shared[i])
		}
		return
	case "b":
		v = map[string]string{"0": "FALSE", "1": "TRUE"}[v]
	case "", "n":
		if format >= 0 && format < len(b.dates) && b.dates[format] {
			v = b.day(v)
		}
	}
	b.d.add([]byte(v))
}

// day writes a date that is kept as days since the workbook's epoch.
func (b *sheets) day(v string) string {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n < 0 || n > 2958466 { // the year 9999
		return v
	}
	whole, part := math.Modf(n)
	t := b.epoch.AddDate(0, 0, int(whole)).Add(time.Duration(math.Round(part*86400)) * time.Second)
	switch {
	case whole == 0:
		return t.Format("15:04:05")
	case part == 0:
		return t.Format("2006-01-02")
	}
	return t.Format("2006-01-02 15:04:05")
}
