package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"harvest/cache/http1"
	"harvest/cache/policy"
	"harvest/cache/segment"
)

// The meta of an object in the store, all numbers little-endian:
//
//	version   1  metaVersion
//	flags     1  metaAuthorized
//	status    2
//	age       4  seconds, as Age said
//	asked     8  nanoseconds since 1970
//	came      8
//	url       4  bytes
//	selecting 4  bytes
//	head      4  bytes
//	url
//	selecting    the fields of the request that Vary names, as lines
//	head         status line and fields as they are served, without those that are
//	             made for each answer: Content-Length, Age
const (
	metaVersion    = 1
	metaFixed      = 36
	metaAuthorized = 1
)

var errMeta = errors.New("the head of an object is damaged")

// appendMeta encodes a response.
func appendMeta(dst []byte, p *policy.Response, reason string) []byte {
	start := len(dst)
	dst = append(dst, metaVersion, 0)
	if p.Authorized {
		dst[start+1] |= metaAuthorized
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(p.Status))
	dst = binary.LittleEndian.AppendUint32(dst, ageOf(p.Header))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Asked.UnixNano()))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Came.UnixNano()))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(p.URL)))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = append(dst, p.URL...)
	at := len(dst)
	for _, f := range p.Selecting {
		dst = appendField(dst, f.Name, f.Value)
	}
	binary.LittleEndian.PutUint32(dst[start+28:], uint32(len(dst)-at))
	at = len(dst)
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(p.Status), 10)
	dst = append(dst, ' ')
	dst = append(dst, reason...)
	dst = append(dst, '\r', '\n')
	for _, f := range p.Header {
		if !strings.EqualFold(f.Name, "Content-Length") && !strings.EqualFold(f.Name, "Age") {
			dst = appendField(dst, f.Name, f.Value)
		}
	}
	binary.LittleEndian.PutUint32(dst[start+32:], uint32(len(dst)-at))
	return dst
}

func appendField(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ':', ' ')
	dst = append(dst, value...)
	return append(dst, '\r', '\n')
}

// ageOf is what Age says, 0 if it says nothing.
func ageOf(h http1.Header) uint32 {
	v, _ := h.Get("Age")
	v, _, _ = strings.Cut(v, ",")
	n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return uint32(min(n, 1<<31-1))
}

// A metaParts is where the parts of a meta are.
type metaParts struct{ url, selecting, head []byte }

func partsOf(b []byte) (m metaParts, err error) {
	if len(b) < metaFixed || b[0] != metaVersion {
		return m, errMeta
	}
	n := uint64(metaFixed)
	var cut [4]uint64
	cut[0] = n
	for i := range 3 {
		n += uint64(binary.LittleEndian.Uint32(b[24+4*i:]))
		cut[i+1] = n
	}
	if n != uint64(len(b)) {
		return m, errMeta
	}
	return metaParts{b[cut[0]:cut[1]], b[cut[1]:cut[2]], b[cut[2]:cut[3]]}, nil
}

// decodeMeta reads what appendMeta wrote.
func decodeMeta(b []byte) (p *policy.Response, reason string, err error) {
	parts, err := partsOf(b)
	if err != nil {
		return nil, "", err
	}
	p = &policy.Response{
		URL:        string(parts.url),
		Status:     int(binary.LittleEndian.Uint16(b[2:])),
		Authorized: b[1]&metaAuthorized != 0,
		Asked:      time.Unix(0, int64(binary.LittleEndian.Uint64(b[8:]))),
		Came:       time.Unix(0, int64(binary.LittleEndian.Uint64(b[16:]))),
	}
	if p.Selecting, err = parseFields(string(parts.selecting)); err != nil {
		return nil, "", err
	}
	head := string(parts.head)
	line, fields, ok := strings.Cut(head, "\r\n")
	if !ok || len(line) < len("HTTP/1.1 200 ") {
		return nil, "", errMeta
	}
	if p.Header, err = parseFields(fields); err != nil {
		return nil, "", err
	}
	if age := binary.LittleEndian.Uint32(b[4:]); age > 0 {
		p.Header.Add("Age", strconv.Itoa(int(age)))
	}
	return p, line[len("HTTP/1.1 200 "):], nil
}

// parseFields reads lines of fields.
func parseFields(s string) (h http1.Header, err error) {
	if s == "" {
		return nil, nil
	}
	h = make(http1.Header, 0, strings.Count(s, "\n")+2)
	for s != "" {
		line, rest, ok := strings.Cut(s, "\r\n")
		name, value, ok2 := strings.Cut(line, ": ")
		if !ok || !ok2 {
			return nil, errMeta
		}
		h = append(h, http1.Field{Name: name, Value: value})
		s = rest
	}
	return h, nil
}

// A variant is an object as memory has it: one response of a URL. It does not
// change; a newer one takes its place. Its bytes may be of an arena, and go with it:
// whoever uses them keeps it alive (runtime.KeepAlive).
type variant struct {
	ref  segment.Ref
	raw  []byte // meta, and the body behind it if it is in memory
	size int64  // of the body

	// What an answer to a plain request needs to know. It holds as long as the
	// rules are those it was made with.
	rules *policy.Rules
	age   int64 // when it came, in nanoseconds
	came  int64 // in nanoseconds since 1970
	until int64 // up to when it is fresh

	told   atomic.Int64 // when the store was told of a hit, in nanoseconds since 1970
	hits   atomic.Uint32
	metaTo uint32 // where meta ends in raw
	headAt uint32 // where the head begins, which ends with meta
	plain  bool   // no Vary, and it may be used without asking
	inside bool   // the body is in memory
}

// meta is as appendMeta made it.
func (v *variant) meta() []byte { return v.raw[:v.metaTo:v.metaTo] }

// head is the part of meta that is served.
func (v *variant) head() []byte { return v.raw[v.headAt:v.metaTo:v.metaTo] }

// body is nil unless it is in memory.
func (v *variant) body() []byte {
	if !v.inside {
		return nil
	}
	return v.raw[v.metaTo:]
}

// newVariant makes a variant of what the store has, or gets. With inside, body is
// kept in memory, copied into a, unless that is nil.
func newVariant(ref segment.Ref, meta []byte, size int64, body []byte, inside bool, rules *policy.Rules, a *arena) (*variant, error) {
	p, _, err := decodeMeta(meta)
	if err != nil {
		return nil, err
	}
	parts, _ := partsOf(meta)
	v := &variant{ref: ref, size: size, rules: rules, came: p.Came.UnixNano(), inside: inside, metaTo: uint32(len(meta)), headAt: uint32(len(meta) - len(parts.head))}
	if !inside {
		body = nil
	}
	v.hold(meta, body, a)
	life, _ := rules.Lifetime(p)
	v.age = int64(p.Age(p.Came))
	v.until = v.came + int64(life) - v.age
	use, _ := rules.Use(p, nil, p.Came)
	v.plain = use == policy.Fresh && !p.Header.Has("Vary")
	return v, nil
}

// hold copies the bytes of a variant to where they stay.
func (v *variant) hold(meta, body []byte, a *arena) {
	n := len(meta) + len(body)
	if a != nil {
		if b, of, err := a.get(n); err == nil {
			v.raw = append(append(b[:0], meta...), body...)
			runtime.AddCleanup(v, piece.release, of)
			return
		}
	}
	v.raw = append(append(make([]byte, 0, n), meta...), body...)
}

// response is the variant as the policy sees it.
func (v *variant) response() (*policy.Response, string) {
	p, reason, err := decodeMeta(v.meta())
	runtime.KeepAlive(v)
	if err != nil {
		panic("cache: " + err.Error()) // newVariant has read it
	}
	return p, reason
}

func (v *variant) url() string {
	parts, _ := partsOf(v.meta())
	url := string(parts.url)
	runtime.KeepAlive(v)
	return url
}

// weight is about how many bytes of memory the variant takes.
func (v *variant) weight() int64 { return int64(cap(v.raw)) + 288 }

// text is a field of the head as it is served; without decoding it.
func (v *variant) text(name string) string {
	defer runtime.KeepAlive(v)
	for line := range bytes.SplitSeq(v.head(), []byte("\r\n")) {
		if n, value, ok := bytes.Cut(line, []byte(": ")); ok && strings.EqualFold(string(n), name) {
			return string(value)
		}
	}
	return ""
}
