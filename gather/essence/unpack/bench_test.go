package unpack

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// BenchmarkUnpack reads what real programs have made of 8 MB of words.
func BenchmarkUnpack(b *testing.B) {
	words := strings.Repeat("the quick brown fox, and then a line of other words that follow it\n", 1<<17)
	text := []byte(words)
	for i := range text { // so that it does not pack to nothing
		if i%7 == 0 {
			text[i] = 'a' + byte(uint32(i)*2654435761>>27)%26
		}
	}
	for _, c := range []struct {
		name, command string
		open          func([]byte) (io.Reader, error)
	}{
		{"compress", "compress -f -c", func(p []byte) (io.Reader, error) { return NewZ(bytes.NewReader(p)) }},
		{"lzma", "xz --format=lzma -2 -c", func(p []byte) (io.Reader, error) { return NewLZMA(bytes.NewReader(p), memory) }},
		{"lzip", "lzip -2 -c", func(p []byte) (io.Reader, error) { return NewLzip(bytes.NewReader(p), memory) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			write(b, dir+"/x", text)
			p := run(b, dir, strings.Fields(c.command)[0], c.command+" <x")
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r, err := c.open(p)
				if err == nil {
					_, err = io.Copy(io.Discard, r)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
