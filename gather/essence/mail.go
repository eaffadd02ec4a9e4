package essence

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"strings"

	"golang.org/x/net/html/charset"

	"harvest/gather/soif"
)

// mailFamily are the types of messages.
func mailFamily() map[string]entry {
	return map[string]entry{
		"Mail": {sum: sumMail, bytes: true},
		"News": {sum: sumMail, bytes: true},
	}
}

// words in headers, in whatever character set they are.
var wordDecoder = mime.WordDecoder{CharsetReader: func(name string, r io.Reader) (io.Reader, error) { return charset.NewReaderLabel(name, r) }}

// decodeWords undoes the coding of words in a header's value.
func decodeWords(s string) string {
	if !strings.Contains(s, "=?") {
		return s
	}
	if d, err := wordDecoder.DecodeHeader(s); err == nil {
		return d
	}
	return s
}

// mailHeaders adds what a message's headers say of it, and returns them and the
// body.
func (w *worker) mailHeaders(o *soif.Object, text []byte) (fields, []byte) {
	for bytes.HasPrefix(text, []byte("From ")) || bytes.HasPrefix(text, []byte(">From ")) {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	f, body := readFields(text)
	for name, v := range f {
		f[name] = string(decode([]byte(decodeWords(v)), ""))
	}
	for _, a := range []struct{ name, field string }{
		{"Title", "subject"}, {"Author", "from"}, {"Subject", "subject"}, {"From", "from"}, {"To", "to"}, {"Cc", "cc"}, {"Date", "date"},
		{"Newsgroups", "newsgroups"}, {"Organization", "organization"}, {"Message-Id", "message-id"}, {"In-Reply-To", "in-reply-to"}, {"Summary", "summary"},
	} {
		w.set(o, a.name, f.one(a.field))
	}
	return f, body
}

// sumMail summarizes a message, or the first of a mailbox with the subjects of
// the others, by its chosen headers and the first text in it.
func sumMail(w *worker, o *soif.Object, c *content, text []byte) {
	f, body := w.mailHeaders(o, text)
	subjects := w.list()
	if bytes.HasPrefix(text, []byte("From ")) {
		body = mailbox(body, subjects)
	}
	said := decode(w.mailText(f, body, 0), "")
	said = plainText(said)
	w.set(o, "Description", firstParagraph(pastQuotes(said), 400))
	w.set(o, "Headings", subjects.String())
	if k := f.one("keywords"); k != "" {
		w.set(o, "Keywords", k)
	} else {
		w.tell(o, c, said, "")
	}
	w.fullText(o, c, said)
}

// mailbox cuts a body at the next message, and lists the subjects of all that
// follow.
func mailbox(body []byte, subjects *list) []byte {
	first := body
	for n := 0; n < 10000; n++ {
		i := bytes.Index(body, []byte("\n\nFrom "))
		if i < 0 {
			break
		}
		if n == 0 {
			first = body[:i]
		}
		_, body, _ = bytes.Cut(body[i+2:], []byte("\n"))
		var f fields
		f, body = readFields(body)
		subjects.add(decodeWords(f.one("subject")))
	}
	return first
}

// pastQuotes is a text without the lines it quotes.
func pastQuotes(text []byte) []byte {
	out := make([]byte, 0, min(len(text), 8<<10))
	for line := range bytes.Lines(text[:min(len(text), 64<<10)]) {
		if len(line) > 0 && line[0] != '>' && !bytes.HasSuffix(bytes.TrimSpace(line), []byte("wrote:")) {
			out = append(out, line...)
		}
	}
	return out
}

// mailText is the first text of a body, decoded.
func (w *worker) mailText(f fields, body []byte, depth int) []byte {
	media, param, err := mime.ParseMediaType(f.one("content-type"))
	switch {
	case err == nil && strings.HasPrefix(media, "multipart/") && param["boundary"] != "" && depth < 8:
		return w.firstPart(body, param["boundary"], depth)
	case err == nil && media == "message/rfc822" && depth < 8:
		f, body := readFields(body)
		return w.mailText(f, body, depth+1)
	case err == nil && !strings.HasPrefix(media, "text/"):
		return nil
	}
	body = transfer(f.one("content-transfer-encoding"), body, w.lim.Text)
	if e, _ := charset.Lookup(param["charset"]); e != nil {
		if d, err := e.NewDecoder().Bytes(body); err == nil {
			body = d
		}
	}
	if media == "text/html" {
		var page soif.Object
		quiet := &worker{ctx: w.ctx, lim: w.lim, full: true, tab: w.tab, text: w.lim.Text}
		sumHTML(quiet, &page, &content{name: "part.html"}, body)
		return []byte(page.Text("Full-Text"))
	}
	return body
}

// firstPart is the text of the first part that has any.
func (w *worker) firstPart(body []byte, boundary string, depth int) []byte {
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for range 20 {
		p, err := r.NextRawPart()
		if err != nil {
			return nil
		}
		f := make(fields)
		for name, v := range p.Header {
			f[strings.ToLower(name)] = strings.Join(v, "\n")
		}
		b, _ := io.ReadAll(io.LimitReader(p, int64(len(body))))
		if t := w.mailText(f, b, depth+1); letters(t, 1) {
			return t
		}
	}
	return nil
}

// transfer undoes a transfer encoding, as far as it goes.
func transfer(coding string, body []byte, n int) []byte {
	var r io.Reader
	switch strings.ToLower(coding) {
	case "quoted-printable":
		r = quotedprintable.NewReader(bytes.NewReader(body))
	case "base64":
		r = base64.NewDecoder(base64.StdEncoding, bytes.NewReader(body))
	default:
		return body
	}
	b, _ := io.ReadAll(io.LimitReader(r, int64(n)))
	return b
}
