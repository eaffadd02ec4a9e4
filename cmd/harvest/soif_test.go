package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	soifGood   = "@FILE { http://x/a\nUpdate-Time{1}:\t1\nTitle{1}:\ta\n}\n"
	soifBad    = "@FILE { http://x/bad\nUpdate-Time{1}:\t1\nTitle{1}:\ttoo short\n}\n"
	soifNoTime = "@FILE { http://x/no\nTitle{1}:\tn\nFile-Size{1}:\t?\n}\n"
	soifUpdate = "@DELETE {\n@FILE { http://x/gone\n}\n}\n@UPDATE {\n" + soifGood + "}\n@CURSOR { -\nCursor{3}:\te.7\n}\n"
)

func TestSoifCommand(t *testing.T) {
	noCursor := strings.Split(soifUpdate, "@CURSOR")[0]
	for _, tt := range []struct {
		args     string
		in       string
		code     int
		out, err string // of err, the beginning
	}{
		{"", "", 2, "", "harvest soif: check, fmt, split, wrap, convert, clean or schema?\nusage: "},
		{"mend", "", 2, "", "harvest soif: mend: unknown command\nusage: "},
		{"check --mend", "", 2, "", "harvest soif: unknown flag: --mend\nusage: "},
		{"check --limit -1", "", 2, "", "harvest soif: --limit -1: less than 0\n"},
		{"fmt --keywords-limit -1", "", 2, "", "harvest soif: --keywords-limit -1: less than 0\n"},
		{"--help", "", 0, soifUsage, ""},

		{"check", "", 0, "", ""},
		{"check", soifGood + soifGood, 0, "", ""},
		{"check", soifGood + "stray\n" + soifBad + soifNoTime, 1,
			"stdin:5:51: text outside of an object: \"stray\"\n" +
				"stdin:8:96: http://x/bad: Title: size is wrong: after 1 bytes stands 'o', not white space\n" +
				"stdin:10:118: http://x/no: Update-Time: mandatory attribute is missing\n" +
				"stdin:12:150: http://x/no: File-Size: \"?\" is not a number\n", ""},
		{"check --limit 30", soifGood, 1, "stdin:2:19: http://x/a: Update-Time: with its 1 bytes the object is over the limit of 30\n", ""},
		{"check", soifUpdate, 0, "", ""},
		{"check", noCursor, 1, "stdin:11:99: update stream without a cursor at its end\n", ""},
		{"check", "@UPDATE {\n" + soifGood, 1, "stdin:6:61: @UPDATE: input ends before the closing } of the frame\n", ""},
		{"check no/such/file", "", 1, "", "harvest: open no/such/file: no such file or directory\n"},

		{"fmt", "\n@FILE{ http://x/a Update-Time{1}:\t1 Title{1}:\ta}", 0, soifGood, ""},
		{"fmt", soifGood + soifBad + soifGood, 1, soifGood, "harvest: stdin:7:90: http://x/bad: Title: size is wrong"},
		{"fmt --drop-invalid", soifGood + soifBad + soifNoTime + soifGood, 0, soifGood + soifGood,
			"harvest: dropped: stdin:7:90: http://x/bad: Title: size is wrong: after 1 bytes stands 'o', not white space\n" +
				"harvest: dropped: stdin:9:112: http://x/no: Update-Time: mandatory attribute is missing\n"},
		{"fmt", soifNoTime, 0, soifNoTime, ""},
		{"clean", soifGood + soifBad + "@FILE { http://x/c\nUpdate-Time{1}:\t1\nIcon{1}:\t\x00\nKeywords{9000}:\t" + strings.Repeat("key ", 2250) + "\n}\n", 0,
			soifGood + "@FILE { http://x/c\nUpdate-Time{1}:\t1\nKeywords{8191}:\t" + strings.Repeat("key ", 2047) + "key\n}\n", "harvest: dropped: stdin:7:90: http://x/bad"},
		{"convert --from bibtex --to jsonl --url http://b", "@book{k, title={T}}", 0,
			`{"Template-Type":"DOCUMENT","URL":"http://b#k","Entry-Type":"book","Citation-Key":"k","Title":"T"}` + "\n", ""},
		{"convert --to csv", soifGood + soifNoTime, 0, "Template-Type,URL,Update-Time,Title,File-Size\nFILE,http://x/a,1,a,\nFILE,http://x/no,,n,?\n", ""},
		{"convert --from csv", "URL,Update-Time\nhttp://x,7\n1,2,3\n", 1, "@FILE { http://x\nUpdate-Time{1}:\t7\n}\n", "harvest: stdin:3:1: 3 fields, and 2 columns"},
		{"convert --from marc", "", 2, "", "harvest soif: marc: there are the formats atom, bibtex, csv,"},
		{"convert no/such/file", "", 1, "", "harvest: open no/such/file: no such file or directory\n"},
		{"fmt", "\n" + soifUpdate, 0, soifUpdate, ""},
		{"fmt", noCursor, 0, noCursor, ""},
		{"fmt", soifUpdate[:70], 1, soifUpdate[:36], "harvest: stdin:7:70: http://x/a: input ends before the closing }"},
		{"fmt", "@A { b\nC{2}:\t\x00\x01\n}\n", 0, "@A { b\nC{2}:\t\x00\x01\n}\n", ""},
		{"fmt --drop-binary", "@A { b\nC{2}:\t\x00\x01\nD{5}:\ta\tb\n\xe9\nE{1}:\t\x7f\n}\n", 0, "@A { b\nD{5}:\ta\tb\n\xe9\n}\n", ""},
		{"fmt --keywords-limit 9", "@A { b\nkeywords{11}:\tone two six\nKeywords-2{10}:\tone two si\nEmbed1-Embed2-Keywords{10}:\tone two si\nKeywordsX{10}:\tone two si\nKeywords{12}:\tüüüüüü\nKeywords{13}:\tone two s six\n}\n", 0,
			"@A { b\nkeywords{7}:\tone two\nKeywords-2{7}:\tone two\nEmbed1-Embed2-Keywords{7}:\tone two\nKeywordsX{10}:\tone two si\nKeywords{8}:\tüüüü\nKeywords{9}:\tone two s\n}\n", ""},

		{"wrap", "some\ntext\n", 0, "Full-Text{10}:\tsome\ntext\n\n", ""},
		{"wrap Abstract", "", 0, "Abstract{0}:\t\n", ""},
		{"wrap --attr Title=a=b Abstract", "x", 0, "Title{3}:\ta=b\nAbstract{1}:\tx\n", ""},
		{"wrap --url http://x/a --attr update-time=1 Title", "a", 0, "@FILE { http://x/a\nupdate-time{1}:\t1\nTitle{1}:\ta\n}\n", ""},
		{"wrap a b", "", 2, "", "harvest soif: wrap: one name of an attribute, please\n"},
		{"wrap {", "", 2, "", "harvest soif: wrap: \"{\" cannot be the name of an attribute\n"},
		{"wrap --attr x", "", 2, "", "harvest soif: --attr \"x\": not NAME=VALUE\n"},
		{"wrap --url a{b --type UPDATE", "", 1, "", "harvest: a{b: template type \"UPDATE\" is the name of a frame: invalid argument\n"},

		{"schema CURSOR", "", 0, "@CURSOR\tthe end of an update stream\nCursor\tmandatory\tany\twhere the next collection goes on\n", ""},
		{"schema NEWS", "", 1, "", "harvest: template type NEWS: not registered\n"},
	} {
		var out, errOut bytes.Buffer
		code := soifCommand(strings.Fields(tt.args), strings.NewReader(tt.in), &out, &errOut)
		if code != tt.code {
			t.Errorf("%s <%.60q: exit %d, want %d", tt.args, tt.in, code, tt.code)
		}
		if out.String() != tt.out {
			t.Errorf("%s <%.60q: got\n%s\nwant\n%s", tt.args, tt.in, out.String(), tt.out)
		}
		if got := errOut.String(); !strings.HasPrefix(got, tt.err) || tt.err == "" && got != "" {
			t.Errorf("%s <%.60q: on standard error\n%s\nwant\n%s", tt.args, tt.in, got, tt.err)
		}
	}
}

// What wrap makes is valid; what it is given that is missing it adds.
func TestSoifWrapIsValid(t *testing.T) {
	var object, out, errOut bytes.Buffer
	if code := soifCommand([]string{"wrap", "--url", "http://x/"}, strings.NewReader("}\n@FILE { x"), &object, &errOut); code != 0 {
		t.Fatal(errOut.String())
	}
	if code := soifCommand([]string{"check"}, &object, &out, &errOut); code != 0 || out.Len() > 0 {
		t.Errorf("exit %d: %s%s", code, out.String(), errOut.String())
	}
}

func TestSoifFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good, bad, update := write("good", soifGood), write("bad", soifBad), write("update", soifUpdate)
	soif := func(args ...string) (int, string, string) {
		var out, errOut bytes.Buffer
		code := soifCommand(args, strings.NewReader(soifGood), &out, &errOut)
		return code, out.String(), errOut.String()
	}

	code, out, _ := soif("check", good, "-", bad, update, filepath.Join(dir, "none"), bad)
	line := bad + ":3:39: http://x/bad: Title: size is wrong: after 1 bytes stands 'o', not white space\n"
	if code != 1 || out != line+line {
		t.Errorf("check: exit %d\n%s\nwant\n%s", code, out, line+line)
	}

	for _, files := range [][]string{{good, update}, {update, good}, {update, update}} {
		if code, _, errOut := soif(append([]string{"fmt"}, files...)...); code != 1 || !strings.Contains(errOut, "an update stream is formatted alone") {
			t.Errorf("fmt of an update stream and another: exit %d, %s", code, errOut)
		}
	}

	to := filepath.Join(dir, "new", "dir")
	code, out, errOut := soif("split", "-d", to, good, bad, update)
	want := ""
	for i, name := range []string{"000001.soif\thttp://x/a\n", "000002.delete.soif\thttp://x/gone\n", "000003.soif\thttp://x/a\n"} {
		name = to + "/" + name
		want += name
		file, url, _ := strings.Cut(strings.TrimSpace(name), "\t")
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), "@FILE { "+url+"\n") {
			t.Errorf("file %d: %q, %v", i, text, err)
		}
	}
	if code != 1 || out != want || errOut != "harvest: "+line {
		t.Errorf("split: exit %d\n%s%s\nwant\n%s", code, out, errOut, want)
	}
	if code, _, errOut := soif("split", "-d", to, good); code != 1 || !strings.Contains(errOut, "file exists") {
		t.Errorf("split over what is there: exit %d, %s", code, errOut)
	}
}

func TestSoifReadError(t *testing.T) {
	for _, command := range []string{"check", "fmt", "fmt --drop-invalid", "split -d " + t.TempDir(), "wrap"} {
		var out, errOut bytes.Buffer
		code := soifCommand(strings.Fields(command), iotest.ErrReader(errors.New("cable cut")), &out, &errOut)
		if got, want := errOut.String(), "harvest: stdin: cable cut\n"; code != 1 || got != want {
			t.Errorf("%s: exit %d, got %q, want 1, %q", command, code, got, want)
		}
	}
}
