package essence

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"harvest/gather/soif"
)

func recordsOf(t *testing.T, name, text string, tab *Tables) (all []string, o soif.Object) {
	t.Helper()
	o, _, err := Summarize(t.Context(), Input{URL: "file:///d/" + name, Head: []byte(text), Tables: tab, Member: func(_ context.Context, m Member) error {
		if m.Container != "file:///d/"+name {
			t.Errorf("got container %s", m.Container)
		}
		all = append(all, string(m.Object.Append(nil)))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return all, o
}

func TestRecords(t *testing.T) {
	all, o := recordsOf(t, "site", "Template-Type: SITEINFO\nHandle: main/1\nURI: http://elsewhere/\nDescription: An archive\nUpdate-Time: 7\nTime-to-Live: 1\n\nTemplate-Type: DOCUMENT\nTitle: T\n\nTemplate-Type: DOCUMENT\nHandle: main/1\n", nil)
	want := []string{
		"@SITEINFO { file:///d/site!/main/1\nType{4}:\tIAFA\nURI{17}:\thttp://elsewhere/\nHandle{6}:\tmain/1\nDescription{10}:\tAn archive\n}\n",
		"@DOCUMENT { file:///d/site!/2\nType{4}:\tIAFA\nTitle{1}:\tT\n}\n",
		"@DOCUMENT { file:///d/site!/main/1~2\nType{4}:\tIAFA\nHandle{6}:\tmain/1\n}\n",
	}
	if fmt.Sprint(all) != fmt.Sprint(want) || o.Text("Type") != "IAFA" {
		t.Errorf("got %s of %s, want %s", all, o.Text("Type"), want)
	}
	for name, text := range map[string]string{
		"a.lsm":    "Begin3\nTitle: a\nPrimary-site: ftp.h.org /p\n 1kB a.tgz\nEnd\n",
		"a.bib":    "@book{k, title={a}, url={ftp://ftp.h.org/p/a.tgz}}",
		"dump":     "@FILE { ftp://ftp.h.org/p/a.tgz\nTitle{1}:\ta\nUpdate-Time{1}:\t7\nAccess-Method-x{1}:\ta\n}\n",
		"long.bib": "@book{k, title={" + strings.Repeat("a ", 10_000) + "}, url={ftp://ftp.h.org/p/a.tgz}}",
	} {
		all, _ := recordsOf(t, name, text, nil)
		if len(all) != 1 || !strings.Contains(all[0], "\nURI{23}:\tftp://ftp.h.org/p/a.tgz\n") || !strings.Contains(all[0], ":\ta") ||
			strings.Contains(all[0], "Update-Time") || strings.Contains(all[0], "Access-Method") || len(all[0]) > 10_000 {
			t.Errorf("%s: got %s, want its record", name, all)
		}
	}
	all, o = recordsOf(t, "bad.lsm", "Begin3\nTitle: a\nEnd\nBegin3\nno colon\nEnd\n", nil)
	if len(all) != 1 || !strings.Contains(o.Text("Summary-Limit"), "lsm: line 5, column 1") {
		t.Errorf("got %s, %s, want one and the line of the other", all, o.Text("Summary-Limit"))
	}
	tab, err := ParseTables(map[string]string{"unnest": "LSM as=no\n"})
	if err != nil {
		t.Fatal(err)
	}
	if all, _ := recordsOf(t, "a.lsm", "Begin3\nTitle: a\nEnd\n", tab); len(all) != 0 {
		t.Errorf("as=no: got %s, want none", all)
	}
	if tab, err = ParseTables(map[string]string{"rules": "Title == 'a'\n\tdelete()\nTitle == 'b'\n\tTime-to-Live = '60'\n"}); err != nil {
		t.Fatal(err)
	}
	all, _ = recordsOf(t, "a.bib", "@book{k, title={a}}@book{l, title={b}}", tab)
	if len(all) != 1 || !strings.Contains(all[0], "Time-to-Live{2}:\t60\n") {
		t.Errorf("got %s, want one that lives for 60 seconds", all)
	}
}
