package cache

import (
	"crypto/sha256"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"

	"harvest/cache/segment"
)

// maxCopied is the largest body that is copied behind its head, to be written with
// it in one piece. Larger ones are written from where they are.
const maxCopied = 16 << 10

// fast answers what can be answered without looking twice: a plain GET of what is in
// memory, fresh, and the same for all. done is false if that is not so.
func (cc *clientConn) fast() (done, keep bool) {
	q := &cc.q
	if q.Method != "GET" || q.Length != 0 {
		return false, false
	}
	plain, keep := cc.plain()
	if !plain {
		return false, false
	}
	conf := cc.c.conf.Load()
	if len(conf.urls)+len(conf.nocache) > 0 {
		return false, false
	}
	key, ok := cc.key()
	if !ok {
		return false, false
	}
	vs, ok := cc.c.mem.get(key)
	if !ok || len(vs) != 1 {
		return false, false
	}
	v, now := vs[0], time.Now()
	t := now.UnixNano()
	if !v.plain || v.rules != conf.rules || t >= v.until || !v.inside && v.size > 0 {
		return false, false
	}
	cc.c.used(v, now)
	return true, cc.give(v, now, keep)
}

// plain reports whether nothing in the header changes what is answered, and whether
// the connection goes on.
func (cc *clientConn) plain() (plain, keep bool) {
	keep = cc.q.Minor > 0
	for i := range cc.q.Header {
		name, value := cc.q.Header[i].Name, cc.q.Header[i].Value
		switch len(name) {
		case 3:
			if strings.EqualFold(name, "Via") {
				return false, false
			}
		case 5:
			if strings.EqualFold(name, "Range") {
				return false, false
			}
		case 6:
			if strings.EqualFold(name, "Pragma") || strings.EqualFold(name, "Expect") {
				return false, false
			}
		case 8:
			if strings.EqualFold(name, "CDN-Loop") || strings.EqualFold(name, "If-Match") || strings.EqualFold(name, "If-Range") {
				return false, false
			}
		case 10, 16:
			if !strings.EqualFold(name, "Connection") && !strings.EqualFold(name, "Proxy-Connection") {
				continue
			}
			switch {
			case strings.EqualFold(value, "keep-alive"):
				keep = true
			case strings.EqualFold(value, "close"):
				keep = false
			default:
				return false, false
			}
		case 13:
			if strings.EqualFold(name, "Cache-Control") || strings.EqualFold(name, "If-None-Match") {
				return false, false
			}
		case 17, 19:
			if strings.EqualFold(name, "If-Modified-Since") || strings.EqualFold(name, "If-Unmodified-Since") {
				return false, false
			}
		}
	}
	return true, keep
}

// key is that of the URL that is asked for, if it stands there as it is kept.
func (cc *clientConn) key() (k segment.Key, ok bool) {
	var space [512]byte
	b := space[:0]
	target := cc.q.Target
	switch {
	case cc.door.host:
		return k, false
	case cc.door.base != "":
		if target[0] != '/' {
			return k, false
		}
		b = append(b, cc.door.base...)
	case !isCanonical(target):
		return k, false
	}
	if len(b)+len(target) > len(space) || strings.IndexByte(target, '#') >= 0 {
		return k, false
	}
	b = append(b, target...)
	sum := sha256.Sum256(b)
	copy(k[:], sum[:])
	return k, true
}

// isCanonical reports whether an http URL is one that parseURL would not change. It
// may say no of one that is.
func isCanonical(s string) bool {
	rest, ok := strings.CutPrefix(s, "http://")
	if !ok {
		return false
	}
	colon := -1
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		switch {
		case c == '/':
			port := ""
			if colon >= 0 {
				port = rest[colon+1 : i]
			}
			return i > 0 && colon != 0 && (colon < 0 || port != "" && port != "80" && port[0] != '0')
		case c == ':' && colon < 0:
			colon = i
		case colon >= 0 && ('0' > c || c > '9'), !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '-'):
			return false
		}
	}
	return false
}

// give writes what is kept.
func (cc *clientConn) give(v *variant, now time.Time, keep bool) bool {
	t := now.UnixNano()
	b := append(cc.out[:0], v.head()...)
	b = append(b, "Age: "...)
	b = strconv.AppendInt(b, (v.age+t-v.came)/int64(time.Second), 10)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, v.size, 10)
	b = append(b, "\r\nVia: 1.1 "...)
	b = append(b, cc.c.via()...)
	b = append(b, " (harvest)\r\nCache-Status: harvest; hit; ttl="...)
	b = strconv.AppendInt(b, (v.until-t)/int64(time.Second), 10)
	switch {
	case !keep:
		b = append(b, "\r\nConnection: close\r\n\r\n"...)
	case cc.q.Minor == 0:
		b = append(b, "\r\nConnection: keep-alive\r\n\r\n"...)
	default:
		b = append(b, "\r\n\r\n"...)
	}
	var n int64
	var err error
	cc.mayWrite(now)
	body := v.body()
	if len(body) <= maxCopied {
		b = append(b, body...)
		var k int
		k, err = cc.conn.Write(b)
		n = int64(k)
	} else {
		two := net.Buffers{b, body}
		n, err = two.WriteTo(cc.conn)
	}
	cc.out = b[:0]
	defer runtime.KeepAlive(v)
	cc.c.count.hit(n)
	if acc := cc.c.access; acc.wants(true) {
		url := cc.q.Target
		if cc.door.base != "" {
			url = cc.door.base + url
		}
		acc.add(record{when: now, took: time.Since(now), client: cc.addr, door: cc.door.kind, method: "GET", url: url, status: statusIn(v.head()), bytes: v.size, how: "hit", minor: cc.q.Minor})
	}
	return err == nil && keep
}

// statusIn reads the status in a line that is known to have one.
func statusIn(head []byte) int {
	const at = len("HTTP/1.1 ")
	return int(head[at]-'0')*100 + int(head[at+1]-'0')*10 + int(head[at+2]-'0')
}

// mayWrite gives the client time to take what is written. Deadlines are costly to
// set: one of the last second does.
func (cc *clientConn) mayWrite(now time.Time) {
	if now.Sub(cc.writes) > time.Second {
		cc.writes = now
		cc.conn.SetWriteDeadline(now.Add(cc.c.conf.Load().limits.silence))
	}
}
