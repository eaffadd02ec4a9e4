package essence

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
)

// said is how people write: the first article of the declaration of human
// rights, and the charsets it was written in before there was one for all.
var said = []struct{ text, charsets string }{
	{"Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geiste der Brüderlichkeit begegnen. Größe, Höhe, Übung, Straße.", "iso-8859-1 windows-1252"},
	{"Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience et doivent agir les uns envers les autres dans un esprit de fraternité.", "iso-8859-1"},
	{"Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y conciencia, deben comportarse fraternalmente los unos con los otros. Año, niñez, corazón.", "iso-8859-1"},
	{"Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de consciência, devem agir uns para com os outros em espírito de fraternidade. Não há exceções.", "iso-8859-1"},
	{"Alla människor är födda fria och lika i värde och rättigheter. De är utrustade med förnuft och samvete och bör handla gentemot varandra i en anda av broderskap.", "iso-8859-1"},
	{"Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.", "iso-8859-2"},
	{"Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a mají spolu jednat v duchu bratrství.", "iso-8859-2"},
	{"Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy viseltessenek.", "iso-8859-2"},
	{"Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства.", "windows-1251 koi8-r iso-8859-5"},
	{"Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική και συνείδηση.", "iso-8859-7"},
	{"Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.", "iso-8859-9"},
	{"כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג איש ברעהו ברוח של אחווה.", "iso-8859-8"},
	{"يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء.", "windows-1256 iso-8859-6"},
	{"すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。", "shift_jis euc-jp iso-2022-jp"},
	{"人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。", "gb18030"},
	{"人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神互相對待。", "big5"},
	{"모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.", "euc-kr"},
}

// TestGuess: text that nobody declares is read all the same.
func TestGuess(t *testing.T) {
	n, good := 0, 0
	for _, s := range said {
		for label := range strings.FieldsSeq(s.charsets) {
			enc, _ := charset.Lookup(label)
			b, err := enc.NewEncoder().Bytes([]byte(s.text))
			if err != nil {
				t.Fatalf("%s: %v", label, err)
			}
			n++
			for i := range 5 { // the same each time
				got := string(decode(b, "text/plain"))
				if got == s.text && i == 0 {
					good++
				}
				if got != s.text {
					t.Logf("%s: got %.60s, want %.60s", label, got, s.text)
					break
				}
			}
		}
	}
	t.Logf("%d of %d read", good, n)
	if good < n-1 {
		t.Errorf("got %d of %d texts read, want %d", good, n, n-1)
	}
}

func TestDecode(t *testing.T) {
	in := func(label, text string) string {
		enc, _ := charset.Lookup(label)
		b, err := enc.NewEncoder().Bytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	utf16 := func(e unicode.Endianness, mark unicode.BOMPolicy, text string) string {
		b, err := unicode.UTF16(e, mark).NewEncoder().Bytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const pole = "Zażółć gęślą jaźń"
	for name, c := range map[string]struct {
		text, declared string
		html           bool
		want           string
	}{
		"utf-8, declared otherwise": {"Größe", "text/plain; charset=iso-8859-1", false, "Größe"},
		"utf-8 with its mark":       {"\xef\xbb\xbfGröße", "", false, "Größe"},
		"declared":                  {in("iso-8859-2", pole), `text/plain; Charset="ISO-8859-2"`, false, pole},
		"declared, of a page":       {in("koi8-r", "<p>Привет"), "text/html; charset=koi8-r", true, "<p>Привет"},
		"the server before META":    {in("koi8-r", "<meta charset=utf-8><p>Привет"), "text/html; charset=koi8-r", true, "<meta charset=utf-8><p>Привет"},
		"META":                      {in("iso-8859-2", "<META charset='iso-8859-2'>"+pole), "text/html", true, "<META charset='iso-8859-2'>" + pole},
		"META of old":               {in("windows-1252", `<meta http-equiv=Content-Type content="text/html; charset=windows-1252"> “é”`), "", true, `<meta http-equiv=Content-Type content="text/html; charset=windows-1252"> “é”`},
		"META, late":                {in("koi8-r", "<title>"+strings.Repeat("x", 2000)+"</title><meta charset=koi8-r>Да"), "", true, "<title>" + strings.Repeat("x", 2000) + "</title><meta charset=koi8-r>Да"},
		"META in a comment":         {in("windows-1252", "<!-- <meta charset=koi8-r> --><p>café"), "", true, "<!-- <meta charset=koi8-r> --><p>café"},
		"META that cannot be":       {"<meta charset=utf-16><p>caf\xe9 <p>Größe", "", true, "<meta charset=utf-16><p>caf\uFFFD <p>Größe"},
		"XML":                       {in("iso-8859-2", `<?xml version="1.0" encoding="ISO-8859-2"?><a>`+pole), "text/xml", false, `<?xml version="1.0" encoding="ISO-8859-2"?><a>` + pole},
		"Python":                    {in("koi8-r", "#!/usr/bin/python\n# -*- coding: koi8-r -*-\n# Привет\n"), "", false, "#!/usr/bin/python\n# -*- coding: koi8-r -*-\n# Привет\n"},
		"utf-16 with its mark":      {utf16(unicode.BigEndian, unicode.UseBOM, "Größe und mehr"), "", false, "Größe und mehr"},
		"utf-16 without, le":        {utf16(unicode.LittleEndian, unicode.IgnoreBOM, "Größe und mehr"), "", false, "Größe und mehr"},
		"utf-16 without, be":        {utf16(unicode.BigEndian, unicode.IgnoreBOM, "Größe und mehr"), "", false, "Größe und mehr"},
		"a sign of windows-1252":    {in("windows-1252", "All rights reserved. © 1996 by the authors of this text, who say “no”."), "", false, "All rights reserved. © 1996 by the authors of this text, who say “no”."},
		"utf-8 but for a byte":      {"Größe, Höhe, ein \xe9 und Tiefe", "", false, "Größe, Höhe, ein \uFFFD und Tiefe"},
		"declared utf-8 and not":    {in("windows-1251", "Все люди рождаются свободными и равными в своем достоинстве и правах."), "text/plain; charset=utf-8", false, "Все люди рождаются свободными и равными в своем достоинстве и правах."},
		"cut in a character":        {"Größ\xc3", "", false, "Größ"},
		"cut, and little else":      {"caf\xe9", "", false, "café"}, // or not cut
		"escapes of a terminal":     {"\x1b[1mbold\x1b[0m", "", false, "\x1b[1mbold\x1b[0m"},
		"an unknown charset":        {in("windows-1252", "café"), "text/plain; charset=klingon", false, "café"},
	} {
		f := decode
		if c.html {
			f = decodeHTML
		}
		if got := string(f([]byte(c.text), c.declared)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestOriginal: what is said of a document is of its bytes, whatever they are
// written in.
func TestOriginal(t *testing.T) {
	enc, _ := charset.Lookup("koi8-r")
	b, err := enc.NewEncoder().Bytes([]byte("Новости\n\n" + said[8].text + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	o, _, err := Summarize(t.Context(), Input{URL: "http://site/a.txt", Type: "text/plain", Head: b, FullText: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := o.Text("Title"); got != "Новости" {
		t.Errorf("title: got %q, want Новости", got)
	}
	o2, _, err := Summarize(t.Context(), Input{URL: "http://site/a.bin", Head: append([]byte{0, 1, 2}, b...)})
	if err != nil {
		t.Fatal(err)
	}
	if o.Text("File-Size") == o2.Text("File-Size") || o.Text("MD5") == "" || !strings.Contains(o.Text("Full-Text"), "рождаются") {
		t.Errorf("got size %s, MD5 %s", o.Text("File-Size"), o.Text("MD5"))
	}
	if got, want := o.Text("File-Size"), len(b); got != strconv.Itoa(want) {
		t.Errorf("size: got %s, want %d, of the bytes as they came", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range said {
		for label := range strings.FieldsSeq(s.charsets) {
			enc, _ := charset.Lookup(label)
			b, err := enc.NewEncoder().Bytes([]byte(s.text))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b, "text/plain")
		}
	}
	f.Add([]byte("\x1b$B$3$s"), "text/plain; charset=iso-2022-jp")
	f.Add([]byte("<meta charset=utf-7>+ADw-\xff"), "text/html;charset=")
	f.Fuzz(func(t *testing.T, b []byte, declared string) {
		keep := bytes.Clone(b)
		for _, fn := range []func([]byte, string) []byte{decode, decodeHTML} {
			out := fn(b, declared)
			if !utf8.Valid(out) {
				t.Fatalf("got %q, not UTF-8", out)
			}
			if len(out) > 4*len(b)+4 {
				t.Fatalf("%d bytes made %d", len(b), len(out))
			}
			if again := fn(b, declared); !bytes.Equal(out, again) {
				t.Fatalf("got %q, then %q", out, again)
			}
		}
		if !bytes.Equal(b, keep) {
			t.Fatal("the text was changed")
		}
	})
}

func BenchmarkGuess(b *testing.B) {
	enc, _ := charset.Lookup("koi8-r")
	text, err := enc.NewEncoder().Bytes([]byte(strings.Repeat(said[8].text+"\n", 100)))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		decode(text, "")
	}
}
