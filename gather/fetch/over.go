package fetch

import (
	"hash/fnv"
	"mime"
	"net/mail"
	"strconv"
	"strings"
	"time"
)

// An overview is what a news server's overview tells of one message.
type overview struct {
	number  int64
	id      string // with its brackets
	subject string
	date    time.Time // zero: unknown
	size    int64
}

// parseOver reads one line of an overview: number, subject, from, date, id,
// references, bytes, lines, with tabs between (RFC 3977, section 8.3).
func parseOver(text string) (o overview, ok bool) {
	field := strings.Split(text, "\t")
	if len(field) < 5 {
		return o, false
	}
	var err error
	if o.number, err = strconv.ParseInt(field[0], 10, 64); err != nil || o.number < 0 {
		return o, false
	}
	o.id = strings.TrimSpace(field[4])
	if len(o.id) < 3 || len(o.id) > 998 || o.id[0] != '<' || o.id[len(o.id)-1] != '>' {
		return o, false
	}
	o.subject = subject(field[1])
	o.date, _ = mail.ParseDate(field[3])
	if len(field) > 6 {
		o.size, _ = strconv.ParseInt(strings.TrimSpace(field[6]), 10, 64)
		o.size = max(o.size, 0)
	}
	return o, true
}

// subject undoes the coding of words that are not ASCII.
func subject(s string) string {
	if strings.Contains(s, "=?") {
		if d, err := new(mime.WordDecoder).DecodeHeader(s); err == nil {
			s = d
		}
	}
	return strings.TrimSpace(s)
}

// messageFact tells a message from any other. What was posted does not change.
func messageFact(id string) fact {
	h := fnv.New64a()
	h.Write([]byte(id))
	return fact{size: int64(h.Sum64() >> 1)}
}
