package crawl

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of what a URL that is not made up looks like.
const (
	maxRepeats  = 3  // of a run of segments
	maxSame     = 4  // of one segment, anywhere
	maxSegments = 40 // of a path
	maxKeys     = 24 // of a query
	maxSameKey  = 4
	maxAhead    = 3 // years that a calendar is followed into the future
)

// refuse returns what is wrong with a URL by itself, or "".
func refuse(u string) string {
	path, query, _ := strings.Cut(FilterPath(u), "?")
	if why := refusePath(path); why != "" {
		return why
	}
	if query != "" {
		if why := refuseQuery(query); why != "" {
			return why
		}
	}
	return farAhead(path, query)
}

func refusePath(path string) string {
	n := strings.Count(path, "/")
	if n < maxRepeats {
		return ""
	}
	if n > maxSegments {
		return fmt.Sprintf("a trap: a path of %d segments", n)
	}
	var buf [maxSegments + 1]string
	seg := buf[:0]
	for s := range strings.SplitSeq(path[1:], "/") {
		seg = append(seg, s)
	}
	for i, s := range seg {
		if numeric(s) {
			continue
		}
		same := 1
		for _, o := range seg[i+1:] {
			if o == s {
				same++
			}
		}
		if same >= maxSame && s != "" {
			return fmt.Sprintf("a trap: the segment %s is there %d times", clip(s), same)
		}
	}
	for cycle := 1; cycle*maxRepeats <= len(seg); cycle++ {
		for i := 0; i+cycle*maxRepeats <= len(seg); i++ {
			if repeats(seg[i:], cycle) {
				return "a trap: " + clip(strings.Join(seg[i:i+cycle], "/")) + " again and again"
			}
		}
	}
	return ""
}

// repeats reports whether the first segments come again and again at once, and
// are not numbers alone: 1/1/1 is a date, or a verse.
func repeats(seg []string, cycle int) bool {
	for k := cycle; k < cycle*maxRepeats; k++ {
		if seg[k] != seg[k-cycle] {
			return false
		}
	}
	return slices.ContainsFunc(seg[:cycle], func(s string) bool { return !numeric(s) })
}

func refuseQuery(query string) string {
	n := 0
	for key := range queryKeys(query) {
		if n++; n > maxKeys {
			return fmt.Sprintf("a trap: a query of more than %d parts", maxKeys)
		}
		same := 0
		for k := range queryKeys(query) {
			if k == key && !strings.HasSuffix(k, "[]") && !strings.HasSuffix(k, "%5B%5D") {
				same++
			}
		}
		if same > maxSameKey {
			return fmt.Sprintf("a trap: a query with %s %d times", clip(key), same)
		}
	}
	return ""
}

// queryKeys yields the keys of a query, in order.
func queryKeys(query string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
			key, _, _ := strings.Cut(part, "=")
			if !yield(key) {
				return
			}
		}
	}
}

func numeric(s string) bool {
	for i := range len(s) {
		if s[i]-'0' > 9 {
			return false
		}
	}
	return s != ""
}

// farAhead tells of a URL that is a page of a calendar of the far future: a
// year and a month in a path, or values of a query called so.
func farAhead(path, query string) string {
	year, month := 0, false
	for key, value := range dateParts(path, query) {
		n := leadingNumber(value)
		switch {
		case n >= 1000 && n <= 9999 && (key == "" || strings.Contains(key, "year") || strings.Contains(key, "date") || key == "y" || key == "yr"):
			year = max(year, n)
			month = month || len(value) > 5 && (value[4] == '-' || value[4] == '/')
		case n >= 1 && n <= 12 && len(value) <= 2:
			month = month || year != 0 || strings.Contains(key, "month") || key == "m"
		}
	}
	if now := time.Now().Year(); month && year > now+maxAhead && year < now+1000 {
		return fmt.Sprintf("a trap: a calendar of the year %d", year)
	}
	return ""
}

// dateParts yields what may be part of a date, with its key if it has one.
func dateParts(path, query string) func(func(key, value string) bool) {
	return func(yield func(key, value string) bool) {
		for s := range strings.SplitSeq(path, "/") {
			if s != "" && s[0]-'0' <= 9 && !yield("", s) {
				return
			}
		}
		for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
			key, value, _ := strings.Cut(part, "=")
			if value != "" && value[0]-'0' <= 9 && !yield(strings.ToLower(key), value) {
				return
			}
		}
	}
}

// leadingNumber is the number that s begins with, if more than four digits none.
func leadingNumber(s string) int {
	n := 0
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			break
		}
		if n = n*10 + int(c); n > 9999 {
			return 0
		}
	}
	return n
}

// shapesOf gives the names of the shapes that a URL has, each beginning with
// its kind.
func shapesOf(u string) []string {
	path, query, asked := strings.Cut(FilterPath(u), "?")
	names := make([]string, 0, 5)
	var keys strings.Builder
	if asked {
		keys.WriteByte('?')
		list := slices.Sorted(queryKeys(query))
		for _, k := range slices.Compact(list) {
			keys.WriteString(k + "=&")
		}
		names = append(names, string(queryShape)+path+keys.String(), string(askShape)+path)
	}
	number := generalize(path)
	if number != path {
		names = append(names, string(numberShape)+number+keys.String())
	}
	folder := folderOf(number)
	return append(names, string(nameShape)+folder+"*", string(treeShape)+folderOf(folder)+"*/*")
}

// folderOf is a path without its last segment.
func folderOf(path string) string {
	path = strings.TrimSuffix(path, "/")
	return path[:strings.LastIndexByte(path, '/')+1]
}

// generalize writes numbers, and segments that are names of sessions or keys,
// as one sign each.
func generalize(path string) string {
	var b strings.Builder
	for i, s := range strings.Split(path, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		if base, ext, _ := strings.Cut(s, "."); sessionLike(base) {
			b.WriteByte('*')
			if ext != "" {
				b.WriteString("." + ext)
			}
			continue
		}
		digits := false
		for k := range len(s) {
			d := s[k]-'0' <= 9
			switch {
			case !d:
				b.WriteByte(s[k])
			case !digits:
				b.WriteByte('#')
			}
			digits = d
		}
	}
	return b.String()
}

// sessionLike reports whether s looks drawn by lot: long, and of hexadecimal
// digits, or of letters and digits that change often.
func sessionLike(s string) bool {
	if _, id, ok := strings.Cut(strings.ToLower(s), ";jsessionid="); ok && id != "" {
		return true
	}
	if len(s) < 16 {
		return false
	}
	hex, changes := true, 0
	for i := range len(s) {
		hex = hex && (isHex(s[i]) || s[i] == '-')
		if i > 0 && (s[i]-'0' <= 9) != (s[i-1]-'0' <= 9) {
			changes++
		}
	}
	return hex && changes > 0 || changes >= len(s)/4
}
