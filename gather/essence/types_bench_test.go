package essence

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkTypes summarizes each golden file as what it is, repeated to 256 KiB
// where text may be.
func BenchmarkTypes(b *testing.B) {
	names, _ := filepath.Glob("testdata/in/*")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		typ := typeOf(b, filepath.Base(name), text)
		e, ok := summarizers()[typ]
		if !ok || !oursToTest[typ] && languages()[typ] == nil || len(text) == 0 {
			continue
		}
		if !e.bytes {
			text = bytes.Repeat(text, max(1, (256<<10)/len(text)))
		}
		b.Run(typ, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				as(b, typ, text)
			}
		})
	}
}
