package essence

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"harvest/gather/essence/unpack"
)

// A pdfDetached has pdfdetach, in a jail, take the attachments out of a file that is
// encrypted for nobody.
type pdfDetached struct {
	w     *worker
	c     *content
	in    *counter
	names []string
	n     int
}

// detach saves an attachment in the jail, where there is no /dev/stdout.
const detach = `pdfdetach -save "$1" -o attachment "$2" && cat attachment`

// encryptedPDF lists the attachments of a file that is encrypted.
func (w *worker) encryptedPDF(c *content, in *counter) (archive, func(), error) {
	list, err := w.run(c, "pdfdetach", "-list", "-enc", "UTF-8", "{}")
	if err != nil {
		return nil, nil, err
	}
	a := &pdfDetached{w: w, c: c, in: in}
	for line := range bytes.Lines(list) {
		if number, name, ok := strings.Cut(strings.TrimRight(string(line), "\n"), ": "); ok && number == strconv.Itoa(len(a.names)+1) {
			a.names = append(a.names, name)
		}
	}
	return a, keepNothing, nil
}

func (a *pdfDetached) Next() (*unpack.Header, error) {
	if a.n == len(a.names) {
		return nil, io.EOF
	}
	a.n++
	h := &unpack.Header{Name: a.names[a.n-1], Size: -1, Packed: -1, Regular: true}
	var b []byte
	b, h.Err = a.w.run(a.c, "sh", "-c", detach, "sh", strconv.Itoa(a.n), "{}")
	a.in.r = bytes.NewReader(b)
	return h, nil
}

func (a *pdfDetached) Read(p []byte) (int, error) { return a.in.Read(p) }
