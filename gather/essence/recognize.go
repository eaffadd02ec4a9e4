package essence

import (
	"path"
	"regexp"
	"strings"
)

// A kind is a type of object, as far as recognition goes: what is done with it
// stands in summarizers and containers, by its name.
type kind struct {
	name  string
	text  bool   // is text, so that binary content belies the name
	magic string // the content that a name needs to be believed, "" none
}

// kinds are the types, by name.
var kinds = func() map[string]*kind {
	m := make(map[string]*kind)
	for _, k := range []kind{
		{name: "GNUCompressed", magic: "GNUCompressed"},
		{name: "Tar", magic: "Tar"},
		{name: "Pdf", magic: "Pdf"},
		{name: "PostScript", magic: "PostScript"},
	} {
		m[k.name] = &k
	}
	for name := range languages {
		m[name] = &kind{name: name, text: true}
	}
	for name := range strings.FieldsSeq(`HTML Markdown ManPage Text README FAQ
		Troff XML JSON CSS Patch Mail Tex RFC Configuration DotFile SGML FormattedText`) {
		m[name] = &kind{name: name, text: true}
	}
	for name := range strings.FieldsSeq(`Archive Audio Binary Compressed CompressedTar Data Dvi Font GNUCompressedTar
		Image Object PCCompressed RTF Video Empty`) {
		m[name] = &kind{name: name}
	}
	return m
}()

// bySuffix are the types that a name's last suffix tells, in lower case.
var bySuffix = func() map[string]string {
	m := make(map[string]string)
	for typ, suffixes := range map[string]string{
		"HTML":          "html htm xhtml shtml",
		"Markdown":      "md markdown mkd mdown",
		"Text":          "txt text asc rst adoc csv tsv log 1st",
		"GNUCompressed": "gz tgz",
		"Tar":           "tar",
		"CompressedTar": "tbz tbz2 txz tzst taz",
		"Compressed":    "bz2 xz zst lz lz4 lzma z br",
		"PCCompressed":  "zip jar war epub docx xlsx pptx odt ods odp whl apk",
		"Archive":       "a deb rpm cpio 7z rar ar iso",
		"Pdf":           "pdf",
		"PostScript":    "ps eps ai",
		"Dvi":           "dvi",
		"RTF":           "rtf",
		"Tex":           "tex latex sty cls bib",
		"Troff":         "ms me mm roff tr",
		"XML":           "xml xsl xslt xsd rdf rss atom svg plist",
		"JSON":          "json jsonl geojson ipynb",
		"CSS":           "css scss less",
		"SGML":          "sgml sgm dtd",
		"Patch":         "patch diff",
		"Mail":          "eml mbox",
		"Configuration": "conf cfg ini yaml yml toml properties service desktop",
		"Image":         "png jpg jpeg gif bmp ico tif tiff webp xpm xbm pbm pgm ppm pnm avif heic",
		"Audio":         "mp3 ogg oga flac wav au aiff m4a mid midi opus",
		"Video":         "mp4 mkv webm avi mov mpg mpeg ogv",
		"Font":          "ttf otf woff woff2 pfb pfa afm eot bdf pcf",
		"Object":        "o so obj lib dll exe ko pyc class wasm",
		"Data":          "db sqlite mdb dat bin gdbm",
	} {
		for s := range strings.FieldsSeq(suffixes) {
			m[s] = typ
		}
	}
	for typ, l := range languages {
		for s := range strings.FieldsSeq(l.suffixes) {
			m[s] = typ
		}
	}
	return m
}()

// byWhole are the types that a whole name tells, as path.Match has it, in order.
var byWhole = []struct{ pattern, typ string }{
	{"readme*", "README"}, {"read.me", "README"}, {"liesmich*", "README"},
	{"faq*", "FAQ"}, {"*.faq", "FAQ"},
	{"makefile*", "Makefile"}, {"gnumakefile", "Makefile"}, {"mkfile", "Makefile"},
	{"rfc[0-9]*.txt", "RFC"},
	{"changelog*", "Text"}, {"copyright", "Text"}, {"license*", "Text"}, {"licence*", "Text"}, {"copying*", "Text"},
	{"news*", "Text"}, {"todo*", "Text"}, {"authors*", "Text"}, {"thanks*", "Text"}, {"install*", "Text"},
	{"*.debian", "Text"}, {"*.so.*", "Object"},
	{".*rc", "DotFile"}, {".profile", "DotFile"}, {".gitignore", "DotFile"},
}

// byMagic are formats that give themselves away, whatever they are called.
var byMagic = []struct {
	typ   string
	at    int
	bytes string
}{
	{"GNUCompressed", 0, "\x1f\x8b\x08"},
	{"Tar", 257, "ustar"},
	{"Pdf", 0, "%PDF-"},
	{"PostScript", 0, "%!PS"},
	{"Image", 0, "\x89PNG\r\n\x1a\n"}, {"Image", 0, "GIF87a"}, {"Image", 0, "GIF89a"}, {"Image", 0, "\xff\xd8\xff"},
	{"Image", 0, "II*\x00"}, {"Image", 0, "MM\x00*"}, {"Image", 8, "WEBP"},
	{"Object", 0, "\x7fELF"}, {"Object", 0, "\xca\xfe\xba\xbe"}, {"Object", 0, "\x00asm"},
	{"PCCompressed", 0, "PK\x03\x04"}, {"PCCompressed", 0, "PK\x05\x06"},
	{"Compressed", 0, "BZh"}, {"Compressed", 0, "\xfd7zXZ\x00"}, {"Compressed", 0, "\x28\xb5\x2f\xfd"}, {"Compressed", 0, "\x1f\x9d"},
	{"Archive", 0, "!<arch>\n"}, {"Archive", 0, "7z\xbc\xaf\x27\x1c"}, {"Archive", 0, "Rar!\x1a\x07"}, {"Archive", 0, "\xed\xab\xee\xdb"},
	{"Audio", 0, "OggS"}, {"Audio", 0, "fLaC"}, {"Audio", 0, "ID3"}, {"Audio", 0, "MThd"}, {"Audio", 8, "WAVE"},
	{"Video", 4, "ftyp"}, {"Video", 0, "\x1aE\xdf\xa3"},
	{"Font", 0, "wOFF"}, {"Font", 0, "wOF2"}, {"Font", 0, "OTTO"}, {"Font", 0, "\x00\x01\x00\x00\x00"},
	{"RTF", 0, "{\\rtf"}, {"Dvi", 0, "\xf7\x02\x01\x83\x92\xc0"}, {"Data", 0, "SQLite format 3\x00"},
}

// byText are the types of text without a telling name, tried in order on the
// first 4 KB.
var byText = []struct {
	typ, rule string
	re        *regexp.Regexp
}{
	{"HTML", "<!doctype html or <html", regexp.MustCompile(`(?i)^(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:[^-]|-[^-])*-->\s*)*<(?:!doctype\s+html|html|head|body)[\s>]`)},
	{"XML", "<?xml", regexp.MustCompile(`^(?:\xef\xbb\xbf)?\s*<\?xml[\s?]`)},
	{"ManPage", ".TH or .Dt", manStart},
	{"Python", "#! python", regexp.MustCompile(`^#![^\n]*\bpython`)},
	{"Perl", "#! perl", regexp.MustCompile(`^#![^\n]*\bperl`)},
	{"ShellScript", "#! sh", regexp.MustCompile(`^#![^\n]*\b(?:ba|z|k|da|)sh\b`)},
	{"Awk", "#! awk", regexp.MustCompile(`^#![^\n]*\b[gmn]?awk\b`)},
	{"JavaScript", "#! node", regexp.MustCompile(`^#![^\n]*\bnode\b`)},
	{"Patch", "diff headers", regexp.MustCompile(`(?m)^(?:--- [^\n]+\n\+\+\+ |diff -|Index: )`)},
	{"Mail", "From, Received", regexp.MustCompile(`^(?:From \S+ [^\n]*\n|(?:Received|Return-Path|Message-ID): [^\n]+\n)`)},
	{"Markdown", "# and ``` or [](", regexp.MustCompile("(?ms)^# \\S.*(?:^```|\\]\\()")},
}

var manStart = regexp.MustCompile(`(?m)^['.](?:TH|Dt)[ \t]+\S`)

// manName is a name that a manual page may have; many others have it too.
var manName = regexp.MustCompile(`\.(?:[1-9]|n|l)[a-z]*$`)

// recognize finds the type of a content, and the rule that told it.
func recognize(c *content) (*kind, string) {
	if len(c.head) == 0 {
		return kinds["Empty"], "content: empty"
	}
	name, rule := typeByName(strings.ToLower(c.name))
	magic, at := typeByMagic(c.head)
	if manName.MatchString(c.name) && magic == "" && (name == "" || name == "Text") && manStart.Match(c.head[:min(len(c.head), 8<<10)]) {
		return kinds["ManPage"], "name *.N and content .TH or .Dt"
	}
	if name != "" {
		k := kinds[name]
		switch {
		case k.magic != "" && k.magic != magic:
			rule += ", belied by content" // as a .gz that is none
		case k.text && magic != "":
			rule += ", belied by content"
		case k.text && !looksText(c.head):
			return kinds["Data"], rule + ", belied by content: not text"
		case isWeb(c.declared) && k.text && name != "HTML":
			return kinds["HTML"], "server: " + c.declared // page.php
		default:
			return k, rule
		}
	}
	if rule != "" {
		rule = " (" + rule + ")"
	}
	if magic != "" {
		return kinds[magic], "content: " + at + rule
	}
	if !looksText(c.head) {
		return kinds["Data"], "content: not text" + rule
	}
	if isWeb(c.declared) {
		return kinds["HTML"], "server: " + c.declared + rule
	}
	start := c.head[:min(len(c.head), 4<<10)]
	for _, t := range byText {
		if t.re.Match(start) {
			return kinds[t.typ], "content: " + t.rule + rule
		}
	}
	return kinds["Text"], "content: text" + rule
}

func typeByName(name string) (typ, rule string) {
	if name == "" {
		return "", ""
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		if typ := bySuffix[name[i+1:]]; typ != "" {
			if typ == "Text" { // README.txt, rfc822.txt
				for _, w := range byWhole {
					if ok, _ := path.Match(w.pattern, name); ok && w.typ != "Text" {
						return w.typ, "name " + w.pattern
					}
				}
			}
			return typ, "name *." + name[i+1:]
		}
	}
	for _, w := range byWhole {
		if ok, _ := path.Match(w.pattern, name); ok {
			return w.typ, "name " + w.pattern
		}
	}
	return "", ""
}

func typeByMagic(head []byte) (typ, rule string) {
	for _, m := range byMagic {
		if len(head) >= m.at+len(m.bytes) && string(head[m.at:m.at+len(m.bytes)]) == m.bytes {
			return m.typ, "magic of " + m.typ
		}
	}
	return "", ""
}

func isWeb(declared string) bool {
	t, _, _ := strings.Cut(strings.ToLower(declared), ";")
	t = strings.TrimSpace(t)
	return t == "text/html" || t == "application/xhtml+xml"
}

// looksText reports whether a beginning is that of a text, in UTF-8, UTF-16, or
// an 8-bit character set: no NUL, few control bytes.
func looksText(head []byte) bool {
	head = head[:min(len(head), 8<<10)]
	if wide(head) != 0 {
		return true
	}
	odd := 0
	for _, b := range head {
		switch {
		case b == 0:
			return false
		case b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != '\b' && b != 0x1b:
			odd++
		}
	}
	return odd*20 <= len(head)
}
