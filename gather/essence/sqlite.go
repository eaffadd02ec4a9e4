package essence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"harvest/gather/soif"
)

// A sqliteFile reads the schema of an SQLite 3 database: the table sqlite_schema,
// a b-tree of records whose root is page 1. The format is that of
// sqlite.org/fileformat2.html; nothing else of the file is read.
type sqliteFile struct {
	r      io.ReaderAt
	size   int64
	page   int // bytes
	usable int // of them, for content
	left   int // pages that may still be read
	rows   []sqliteRow
}

// A sqliteRow is one of the schema: a table, an index, a view, a trigger.
type sqliteRow struct{ kind, name, table, sql string }

const (
	maxSQLitePages = 4096
	maxSQLiteRows  = 5000
	maxSQLiteSQL   = 64 << 10
)

var errSQLite = errors.New("sqlite: damaged")

// openSQLite reads the header.
func openSQLite(r io.ReaderAt, size int64) (*sqliteFile, []byte, error) {
	h := make([]byte, 100)
	if _, err := r.ReadAt(h, 0); err != nil || string(h[:16]) != "SQLite format 3\x00" {
		return nil, nil, errSQLite
	}
	page := int(binary.BigEndian.Uint16(h[16:]))
	if page == 1 {
		page = 65536
	}
	if page < 512 || page&(page-1) != 0 || int(h[20]) > page-480 {
		return nil, nil, errSQLite
	}
	return &sqliteFile{r: r, size: size, page: page, usable: page - int(h[20]), left: maxSQLitePages}, h, nil
}

// read reads page n, counted from 1.
func (f *sqliteFile) read(n uint32) ([]byte, error) {
	if f.left--; f.left < 0 || n == 0 {
		return nil, errSQLite
	}
	b := make([]byte, f.page)
	if _, err := f.r.ReadAt(b, int64(n-1)*int64(f.page)); err != nil {
		return nil, errSQLite
	}
	return b[:f.usable], nil
}

// tree reads the rows below a page of the schema's b-tree.
func (f *sqliteFile) tree(n uint32, depth int) error {
	b, err := f.read(n)
	if err != nil || depth > 20 {
		return errSQLite
	}
	h := 0
	if n == 1 {
		h = 100
	}
	cells, first := int(binary.BigEndian.Uint16(b[h+3:])), h+8
	interior := b[h] == 5
	if interior {
		first = h + 12
	} else if b[h] != 13 {
		return errSQLite
	}
	for i := range cells {
		if len(f.rows) >= maxSQLiteRows {
			return nil
		}
		if first+2*i+2 > len(b) {
			return errSQLite
		}
		at := int(binary.BigEndian.Uint16(b[first+2*i:]))
		if at+4 > len(b) {
			return errSQLite
		}
		if interior {
			err = f.tree(binary.BigEndian.Uint32(b[at:]), depth+1)
		} else {
			err = f.cell(b[at:])
		}
		if err != nil {
			return err
		}
	}
	if interior {
		return f.tree(binary.BigEndian.Uint32(b[h+8:]), depth+1)
	}
	return nil
}

// varint takes a number of one to nine bytes off b.
func varint(b []byte) (uint64, []byte) {
	var v uint64
	for i := 0; i < 9; i++ {
		if i >= len(b) {
			return 0, nil
		}
		if i == 8 {
			return v<<8 | uint64(b[i]), b[i+1:]
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, b[i+1:]
		}
	}
	return v, nil
}

// cell reads a row: its length, its number, and its record, which may go on in
// overflow pages.
func (f *sqliteFile) cell(b []byte) error {
	n, b := varint(b)
	_, b = varint(b)
	if b == nil || n > 1<<30 {
		return errSQLite
	}
	size := int(n)
	here := size
	if most := f.usable - 35; size > most {
		least := (f.usable-12)*32/255 - 23
		if here = least + (size-least)%(f.usable-4); here > most {
			here = least
		}
	}
	if here > len(b) {
		return errSQLite
	}
	record := append([]byte(nil), b[:here]...)
	if here < size && here+4 <= len(b) {
		next := binary.BigEndian.Uint32(b[here:])
		for next != 0 && len(record) < min(size, maxSQLiteSQL) {
			p, err := f.read(next)
			if err != nil {
				break
			}
			next = binary.BigEndian.Uint32(p)
			record = append(record, p[4:min(len(p), 4+size-len(record))]...)
		}
	}
	f.record(record)
	return nil
}

// record takes the columns of a row: type, name, tbl_name, rootpage, sql.
func (f *sqliteFile) record(b []byte) {
	n, types := varint(b)
	if types == nil || n > uint64(len(b)) {
		return
	}
	body := b[n:]
	types = types[:max(0, int(n)-(len(b)-len(types)))]
	var text [5]string
	for i := 0; i < 5 && len(types) > 0; i++ {
		var t uint64
		t, types = varint(types)
		size := [...]uint64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}
		length := uint64(0)
		switch {
		case t < 10:
			length = size[t]
		case t >= 12:
			length = (t - 12) / 2
		}
		length = min(length, uint64(len(body)))
		if t >= 13 && t%2 == 1 {
			text[i] = string(body[:length])
		}
		body = body[length:]
	}
	f.rows = append(f.rows, sqliteRow{text[0], text[1], text[2], text[4]})
}

// sumSQLite summarizes a database by its tables and their columns.
func sumSQLite(w *worker, o *soif.Object, c *content, text []byte) {
	r, size, err := w.whole(c)
	if err != nil {
		w.limit(c, "sqlite: "+err.Error())
		return
	}
	f, h, err := openSQLite(r, size)
	if err != nil {
		w.limit(c, err.Error())
		return
	}
	if err := f.tree(1, 0); err != nil {
		w.limit(c, err.Error())
	}
	tables, columns, s := w.list(), w.list(), &symbols{seen: make(map[string]bool), room: symbolRoom * w.lim.Attr}
	n := 0
	for _, row := range f.rows {
		row.name = string(decode([]byte(row.name), ""))
		if strings.HasPrefix(row.name, "sqlite_") {
			continue
		}
		if row.kind == "table" || row.kind == "view" {
			n++
			tables.add(row.name)
			names := sqlColumns(row.sql)
			columns.add(row.name + ": " + strings.Join(names, " "))
			for _, c := range names {
				s.add([]byte(c), true)
			}
			s.add([]byte(row.name), false)
		} else {
			s.add([]byte(row.name), true)
		}
	}
	w.set(o, "Title", c.name)
	what := fmt.Sprintf("SQLite 3 database, %d tables and views, pages of %d bytes", n, f.page)
	if id := binary.BigEndian.Uint32(h[68:]); id != 0 {
		what += fmt.Sprintf(", application %#x", id)
	}
	w.set(o, "Description", what)
	w.set(o, "Headings", columns.String())
	w.symbols(o, c, s)
}

// sqlWords are those that begin what is no column in CREATE TABLE.
var sqlWords = wordSet("primary unique check foreign constraint")

var sqlColumn = expression("^[ \\t\\r\\n]*(?:\"([^\"]+)\"|`([^`]+)`|\\[([^\\]]+)\\]|([\\w$]+))")

// sqlColumns are the columns that a CREATE TABLE names.
func sqlColumns(sql string) []string {
	i := strings.IndexByte(sql, '(')
	if i < 0 {
		return nil
	}
	var names []string
	depth, start := 0, i+1
	for ; i < len(sql) && len(names) < 500; i++ {
		switch sql[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 || depth == 1 && sql[i] == ',' {
			if m := sqlColumn().FindStringSubmatch(sql[min(start, i):i]); m != nil {
				if n := m[1] + m[2] + m[3] + m[4]; m[4] == "" || !sqlWords[strings.ToLower(n)] {
					names = append(names, clean(n))
				}
			}
			start = i + 1
		}
		if depth == 0 {
			break
		}
	}
	return names
}
