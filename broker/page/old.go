package page

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A BrokerQuery.cf of the first Harvest said how its pages look: definitions
// between tags, with variables in them.
//
//	<PrintObject>
//	$objectnum <A HREF="$url"><STRONG>$desc</STRONG></A>
//	$opaque
//	</PrintObject>
//	<ObjectNumPrintf>
//	(%2d)
//	</ObjectNumPrintf>
//
// It is translated into a template. A definition that is missing is that of the
// default; what was Perl, but for substitutions in lines, has no meaning here.

// Ignored is something in a BrokerQuery.cf that has no effect.
type Ignored struct {
	Line      int
	Name, Why string
}

// definitions are those with a meaning, and the part of the default that stands
// for each that is missing.
var definitions = map[string]string{
	"ResultHeader":      `{{template "begin" .}}{{template "header" .}}`,
	"ResultSetBegin":    "<dl>\n",
	"PrintObject":       `<dt>{{.Number}}. <a href="{{.Link}}">{{or .Title .URL}}</a></dt><dd>{{template "lines" .}}</dd>` + "\n",
	"ResultSetEnd":      "</dl>\n",
	"TruncateWarning":   `{{template "truncated" .}}`,
	"EndBrokerResults":  "<p>{{.Total}} objects, {{.Lines}} lines.</p>\n",
	"FailBrokerResults": `{{template "failure" .}}`,
	"BrokerDown":        `{{template "failure" .}}`,
	"ResultTrailer":     `{{template "trailer" .}}</body></html>` + "\n",
	"ObjectNumPrintf":   "",
	"MatchedLineSub":    "",
}

// noMeaning are definitions without an effect, and why.
var noMeaning = map[string]string{
	"Timeout":           "how long a query may take is in config",
	"InitFunction":      "it is a program in Perl",
	"PerObjectFunction": "it is a program in Perl",
	"HarvestUrl":        "",
	"BrokerDown":        "",
}

var (
	oldTag = regexp.MustCompile(`^[ \t]*<([A-Z][A-Za-z]+)>[ \t]*$`)
	oldVar = regexp.MustCompile(`\$(\{\w+\}|\w+)`)
)

// IsOld reports whether a text is a BrokerQuery.cf: one of its lines is the tag
// of a definition.
func IsOld(text string) bool {
	for line := range strings.Lines(text) {
		if m := oldTag.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil && known(m[1]) {
			return true
		}
	}
	return false
}

func known(name string) bool {
	_, has := definitions[name]
	_, none := noMeaning[name]
	return has || none
}

// A definition is one that was read.
type definition struct {
	line int
	text string
}

// Translate makes a template of a BrokerQuery.cf. An error is an *Error.
func Translate(text string) (template string, ignored []Ignored, err error) {
	all, err := oldDefinitions(text)
	if err != nil {
		return "", nil, err
	}
	o := &old{all: all}
	for name, d := range all {
		if _, ok := definitions[name]; ok {
			continue
		}
		why, ok := noMeaning[name]
		if !ok || why == "" {
			why = "it is used nowhere"
		}
		o.ignore(d.line, name, "%s", why)
	}
	t := o.template()
	slices.SortFunc(o.ignored, func(a, b Ignored) int { return a.Line - b.Line })
	return t, o.ignored, nil
}

func oldDefinitions(text string) (map[string]definition, error) {
	all := make(map[string]definition)
	var d definition
	name, n := "", 0
	for line := range strings.Lines(text) {
		n++
		bare := strings.TrimRight(line, "\r\n")
		switch m := oldTag.FindStringSubmatch(bare); {
		case name != "" && strings.TrimSpace(bare) == "</"+name+">":
			d.text = strings.TrimSuffix(d.text, "\n")
			all[name] = d
			name = ""
		case name != "":
			if cont, ok := strings.CutSuffix(bare, `\`); ok { // joined with the next
				d.text += cont
			} else {
				d.text += bare + "\n"
			}
		case m != nil:
			name, d = m[1], definition{line: n}
		case strings.TrimSpace(bare) != "" && !strings.HasPrefix(strings.TrimSpace(bare), "#"):
			return nil, &Error{n, 1, "outside of definitions, which begin with <Name>"}
		}
	}
	if name != "" {
		return nil, &Error{d.line, 1, fmt.Sprintf("<%s> has no end", name)}
	}
	return all, nil
}

// An old is a BrokerQuery.cf on its way to a template.
type old struct {
	all     map[string]definition
	ignored []Ignored
}

func (o *old) ignore(line int, name, format string, arg ...any) {
	o.ignored = append(o.ignored, Ignored{line, name, fmt.Sprintf(format, arg...)})
}

// template puts the parts together in the order of the original.
func (o *old) template() string {
	number := o.numbers()
	subs := o.subs()
	var b strings.Builder
	part := func(name string) { b.WriteString(o.part(name, number)) }
	part("ResultHeader")
	b.WriteString(`{{if .Failure}}`)
	if _, ok := o.all["FailBrokerResults"]; ok {
		part("FailBrokerResults")
	} else {
		part("BrokerDown")
	}
	b.WriteString(`{{else}}`)
	part("ResultSetBegin")
	b.WriteString(`{{range .Hits}}`)
	part("PrintObject")
	b.WriteString(`{{end}}`)
	part("ResultSetEnd")
	b.WriteString(`{{if .Truncated}}`)
	part("TruncateWarning")
	b.WriteString(`{{end}}`)
	part("EndBrokerResults")
	b.WriteString(`{{end}}`)
	part("ResultTrailer")
	fmt.Fprintf(&b, "{{define \"lines\"}}{{range .Lines}}%s\n{{end}}{{end}}\n", subs)
	i := strings.Index(Default, `{{define "header"}}`)
	b.WriteString(`{{define "begin"}}<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{{.Query}} - {{.Broker}}</title></head><body>{{end}}` + "\n")
	b.WriteString(Default[i:])
	return b.String()
}

// oldVars are the variables of the original: those of a page, and of an object.
var oldVars = map[string]string{
	"maxresult": "{{len $.Hits}}", "host": "{{$.Broker}}", "port": "", "query": "{{$.Query}}", "bquery": "{{$.Query}}", "nobjects": "{{$.Total}}", "nopaquelines": "{{$.Lines}}",
}

var oldObjectVars = map[string]string{
	"objectnum": "", "desc": "{{or .Title .URL}}", "opaque": `{{template "lines" .}}`,
	"A": "{{.Access}}", "H": "{{.Host}}", "P": "{{.Path}}", "D": "{{.Folder}}", "F": "{{.Basename}}", "url": "{{.Link}}",
	"cs_url": "{{.File}}", "cs_a": "", "cs_h": "", "cs_p": "{{.File}}", "cs_d": "", "cs_f": "{{.File}}",
}

// part is a definition as a piece of a template.
func (o *old) part(name, number string) string {
	d, ok := o.all[name]
	if !ok {
		return definitions[name]
	}
	text := strings.ReplaceAll(d.text, "{{", "{{`{{`}}")
	return oldVar.ReplaceAllStringFunc(text, func(v string) string {
		v = strings.Trim(v, "${}")
		if to, ok := oldVars[v]; ok {
			return to
		}
		to, ok := oldObjectVars[v]
		switch {
		case name != "PrintObject" || !ok:
			o.ignore(d.line, "$"+v, "there is no such variable in %s", name)
			return ""
		case v == "objectnum":
			return number
		}
		return to
	}) + "\n"
}

var printfNumber = regexp.MustCompile(`^(.*?)%(-?\d{0,2})d(.*)$`)

// numbers writes the number of an object by its format.
func (o *old) numbers() string {
	d, ok := o.all["ObjectNumPrintf"]
	m := printfNumber.FindStringSubmatch(d.text)
	if !ok || m == nil {
		if ok {
			o.ignore(d.line, "ObjectNumPrintf", "it is not one %%d")
		}
		return "{{.Number}}"
	}
	places, _ := strconv.Atoi(m[2])
	clean := strings.NewReplacer("{{", "{{`{{`}}", "%%", "%")
	return clean.Replace(m[1]) + fmt.Sprintf("{{number %d .Number}}", places) + clean.Replace(m[3])
}

// subs are the substitutions that each matching line goes through, as the
// writing of one. Attribute and text are apart here; what took the one away from
// the other finds nothing, which does no harm.
func (o *old) subs() string {
	d := o.all["MatchedLineSub"]
	call, at := ".Text", d.line
	for line := range strings.Lines(d.text) {
		at++
		line = strings.TrimSuffix(strings.TrimSpace(line), ";")
		if line == "" || line[0] == '#' {
			continue
		}
		pattern, with, ok := substitution(line)
		if ok {
			_, err := replace(pattern, with, "")
			ok = err == nil
		}
		switch {
		case !ok:
			o.ignore(at, line, "it is no substitution that is known here")
		case strings.ContainsAny(with, "<>"):
			o.ignore(at, line, "a line has no markup of its own")
		default:
			call = fmt.Sprintf("(replace %q %q %s)", pattern, with, call)
		}
	}
	return "{{.Attr}}: {{" + call + "}}"
}

// substitution reads s/PATTERN/WITH/ of Perl, with any sign in place of the
// slash.
func substitution(line string) (pattern, with string, ok bool) {
	if len(line) < 4 || line[0] != 's' || strings.ContainsRune(" \t\\", rune(line[1])) || line[1] >= 0x80 {
		return "", "", false
	}
	var parts [3]string
	n := 0
	for i := 2; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			if line[i+1] != line[1] {
				parts[n] += line[i : i+1]
			}
			i++
			parts[n] += line[i : i+1]
		case line[i] == line[1] && n < 2:
			n++
		default:
			parts[n] += line[i : i+1]
		}
	}
	if n != 2 || strings.Trim(parts[2], "gim") != "" {
		return "", "", false
	}
	pattern, with = parts[0], perlText(parts[1])
	if strings.Contains(parts[2], "i") {
		pattern = "(?i)" + pattern
	}
	return pattern, with, true
}

var backref = regexp.MustCompile(`\\(\d)|\$(\d)|\$&`)

// perlText writes what is put in as replace knows it.
func perlText(s string) string {
	var b strings.Builder
	last := 0
	plain := func(s string) { b.WriteString(strings.ReplaceAll(s, "$", "$$")) }
	for _, m := range backref.FindAllStringSubmatchIndex(s, -1) {
		plain(s[last:m[0]])
		digit := "0"
		for _, g := range []int{2, 4} {
			if m[g] >= 0 {
				digit = s[m[g]:m[g+1]]
			}
		}
		b.WriteString("${" + digit + "}")
		last = m[1]
	}
	plain(s[last:])
	return b.String()
}
