package replica

import (
	"bytes"
	"reflect"
	"testing"

	"harvest/gather/store"
)

func testRecords() []Record {
	return []Record{
		{OID: store.OID{1, 2, 3}, Hash: [32]byte{9}, Version: Version{1, 7}, Updated: 5, TTL: 6, Size: 7},
		{OID: store.OID{1, 2, 4}, Hash: [32]byte{8}, Version: Version{2, 8}, Size: MaxObject},
	}
}

func testHead(tb testing.TB) Head {
	h := Head{Version: Version{3, 9}, Count: 2, Time: 77, Digest: digest{1}}
	h.sign("mirror", testKey(1))
	must(tb, h.verify("mirror"))
	return h
}

// FuzzHeads reads heads: what is taken is what is written again.
func FuzzHeads(f *testing.F) {
	h := testHead(f)
	o := h
	o.Digest[0]++
	o.sign("mirror", testKey(1))
	fk := fork{h, o}
	f.Add([]byte(h.line() + "\n"))
	f.Add([]byte(h.line() + "\n" + fk.line() + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		heads, forks, err := parseHeads(b)
		if err != nil {
			return
		}
		var out []byte
		for i := range heads {
			out = append(out, heads[i].line()+"\n"...)
		}
		for i := range forks {
			out = append(out, forks[i].line()+"\n"...)
		}
		again, forksAgain, err := parseHeads(out)
		if err != nil || !reflect.DeepEqual(heads, again) || !reflect.DeepEqual(forks, forksAgain) {
			t.Errorf("got %v, %v, %v, want %v, %v", again, forksAgain, err, heads, forks)
		}
	})
}

// FuzzLog reads logs of changes.
func FuzzLog(f *testing.F) {
	h := testHead(f)
	b := []byte(h.line() + "\n")
	for _, r := range append(testRecords(), Record{OID: store.OID{5}, Version: Version{2, 9}}) {
		b = r.appendLine(b)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		head, recs, objects, err := parseLog(b)
		if err != nil {
			return
		}
		out := []byte(head.line() + "\n")
		for i := range recs {
			out = recs[i].appendLine(out)
		}
		_, again, _, err := parseLog(append(append(out, '\n'), objects...))
		if err != nil || !reflect.DeepEqual(recs, again) {
			t.Errorf("got %v, %v, want %v", again, err, recs)
		}
	})
}

// FuzzRecords reads the records of leaves.
func FuzzRecords(f *testing.F) {
	var b []byte
	for _, r := range testRecords() {
		b = r.append(b)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if recs, err := parseRecords([]byte{1}, b); err == nil {
			var out []byte
			for i := range recs {
				out = recs[i].append(out)
			}
			if !bytes.Equal(out, b) {
				t.Errorf("got %x, want %x", out, b)
			}
		}
		if all, err := cutLeaves(1, b); err == nil {
			n := 0
			for _, leaf := range all {
				n += len(leaf)
			}
			if n != len(b) {
				t.Errorf("got leaves of %d bytes, want %d", n, len(b))
			}
		}
	})
}

// FuzzNode reads nodes of digests: there is one way to write each.
func FuzzNode(f *testing.F) {
	c := new(children)
	c[3], c[255] = digest{1}, digest{2}
	f.Add(c.pack())
	f.Add(new(children).pack())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := unpackNode(b)
		if err != nil || len(b) == 0 {
			return
		}
		if got := c.pack(); !bytes.Equal(got, b) {
			t.Errorf("got %x, want %x", got, b)
		}
	})
}

// FuzzObjects reads batches of objects.
func FuzzObjects(f *testing.F) {
	f.Add(appendObject(appendObject(nil, []byte("one\n"), [32]byte{1}), nil, [32]byte{2}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out []byte
		err := parseObjects(b, func(hash [8]byte, body []byte) error {
			var h [32]byte
			copy(h[:], hash[:])
			out = appendObject(out, body, h)
			return nil
		})
		if err == nil && !bytes.Equal(out, b) {
			t.Errorf("got %q, want %q", out, b)
		}
	})
}

// FuzzConfig reads configs.
func FuzzConfig(f *testing.F) {
	f.Add("source path=broker/papers every=5s\nmember path=tcp!h!5640/replica/papers\nallow group=staff\nfull every=1h\ntombstones keep=2h\n")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseConfig(text); err == nil && c.full <= 0 {
			t.Errorf("got full every=%s", c.full)
		}
	})
}
