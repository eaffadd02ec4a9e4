package essence

import (
	"strings"
	"testing"
)

// TestHidden wants the words that a reader sees, and only those.
func TestHidden(t *testing.T) {
	for _, c := range []struct{ page, want string }{
		{"<p>seen<p hidden>not<p>seen", "seen seen"},
		{"<p>a<div hidden><div>not</div>not</div>b", "a b"},
		{"<div hidden=until-found>found", "found"},
		{"<p style='display: none'>not</p>seen", "seen"},
		{"<p STYLE=\"Display:NONE !important\">not<p>seen", "seen"},
		{"<p style=display:none>not<div>seen</div>", "seen"},
		{"<ul><li style='visibility:hidden'>not<li>seen</ul>", "seen"},
		{"a<template>not<b>not</b></template>b", "ab"},
		{"<span style='font-size:0'>not</span><span style='font-size:1px'>not</span><span style='font-size:12px'>seen</span>", "seen"},
		{"<span style='opacity:0.0'>not</span><span style='opacity:0.5'>seen</span>", "seen"},
		{"<body bgcolor=#FFF>seen<font color=white>not</font> too", "seen too"},
		{"<body bgcolor=white><table bgcolor=black><tr><td><font color=white>seen</font></table><font color=white>not</font>", "seen"},
		{"<p style='color:#123456;background:#123456'>not</p>seen", "seen"},
		{"<body style='background-color:white'><div class=dark><b style='color:#fff'>seen</b></div><b style='color:#fff'>not</b>", "seen"},
		{"<b style='color:white'>seen, for the background is not known</b>", "seen, for the background is not known"},
		{"<div style='color:white;background:url(dark.png)'>seen</div>", "seen"},
		{"<input hidden>seen<br hidden>seen", "seen seen"},
		{"<div hidden>never closed</body>", ""},
		{"<a href='a=b' title='hidden'>seen</a> <a class=hidden>seen</a>", "seen seen"},
		{"<p hidden", ""},
		{"<p style='display:none", ""},
		{strings.Repeat("<div style='background:#fff'>", 10_000) + "seen", "seen"},
	} {
		p := newPage(defaultTable(), []byte(c.page))
		p.read()
		if got := words(p.text); got != c.want {
			t.Errorf("%.200s: got %q, want %q", c.page, got, c.want)
		}
	}
}

// TestHiddenIsTold holds that the trace says how many words were left out, why, and
// how they begin, and that none of them is in the object.
func TestHiddenIsTold(t *testing.T) {
	page := `<body bgcolor=#fff><title>Bees</title><p>Bees make honey.<div style="display:none">cheap pills</div>
		<div hidden>more <b>pills</b></div><font color=white>casino casino &amp; casino</font><span style="font-size:1px">loans</span>
		<span style="opacity:0">odds</span><template>later</template>`
	o, tr := sum(t, Input{URL: "http://site/a.html", Head: []byte(page), FullText: true})
	for _, want := range []string{
		"summarize\t4 words left out\thidden, or not displayed: cheap pills more pills",
		"summarize\t3 words left out\tin the colour behind them: casino casino & casino",
		"summarize\t1 words left out\twithout size: loans",
		"summarize\t1 words left out\twithout opacity: odds",
		"summarize\t1 words left out\tof a template: later",
	} {
		if !strings.Contains(tr.String(), want) {
			t.Errorf("got trace %q, want %q", tr, want)
		}
	}
	for _, word := range []string{"pills", "casino", "loans", "odds", "later"} {
		if strings.Contains(string(o.Append(nil)), word) {
			t.Errorf("%s: got it in the object", word)
		}
	}
	if _, tr := sum(t, Input{URL: "http://site/a.html", Head: []byte("<p>seen")}); strings.Contains(tr.String(), "left out") {
		t.Errorf("got %q of a page that hides nothing", tr)
	}
}
