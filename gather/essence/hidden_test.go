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
